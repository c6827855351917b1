//! What happens to an engine from outside while it works.

use std::rc::Rc;
use std::sync::atomic::Ordering;

use super::agent::Agent;
use super::callers::Life;
use super::faults::Fault;

/// Lets the faults of this life happen, each at its time.
pub(super) async fn strike(life: Rc<Life>) {
    let world = &life.world;
    for (at, fault) in &world.scenario.faults {
        let Some(wait) = at.checked_sub(world.age()) else { continue };
        tokio::time::sleep(wait).await;
        world.model().steps.push(format!("{} - {fault:?}", world.age().as_millis()));
        // Beside it: an answer that is late must not hold the next fault up.
        tokio::task::spawn_local(cause(Rc::clone(&life), fault.clone()));
    }
}

async fn cause(life: Rc<Life>, fault: Fault) {
    let (world, engine) = (&life.world, &life.engine);
    let shared = engine.shared();
    let agent = |index: usize| -> &Agent { &world.agents[index] };
    let id = |index: usize| &world.scenario.sessions[index].id;
    match fault {
        Fault::Panic(target) => {
            engine.test_panic(&target);
        }
        Fault::Kill(target) => {
            engine.test_kill(&target);
        }
        Fault::Cancel(index) => {
            life.answer("cancel", agent(index), engine.cancel(id(index))).await;
        }
        Fault::Reset(index) => {
            world.model().resets(id(index), true);
            life.answer("reset", agent(index), engine.reset(id(index))).await;
            world.model().resets(id(index), false);
        }
        Fault::TurnWorked(index) => {
            let _ = engine.turn_worked(id(index));
        }
        Fault::Reload(index) => {
            world.config.store(index, Ordering::Relaxed);
            world.model().allows_also(world.current_config());
            let _ = engine.reload(world.current_config().clone()).await;
        }
        Fault::Bystander(index, turn) => {
            let plan = &world.scenario.sessions[index];
            let Err(mut report) = plan.script.outcome(0, 0).1 else { return };
            (report.turn, report.lane) = (turn, plan.lane.clone());
            let told = life.answer("a bystander's report", agent(index), engine.report(&plan.id, report)).await;
            if let Some(Ok(directive)) = told {
                world.handed_out(&plan.id, "a directive", &directive);
            }
        }
        Fault::Stray(index) => {
            life.answer("a stray success", agent(index), engine.succeeded(id(index), u64::MAX)).await;
            life.answer("a status", agent(index), engine.status(id(index))).await;
        }
        Fault::HoldLane(lane, span) => {
            let until = world.now() + span;
            let _ = shared.lanes.hold(&lane, until);
        }
    }
}
