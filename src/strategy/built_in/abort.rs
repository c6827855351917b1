//! `abort`: gives up.
//!
//! | setting | default | meaning |
//! | --- | --- | --- |
//! | `message` | "recovery was given up" | the verdict's reason, also in the final injection |
//!
//! The final injection, marked `[RECOVERY ABORTED]`, tells the model that the host will not redo the
//! turn; it is delivered inside the verdict.
//!
//! ```yaml
//! session_error:
//!   chain:
//!     - strategy: retry
//!     - strategy: abort
//!       config: { message: The provider is down. Stop here. }
//! ```

use super::last_words::last_words;
use crate::policy::Answer;
use crate::strategy::{Attempt, Decide};

const MESSAGE: &str = "recovery was given up";

pub(crate) struct Abort;

impl Decide for Abort {
    fn name(&self) -> &str {
        "abort"
    }

    fn decide(&self, attempt: &Attempt) -> Answer {
        Answer::abort(last_words(attempt, "[RECOVERY ABORTED]", MESSAGE))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::strategy::testing::trial;

    #[test]
    fn it_gives_up_with_the_configured_message() {
        let attempt = trial(json!({"message": "stop here"})).attempt();
        assert_eq!(Abort.decide(&attempt), Answer::abort("stop here"));
        assert!(attempt.take_injections()[0].as_str().starts_with("[RECOVERY ABORTED] stop here"));
    }

    #[test]
    fn without_a_message_it_gives_up_all_the_same() {
        assert_eq!(Abort.decide(&trial(json!({})).attempt()), Answer::abort(MESSAGE));
    }
}
