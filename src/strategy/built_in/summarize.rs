//! `summarize`: has the history replaced by a summary, then the turn redone; once.
//!
//! | setting | default | meaning |
//! | --- | --- | --- |
//! | `model` | the session's own | the model that writes the summary, `provider/name` or `name` |
//!
//! A client that cannot summarise is asked to prompt for a summary; where nobody can do either, the
//! next turn is told to begin with one.
//!
//! ```yaml
//! context_window:
//!   chain:
//!     - strategy: summarize
//!       config: { model: acme/mini-2 }
//!     - strategy: abort
//! ```

use crate::policy::{Answer, Remedy};
use crate::strategy::settings::{all_made, model};
use crate::strategy::{Attempt, Decide};

/// A summary of a summary frees nothing.
const MAX_SUMMARIES: u32 = 1;

pub(crate) struct Summarize;

impl Decide for Summarize {
    fn name(&self) -> &str {
        "summarize"
    }

    fn decide(&self, attempt: &Attempt) -> Answer {
        all_made(attempt, MAX_SUMMARIES).unwrap_or_else(|| {
            Answer::success_with("the history is summarised", Remedy::Summarize { model: model(attempt.config()) })
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::strategy::testing::{remedy_of, trial};

    #[test]
    fn the_configured_model_writes_the_summary() {
        let remedy = |settings| remedy_of(&Summarize, &trial(settings).attempt());
        assert_eq!(
            remedy(json!({"model": " acme/mini "})),
            Some(Remedy::Summarize { model: Some("acme/mini".into()) })
        );
        for none in [json!({}), json!({"model": ""}), json!({"model": 7})] {
            assert_eq!(remedy(none), Some(Remedy::Summarize { model: None }));
        }
    }

    #[test]
    fn it_summarises_once() {
        assert_eq!(Summarize.decide(&trial(json!({})).number(2).attempt()).status(), "next_strategy");
    }
}
