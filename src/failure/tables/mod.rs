//! The built-in knowledge, as data: one table for each family of failures.
//!
//! Rules with a higher rank win; within a rank the order of the tables and of the rules in them
//! decides. A rank says how much a match proves:
//!
//! | rank | what matched |
//! | --- | --- |
//! | 95 | how a reply says that it ended (`finish_reason`) |
//! | 90 | words that settle the matter whatever else is said: unpaid, a per-minute limit |
//! | 80–88 | fixed frames and codes of one system: overflow, pairing, edits, guards, certificates |
//! | 60–78 | phrases that many systems use for one thing; the more specific the higher |
//! | 30–58 | words that are trusted only when nothing better speaks |
//! | 10 | the HTTP status alone |
//! | 5 | the exit code or signal alone |

use super::rule::Rule;

mod access;
mod context;
mod edit;
mod environment;
mod generated;
mod guard;
mod json;
mod network;
mod pairing;
mod quota;
mod server;
mod status;
mod throttle;
mod tool;
mod verify;

/// Every built-in rule.
pub(crate) fn all() -> Vec<&'static Rule> {
    [
        quota::RULES,
        throttle::RULES,
        context::RULES,
        pairing::RULES,
        edit::RULES,
        guard::RULES,
        json::RULES,
        generated::RULES,
        access::RULES,
        network::RULES,
        server::RULES,
        environment::RULES,
        tool::RULES,
        verify::RULES,
        status::RULES,
    ]
    .into_iter()
    .flatten()
    .collect()
}
