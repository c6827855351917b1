//! `suggested`: does what the detector suggests for the failure. It has no settings.
//!
//! Each attempt is one of the strategy that the failure's suggested action names, with its defaults; where
//! nothing is suggested, the chain goes on.
//!
//! ```yaml
//! session_error:
//!   chain:
//!     - strategy: suggested
//!     - strategy: escalate
//! ```

use super::abort::Abort;
use super::degrade::Degrade;
use super::escalate::Escalate;
use super::remind_and_retry::RemindAndRetry;
use super::retry::Retry;
use super::rollback::Rollback;
use super::skip::Skip;
use crate::failure::RecoveryAction;
use crate::policy::Answer;
use crate::strategy::{Attempt, Decide};

pub(crate) struct Suggested;

impl Decide for Suggested {
    fn name(&self) -> &str {
        "suggested"
    }

    fn decide(&self, attempt: &Attempt) -> Answer {
        match attempt.error().suggested_action {
            RecoveryAction::Retry => Retry.decide(attempt),
            RecoveryAction::RemindAndRetry => RemindAndRetry.decide(attempt),
            RecoveryAction::Rollback => Rollback.decide(attempt),
            RecoveryAction::Degrade => Degrade.decide(attempt),
            RecoveryAction::Skip => Skip.decide(attempt),
            RecoveryAction::Escalate => Escalate.decide(attempt),
            RecoveryAction::Abort => Abort.decide(attempt),
            RecoveryAction::None => Answer::next_strategy("nothing is suggested"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::failure::Kind;
    use crate::strategy::testing::trial;

    #[test]
    fn it_follows_the_detector() {
        let answer = |kind| Suggested.decide(&trial(json!({})).kind(kind).attempt()).status();
        assert_eq!(answer(Kind::RateLimit), "retry");
    }
}
