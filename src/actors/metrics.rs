//! Aggregates what sessions tell it at the end of each episode.

use std::sync::{Arc, Mutex, PoisonError};

use ractor::{Actor, ActorProcessingErr, ActorRef};

use super::messages::MetricsMsg;
use crate::state::RecoveryMetricsSnapshot;

pub(crate) struct MetricsActor;

/// Kept outside the actor, so that no panic loses it.
pub(crate) type Collected = Arc<Mutex<RecoveryMetricsSnapshot>>;

impl Actor for MetricsActor {
    type Msg = MetricsMsg;
    type State = Collected;
    type Arguments = Collected;

    async fn pre_start(&self, _: ActorRef<MetricsMsg>, collected: Collected) -> Result<Collected, ActorProcessingErr> {
        Ok(collected)
    }

    async fn handle(
        &self,
        _: ActorRef<MetricsMsg>,
        message: MetricsMsg,
        state: &mut Collected,
    ) -> Result<(), ActorProcessingErr> {
        let mut collected = state.lock().unwrap_or_else(PoisonError::into_inner);
        match message {
            MetricsMsg::Detected { .. } | MetricsMsg::Ended(_) | MetricsMsg::NotDurable => {}
            MetricsMsg::Snapshot { reply } => {
                let _ = reply.send(collected.clone());
            }
            #[cfg(any(test, feature = "test-util"))]
            MetricsMsg::Panic => panic!("asked to panic"),
        }
        collected.total_attempts += 0;
        Ok(())
    }
}

/// What was collected so far.
pub(crate) fn snapshot(collected: &Collected) -> RecoveryMetricsSnapshot {
    collected.lock().unwrap_or_else(PoisonError::into_inner).clone()
}
