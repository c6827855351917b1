use std::rc::Rc;
use std::sync::Arc;

use super::agent::{Agent, Remote};
use super::callers::Life;
use crate::actors::EngineError;
use crate::engine::StopCause;
use crate::failure::{Category, Report};
use crate::policy::Turn;

/// Recovers a session by its client, until all turns had their end or the engine's life is over.
pub(super) async fn drive(life: Rc<Life>, index: usize) {
    let agent = &life.world.agents[index];
    let id = agent.plan(&life.world).id.clone();
    while life.goes_on(agent) {
        if life.engine.open_episodes().contains(&id) {
            match life.answer("resume", agent, life.engine.resume(&id)).await {
                Some(Err(EngineError::NothingOpen)) => {}
                Some(resumed) => {
                    life.settled(agent, resumed.map(Some).map_err(StopCause::Engine)).await;
                    continue;
                }
                None => agent.next_turn(),
            }
        }
        match first_try(&life, agent).await {
            None => continue,
            Some(Ok(())) => agent.next_turn(),
            Some(Err(report)) => match life.answer("recover", agent, recover(&life, agent, report)).await {
                None => agent.next_turn(),
                Some(result) => life.settled(agent, result).await,
            },
        }
    }
}

/// The session's own try of a turn, which its host bounds.
async fn first_try(life: &Life, agent: &Agent) -> Option<Result<(), Report>> {
    const PATIENCE: std::time::Duration = std::time::Duration::from_secs(60);
    let first = Turn::first(agent.plan(&life.world).id.clone());
    tokio::time::timeout(PATIENCE, agent.perform(&life.world, &first)).await.ok()
}

async fn recover(life: &Life, agent: &Agent, report: Report) -> Result<Option<Arc<crate::actors::Outcome>>, StopCause> {
    let plan = agent.plan(&life.world);
    let client = Remote { world: Arc::clone(&life.world), index: agent.index };
    let mut session = life.engine.session(plan.id.clone()).client(Arc::new(client));
    if let Some(lane) = &plan.lane {
        session = session.lane(lane.clone());
    }
    if let Some(deadline) = plan.deadline {
        session = session.deadline(deadline);
    }
    let category =
        (!plan.script.is_monotonous() && agent.lock().dice.chance(20)).then(|| *agent.lock().dice.pick(Category::ALL));
    match session.recover(report, category).await {
        Ok(recovered) => Ok(Some(recovered.outcome)),
        Err(stopped) => Err(stopped.cause),
    }
}
