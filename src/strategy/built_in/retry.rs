//! `retry`: the same turn again, after a wait that grows.
//!
//! | setting | default | meaning |
//! | --- | --- | --- |
//! | `max_retries` | 2 | redos before the chain goes on; 0 is none |
//! | `backoff_ms` | 2000 | the wait before the first redo |
//! | `backoff_factor` | 2 | what each further wait is multiplied by |
//! | `max_backoff_ms` | 30 000 | no wait of its own is longer; a wait that the server states replaces a shorter one |
//! | `jitter` | true | spreads each wait over 50–100 % of its length; `false` gives the exact formula |
//!
//! ```yaml
//! session_error:
//!   chain:
//!     - strategy: retry
//!       config: { max_retries: 4, backoff_ms: 500, backoff_factor: 3 }
//!     - strategy: abort
//! ```

use crate::policy::{Answer, Backoff, StepConfig};
use crate::strategy::settings::{all_made, attempts, number_within};
use crate::strategy::{Attempt, Decide};

const MAX_RETRIES: u32 = 2;

pub(crate) struct Retry;

impl Decide for Retry {
    fn name(&self) -> &str {
        "retry"
    }

    fn decide(&self, attempt: &Attempt) -> Answer {
        let most = attempts(attempt.config(), "max_retries", MAX_RETRIES);
        all_made(attempt, most).unwrap_or_else(|| {
            let delay = backoff(attempt.config()).delay(attempt.number(), attempt.seed());
            Answer::retry(delay, format!("the turn is redone, attempt {} of {most}", attempt.number()))
        })
    }
}

fn backoff(config: &StepConfig) -> Backoff {
    let default = Backoff::default();
    Backoff {
        base: config.millis("backoff_ms").unwrap_or(default.base),
        factor: number_within(config, "backoff_factor", 0.0..=f64::MAX, default.factor),
        cap: config.millis("max_backoff_ms").unwrap_or(default.cap),
        jitter: config.flag("jitter").unwrap_or(default.jitter),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::strategy::testing::trial;

    fn waits(settings: serde_json::Value) -> Vec<Option<u128>> {
        (1..=4)
            .map(|number| match Retry.decide(&trial(settings.clone()).number(number).attempt()) {
                Answer::Retry { delay, remedy: None, .. } => Some(delay.as_millis()),
                Answer::NextStrategy { .. } => None,
                other => panic!("{other:?}"),
            })
            .collect()
    }

    #[test]
    fn two_retries_wait_two_and_four_seconds_and_the_third_attempt_moves_on() {
        assert_eq!(waits(json!({"jitter": false})), [Some(2_000), Some(4_000), None, None]);
    }

    #[test]
    fn no_retries_move_on_at_once() {
        assert_eq!(waits(json!({"max_retries": 0})), [None; 4]);
    }

    #[test]
    fn every_setting_counts() {
        let settings = json!({
            "max_retries": 3, "backoff_ms": 100, "backoff_factor": 5, "max_backoff_ms": 600, "jitter": false,
        });
        assert_eq!(waits(settings), [Some(100), Some(500), Some(600), None]);
    }

    #[test]
    fn nonsense_settings_are_the_defaults() {
        let settings = json!({
            "max_retries": "three", "backoff_ms": -5, "backoff_factor": -2, "max_backoff_ms": [], "jitter": false,
        });
        assert_eq!(waits(settings), waits(json!({"jitter": false})));
    }

    #[test]
    fn jitter_comes_from_the_seed_of_the_attempt() {
        let wait = |seed| Retry.decide(&trial(json!({})).seed(seed).attempt());
        assert_eq!(wait(5), wait(5));
        assert_ne!(wait(5), wait(6));
        let Answer::Retry { delay, .. } = wait(5) else { panic!("{:?}", wait(5)) };
        assert!((Duration::from_secs(1)..=Duration::from_secs(2)).contains(&delay));
    }
}
