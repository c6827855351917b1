//! Those who use an engine, and the answers that they are owed.

use std::cell::Cell;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use super::agent::Agent;
use super::world::World;
use crate::actors::{EngineError, Outcome};
use crate::engine::{RecoveryEngine, StopCause};

/// How long anybody may wait for an answer: far more than all bounds of an episode together.
pub(super) const PATIENCE: Duration = Duration::from_secs(24 * 60 * 60);
/// How often a caller tries again that was refused.
const TRIES: u32 = 2_000;

/// An engine at work, and those who use it.
pub(super) struct Life {
    pub world: Arc<World>,
    pub engine: RecoveryEngine,
    /// It is being shut down.
    pub over: Cell<bool>,
    refused: Cell<u32>,
}

impl Life {
    pub fn new(world: &Arc<World>, engine: RecoveryEngine) -> Self {
        Self { world: Arc::clone(world), engine, over: Cell::new(false), refused: Cell::new(0) }
    }

    /// Whether there is a turn to be done, and an engine to recover it.
    pub fn goes_on(&self, agent: &Agent) -> bool {
        !self.over.get() && agent.has_turns_left(&self.world)
    }

    /// An answer that must come (P4).
    pub async fn answer<T>(&self, what: &str, agent: &Agent, call: impl Future<Output = T>) -> Option<T> {
        let id = &agent.plan(&self.world).id;
        let answer = tokio::time::timeout(PATIENCE, call).await.ok();
        if answer.is_none() {
            self.world.broke("P4", id, format_args!("`{what}` was never answered"));
        }
        answer
    }

    /// What came of a turn's recovery: its end, or another try a little later.
    pub async fn settled(&self, agent: &Agent, result: Result<Option<Arc<Outcome>>, StopCause>) {
        let error = match result {
            Ok(None) => return agent.next_turn(),
            Ok(Some(outcome)) | Err(StopCause::Verdict(outcome)) => {
                self.world.verdict(&outcome);
                return agent.next_turn();
            }
            Err(StopCause::Engine(error)) => error,
        };
        let id = &agent.plan(&self.world).id;
        self.world.saw(id, format_args!("is refused: {error}"));
        if self.over.get() {
            return;
        }
        if matches!(error, EngineError::ShuttingDown) {
            self.world.broke("P4", id, "an engine that goes on said that it shuts down");
        }
        self.refused.set(self.refused.get() + 1);
        if self.refused.get() > TRIES {
            self.world.broke("P4", id, format_args!("is refused for ever: {error}"));
            return agent.next_turn();
        }
        let wait = agent.lock().dice.millis(100, 5_000);
        tokio::time::sleep(wait).await;
    }
}
