//! `skip`: leaves the sub-task out and goes on. It has no settings.
//!
//! The next turn says so ([`Turn::skip`](crate::Turn::skip)). A client may refuse it, as a self-healing loop beyond
//! `max_skips` does. Where nothing redoes the turn, nobody could
//! leave anything out, and the chain goes on.
//!
//! ```yaml
//! session_error:
//!   chain:
//!     - strategy: retry
//!     - strategy: skip
//! ```

use crate::policy::{Answer, Remedy};
use crate::strategy::{Attempt, Decide};

pub(crate) struct Skip;

impl Decide for Skip {
    fn name(&self) -> &str {
        "skip"
    }

    fn decide(&self, _attempt: &Attempt) -> Answer {
        Answer::success_with("the sub-task is left out", Remedy::Skip)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::strategy::testing::{remedy_of, trial};

    #[test]
    fn it_leaves_the_sub_task_out() {
        assert_eq!(remedy_of(&Skip, &trial(json!({})).attempt()), Some(Remedy::Skip));
    }
}
