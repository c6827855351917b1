use std::rc::Rc;

use super::agent::Remote;
use super::callers::Life;
use crate::engine::{Done, Stopped};
use crate::failure::Report;

/// Runs a session's turns as an orchestrator does, until all had their end or the engine's life is over.
pub(super) async fn drive(life: Rc<Life>, index: usize) {
    let agent = &life.world.agents[index];
    while life.goes_on(agent) {
        let leaves = {
            let dice = &mut agent.lock().dice;
            dice.chance(8).then(|| dice.millis(0, 30_000))
        };
        let result = match leaves {
            None => life.answer("run", agent, run(&life, index)).await,
            // The caller's future is dropped: that cancels.
            Some(after) => tokio::time::timeout(after, run(&life, index)).await.ok(),
        };
        match result {
            None => agent.next_turn(),
            Some(Ok(done)) => life.settled(agent, Ok(done.recovery)).await,
            Some(Err(stopped)) => life.settled(agent, Err(stopped.cause)).await,
        }
    }
}

async fn run(life: &Life, index: usize) -> Result<Done<()>, Stopped<Report>> {
    let agent = &life.world.agents[index];
    let plan = agent.plan(&life.world);
    let mut session = life.engine.session(plan.id.clone());
    if let Some(lane) = &plan.lane {
        session = session.lane(lane.clone());
    }
    if let Some(deadline) = plan.deadline {
        session = session.deadline(deadline);
    }
    if plan.seed.is_multiple_of(2) {
        session = session.client(std::sync::Arc::new(Remote { world: std::sync::Arc::clone(&life.world), index }));
    }
    session.run(async |turn| agent.perform(&life.world, turn).await).await
}
