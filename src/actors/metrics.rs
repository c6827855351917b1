//! Aggregates what sessions tell it, once per episode.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ractor::{Actor, ActorProcessingErr, ActorRef};

use super::messages::MetricsMsg;
use super::outcome::Outcome;
use crate::state::{EpisodeOutcome, RecoveryMetricsCollector, RecoveryMetricsSnapshot};
use crate::strategy::StrategyRegistry;

pub(crate) struct MetricsActor;

/// The counters, kept outside the actor, so that no panic loses them.
#[derive(Clone)]
pub(crate) struct Collected {
    collector: Arc<Mutex<RecoveryMetricsCollector>>,
    strategies: StrategyRegistry,
}

impl Collected {
    fn lock(&self) -> MutexGuard<'_, RecoveryMetricsCollector> {
        self.collector.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ended(&self, outcome: &Outcome) {
        let Some(error) = &outcome.error else { return };
        let mut collector = self.lock();
        for attempt in &outcome.attempts {
            // A strategy registered since is a label of its own too.
            if self.strategies.known(&attempt.strategy) {
                collector.register_strategy(Arc::clone(&attempt.strategy));
            }
        }
        collector.record_episode(&EpisodeOutcome {
            verdict: &outcome.verdict,
            category: error.category,
            kind: &error.kind,
            attempts: &outcome.attempts,
            started: outcome.started,
            ended: outcome.ended,
            thawed: outcome.thawed,
        });
    }
}

/// Counters at zero, with a label for each strategy.
pub(crate) fn collect(strategies: &StrategyRegistry) -> Collected {
    let collector = RecoveryMetricsCollector::new(strategies.names());
    Collected { collector: Arc::new(Mutex::new(collector)), strategies: strategies.clone() }
}

/// What was collected so far.
pub(crate) fn snapshot(collected: &Collected) -> RecoveryMetricsSnapshot {
    collected.lock().snapshot()
}

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
        match message {
            MetricsMsg::Detected { kind } => state.lock().record_error(&kind),
            MetricsMsg::Ended { detected, outcome } => {
                if let Some(kind) = detected {
                    state.lock().record_error(&kind);
                }
                state.ended(&outcome);
            }
            MetricsMsg::NotDurable => state.lock().record_refused_write(),
            MetricsMsg::Flush { done } => {
                let _ = done.send(());
            }
            #[cfg(any(test, feature = "test-util"))]
            MetricsMsg::Panic => panic!("asked to panic"),
        }
        Ok(())
    }
}
