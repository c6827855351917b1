use std::sync::Arc;
use std::time::Duration;

use super::report::RecoverySummary;
use crate::actors::Outcome;
use crate::engine::{RecoveryEngine, StopCause, ToReport};
use crate::failure::SessionId;
use crate::policy::Verdict;

/// Runs the recovery of single errors through an engine, and sums up what came of them.
///
/// Each is [`RecoveryEngine::recover`], with the session's own chains, limits and client.
#[derive(Debug, Clone)]
pub struct RecoveryExecutor {
    engine: RecoveryEngine,
    summary: RecoverySummary,
}

/// What one recovery came to.
#[derive(Debug, Clone, PartialEq)]
pub struct RecoveryResult {
    /// The session goes on.
    pub success: bool,
    /// The last strategy that did something; `None` where none did.
    pub action_taken: Option<Arc<str>>,
    /// Executions of strategies.
    pub attempts: u32,
    /// From the report to the verdict.
    pub total_time: Duration,
    /// The verdict in words.
    pub message: Arc<str>,
    /// A degraded way, an omission or another model was used.
    pub fallback_used: bool,
}

impl RecoveryExecutor {
    /// An executor over this engine.
    pub fn new(engine: &RecoveryEngine) -> Self {
        Self { engine: engine.clone(), summary: RecoverySummary::default() }
    }

    /// Recovers from one error.
    ///
    /// # Cancellation
    ///
    /// Dropping the future leaves the episode to the engine, and the summary without it.
    pub async fn execute(&mut self, session: &SessionId, error: impl ToReport) -> RecoveryResult {
        let outcome = match self.engine.recover(session, error, None).await {
            Ok(recovered) => recovered.outcome,
            Err(stopped) => match stopped.cause {
                StopCause::Verdict(outcome) => outcome,
                StopCause::Engine(error) => {
                    return RecoveryResult {
                        success: false,
                        action_taken: None,
                        attempts: 0,
                        total_time: Duration::ZERO,
                        message: error.to_string().into(),
                        fallback_used: false,
                    };
                }
            },
        };
        self.summary.count_all(&outcome);
        RecoveryResult::of(&outcome)
    }

    /// All recoveries so far.
    pub fn summary(&self) -> &RecoverySummary {
        &self.summary
    }
}

impl RecoveryResult {
    /// What an episode came to.
    pub fn of(outcome: &Outcome) -> Self {
        let did = outcome.attempts.iter().rfind(|attempt| &*attempt.result != "next_strategy");
        let mut counted = RecoverySummary::default();
        counted.count_all(outcome);
        Self {
            success: matches!(outcome.verdict, Verdict::Recovered(_)),
            action_taken: did.map(|attempt| Arc::clone(&attempt.strategy)),
            attempts: outcome.executions,
            total_time: outcome.elapsed(),
            message: outcome.verdict.to_string().into(),
            fallback_used: counted.fallback_used,
        }
    }
}
