//! `rollback`: goes back to a checkpoint, then redoes the turn.
//!
//! | setting | default | meaning |
//! | --- | --- | --- |
//! | `checkpoint` | the last good one | the checkpoint's name |
//!
//! What follows is told why: the failure's kind and, fenced, its words. It needs a client, or a host that takes directives; where nobody can go back, the chain goes on.
//!
//! ```yaml
//! kinds:
//!   verification_failed:
//!     chain:
//!       - strategy: rollback
//!         config: { checkpoint: tests-green }
//!       - strategy: escalate
//! ```

use crate::failure::fence;
use crate::policy::{Answer, Remedy};
use crate::strategy::settings::words;
use crate::strategy::{Attempt, Decide};

pub(crate) struct Rollback;

impl Decide for Rollback {
    fn name(&self) -> &str {
        "rollback"
    }

    fn decide(&self, attempt: &Attempt) -> Answer {
        let checkpoint = words(attempt.config(), "checkpoint").map(Into::into);
        let error = attempt.error();
        attempt.inject(format!("[RECOVERY] The work was taken back. {}", fence(&error.kind, &error.message)));
        Answer::success_with("the session goes back to a checkpoint", Remedy::Rollback { checkpoint })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::strategy::testing::{remedy_of, trial};

    #[test]
    fn it_goes_back_to_the_named_checkpoint_else_to_the_last() {
        let remedy = |settings| remedy_of(&Rollback, &trial(settings).attempt());
        assert_eq!(remedy(json!({"checkpoint": "green"})), Some(Remedy::Rollback { checkpoint: Some("green".into()) }));
        for last in [json!({}), json!({"checkpoint": " "}), json!({"checkpoint": 3})] {
            assert_eq!(remedy(last), Some(Remedy::Rollback { checkpoint: None }));
        }
    }
}
