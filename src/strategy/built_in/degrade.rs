//! `degrade`: the turn again in the host's alternative way. It has no settings.
//!
//! The next turn says so ([`Turn::degraded`](crate::Turn::degraded)); what the alternative is, only the
//! host knows. A client may refuse it, as a self-healing loop without an alternative, or beyond `max_degrades`,
//! does. Where nothing redoes the turn, nobody could use it, and the chain goes on.
//!
//! ```yaml
//! session_error:
//!   chain:
//!     - strategy: retry
//!     - strategy: degrade
//! ```

use crate::policy::{Answer, Remedy};
use crate::strategy::{Attempt, Decide};

pub(crate) struct Degrade;

impl Decide for Degrade {
    fn name(&self) -> &str {
        "degrade"
    }

    fn decide(&self, _attempt: &Attempt) -> Answer {
        Answer::success_with("the host's alternative is used", Remedy::Degrade)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::strategy::testing::{remedy_of, trial};

    #[test]
    fn it_asks_for_the_hosts_alternative() {
        assert_eq!(remedy_of(&Degrade, &trial(json!({})).attempt()), Some(Remedy::Degrade));
    }
}
