use std::rc::Rc;
use std::time::Duration;

use super::agent::Agent;
use super::callers::Life;
use super::failures::CANARY;
use crate::actors::{Action, Directive, EngineError, Refused};
use crate::engine::StopCause;
use crate::failure::Report;
use crate::policy::Turn;

/// Redoes a session's turns as a scheduler does, until all had their end or the engine's life is over.
pub(super) async fn drive(life: Rc<Life>, index: usize) {
    let agent = &life.world.agents[index];
    while life.goes_on(agent) {
        let told = agent.lock().told.clone();
        let answer = match told {
            Some((seq, result)) => {
                // A host that died in the middle of a redo does not know what became of it.
                let result = result.unwrap_or_else(|| agent.plan(&life.world).script.outcome(0, 0).1);
                report_result(&life, agent, seq, result).await
            }
            None => match agent.perform(&life.world, &Turn::first(agent.plan(&life.world).id.clone())).await {
                Ok(()) => {
                    let _ = life.engine.turn_worked(&agent.plan(&life.world).id);
                    agent.next_turn();
                    continue;
                }
                Err(report) => report_failure(&life, agent, report).await,
            },
        };
        match answer {
            None => agent.next_turn(),
            Some(Ok(directive)) => follow(&life, agent, directive).await,
            Some(Err(error)) => life.settled(agent, Err(StopCause::Engine(error))).await,
        }
    }
}

type Answered = Option<Result<Directive, EngineError>>;

async fn report_failure(life: &Life, agent: &Agent, mut report: Report) -> Answered {
    let plan = agent.plan(&life.world);
    report.lane.clone_from(&plan.lane);
    if plan.seed.is_multiple_of(2) {
        report.turn = Some(agent.lock().turns);
    }
    life.answer("report", agent, life.engine.report(&plan.id, report)).await
}

async fn report_result(life: &Life, agent: &Agent, seq: u64, result: Result<(), Report>) -> Answered {
    let plan = agent.plan(&life.world);
    match result {
        Ok(()) => life.answer("succeeded", agent, life.engine.succeeded(&plan.id, seq)).await,
        Err(mut report) => {
            report.lane.clone_from(&plan.lane);
            life.answer("report_redo", agent, life.engine.report_redo(&plan.id, report, Some(seq))).await
        }
    }
}

/// Does what the engine says, or does not.
async fn follow(life: &Life, agent: &Agent, directive: Directive) {
    let world = &life.world;
    let plan = agent.plan(world);
    world.handed_out(&plan.id, "a directive", &directive);
    let Action::Redo { remedy, not_before, .. } = &directive.action else {
        world.saw(&plan.id, format_args!("is told to stop: {:?}", directive.verdict()));
        return agent.next_turn();
    };
    world.saw(&plan.id, format_args!("is told to redo, seq {} not before {not_before}", directive.seq));
    if let Some((seq, Some(_))) = agent.lock().told
        && seq == directive.seq
    {
        // It is told the same again, and says again what came of it.
        return;
    }
    let (declines, silent, early) = {
        let dice = &mut agent.lock().dice;
        (remedy.is_some() && dice.chance(20), dice.chance(8), dice.chance(10))
    };
    if declines {
        return decline(life, agent, directive.seq).await;
    }
    if silent {
        world.saw(&plan.id, "goes silent");
        agent.next_turn();
        return tokio::time::sleep(Duration::from_secs(1)).await;
    }
    agent.lock().told = Some((directive.seq, None));
    if !early {
        tokio::time::sleep(not_before.since(world.now())).await;
    }
    let _admitted = match admitted(life, agent).await {
        Ok(permit) => permit,
        Err(error) => return life.settled(agent, Err(StopCause::Engine(error))).await,
    };
    let result = agent.perform(world, &turn_of(&directive)).await;
    agent.lock().told = Some((directive.seq, Some(result)));
}

async fn admitted(life: &Life, agent: &Agent) -> Result<Option<crate::actors::LanePermit>, EngineError> {
    let Some(lane) = &agent.plan(&life.world).lane else { return Ok(None) };
    loop {
        match life.answer("admit", agent, life.engine.admit(lane, Some(Duration::from_secs(600)))).await {
            None => return Ok(None),
            Some(Ok(permit)) => return Ok(Some(permit)),
            Some(Err(Refused::Engine(error))) => return Err(error),
            Some(Err(Refused::Closed { not_before })) => {
                tokio::time::sleep(not_before.since(life.world.now()).max(Duration::from_millis(1))).await;
            }
            Some(Err(Refused::QueueFull { .. })) => tokio::time::sleep(Duration::from_secs(5)).await,
        }
    }
}

async fn decline(life: &Life, agent: &Agent, seq: u64) {
    let id = &agent.plan(&life.world).id;
    let reason = format!("cannot: password={CANARY}hunter2000");
    agent.lock().told = None;
    match life.answer("declined", agent, life.engine.declined(id, seq, reason)).await {
        None => agent.next_turn(),
        Some(Ok(directive)) => Box::pin(follow(life, agent, directive)).await,
        Some(Err(error)) => life.settled(agent, Err(StopCause::Engine(error))).await,
    }
}

fn turn_of(directive: &Directive) -> Turn {
    let mut turn = Turn::first(directive.session.clone());
    if let Action::Redo { redo, model, .. } = &directive.action {
        (turn.redo, turn.model) = (*redo, model.clone());
    }
    (turn.seq, turn.injections) = (directive.seq, directive.injections.clone());
    turn
}
