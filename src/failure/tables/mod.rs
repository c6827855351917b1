//! The built-in knowledge, as data: one table for each family of failures.
//!
//! Rules with a higher rank win; within a rank the order of the tables and of the rules in them
//! decides. The ranks say how much a match proves:
//!
//! | rank | what matched |
//! | --- | --- |
//! | 90 | a fact that settles the matter whatever else is said (unpaid, overflow with numbers) |
//! | 70 | a specific phrase or code of one system |
//! | 50 | a phrase that many systems use for one thing |
//! | 30 | a generic word, trusted only when nothing better speaks |
//! | 10 | the HTTP status alone |
//! | 5 | the exit code alone |

use super::rule::Rule;

mod limits;

/// Every built-in rule.
pub(crate) fn all() -> Vec<&'static Rule> {
    [limits::RULES].into_iter().flatten().collect()
}
