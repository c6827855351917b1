//! `compact`: has the conversation's history compacted, then the turn redone.
//!
//! | setting | default | meaning |
//! | --- | --- | --- |
//! | `preserve` | nothing special | a text or a list of texts, passed to the client: what it must keep |
//!
//! It needs a client, or a host that takes directives. A compaction counts only if whoever made it says
//! that it worked; otherwise the chain goes on.
//!
//! ```yaml
//! session_error:
//!   chain:
//!     - strategy: compact
//!       config: { preserve: [todos, open files] }
//!     - strategy: abort
//! ```

use crate::policy::{Answer, Remedy};
use crate::strategy::{Attempt, Decide};

pub(crate) struct Compact;

impl Decide for Compact {
    fn name(&self) -> &str {
        "compact"
    }

    fn decide(&self, attempt: &Attempt) -> Answer {
        let preserve = attempt.config().texts("preserve").into_iter().map(Into::into).collect();
        Answer::success_with("the history is compacted", Remedy::Compact { preserve })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::strategy::testing::{remedy_of, trial};

    #[test]
    fn what_is_to_be_kept_reaches_the_client() {
        let kept = |settings| remedy_of(&Compact, &trial(settings).attempt());
        let both = Remedy::Compact { preserve: vec!["todos".into(), "files".into()] };
        assert_eq!(kept(json!({"preserve": ["todos", "files"]})), Some(both));
        assert_eq!(kept(json!({"preserve": "todos"})), Some(Remedy::Compact { preserve: vec!["todos".into()] }));
        assert_eq!(kept(json!({"preserve": 7})), Some(Remedy::Compact { preserve: vec![] }));
    }
}
