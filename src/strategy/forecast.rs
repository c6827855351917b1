use std::sync::Arc;
use std::time::Duration;

use super::{Attempt, AttemptParts, Strategy, StrategyRegistry};
use crate::failure::{RecoveryError, SessionId};
use crate::policy::machine::Execute;
use crate::policy::{Answer, Backoff, Forecast, Luck, RecoveryConfig};

/// What the built-in strategies would do about a failure that comes back after every redo: the worst
/// case, without doing any of it. `deadline` counts from the failure's time.
///
/// ```
/// use backstop::failure::{PatternRegistry, Report, Timestamp};
/// use backstop::{RecoveryConfig, strategy};
/// use std::time::Duration;
///
/// let found = PatternRegistry::new().detect_first(&Report::text("503 overloaded"), Timestamp::default());
/// let forecast = strategy::forecast(&RecoveryConfig::default(), found.failure().unwrap(), None);
/// // Two redos after up to 2 s and 4 s, a compaction, then the end.
/// assert_eq!((forecast.redos, forecast.waiting.longest), (3, Duration::from_secs(6)));
/// assert_eq!(forecast.verdict.name(), "aborted");
/// ```
pub fn forecast(config: &RecoveryConfig, error: &RecoveryError, deadline: Option<Duration>) -> Forecast {
    let strategies = StrategyRegistry::new();
    Forecast::of(config, error, deadline, |execute, error, luck| {
        let Some(Strategy::Computes(strategy)) = strategies.get(&execute.plan.strategy) else { return None };
        let answer = strategy.decide(&attempt(execute, error));
        Some(if luck == Luck::Best && is_jittered(execute) { lucky(answer) } else { answer })
    })
}

/// Only `retry` draws its waits.
fn is_jittered(execute: &Execute) -> bool {
    let jitter = execute.plan.config.flag("jitter").unwrap_or(Backoff::default().jitter);
    &*execute.plan.strategy == "retry" && jitter
}

fn lucky(mut answer: Answer) -> Answer {
    if let Answer::Retry { delay, .. } = &mut answer {
        *delay = delay.mul_f64(Backoff::SHORTEST_SHARE);
    }
    answer
}

/// The attempt as a strategy would see it, its jitter off.
fn attempt(execute: &Execute, error: &Arc<RecoveryError>) -> Attempt {
    Attempt::from(AttemptParts {
        session: SessionId::new("forecast").expect("the text is not empty"),
        error: Arc::clone(error),
        number: execute.attempt,
        seq: execute.seq,
        config: execute.plan.clone().with("jitter", false).config,
        earlier: Arc::default(),
        client: None,
        seed: execute.seed,
    })
}
