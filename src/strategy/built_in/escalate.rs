//! `escalate`: hands the session over to a person.
//!
//! | setting | default | meaning |
//! | --- | --- | --- |
//! | `message` | "a person must decide" | the verdict's reason, also in the final injection |
//!
//! The final injection, marked `[RECOVERY ESCALATED]`, is delivered inside the verdict.
//!
//! ```yaml
//! kinds:
//!   auth:
//!     chain:
//!       - strategy: fallback_model
//!         config: { model: other/mini-1 }
//!       - strategy: escalate
//!         config: { message: The key for acme is not accepted. }
//! ```

use super::last_words::last_words;
use crate::policy::Answer;
use crate::strategy::{Attempt, Decide};

const MESSAGE: &str = "a person must decide";

pub(crate) struct Escalate;

impl Decide for Escalate {
    fn name(&self) -> &str {
        "escalate"
    }

    fn decide(&self, attempt: &Attempt) -> Answer {
        Answer::escalate(last_words(attempt, "[RECOVERY ESCALATED]", MESSAGE))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::strategy::testing::trial;

    #[test]
    fn it_hands_over_with_the_configured_message() {
        let attempt = trial(json!({"message": "ask Kim"})).attempt();
        assert_eq!(Escalate.decide(&attempt), Answer::escalate("ask Kim"));
        assert!(attempt.take_injections()[0].as_str().starts_with("[RECOVERY ESCALATED] ask Kim"));
        assert_eq!(Escalate.decide(&trial(json!({})).attempt()), Answer::escalate(MESSAGE));
    }
}
