//! The strategies that Backstop brings along, one module each with its settings and defaults.
//!
//! All of them only compute an answer and name a remedy; carrying it out is the business of the
//! session's client, the host or the next turn. Attempts count from 1: `max_retries: 2` answers `retry`
//! to attempts 1 and 2 and `next_strategy` to attempt 3. A setting that makes no sense is its default.

pub mod abort;
pub mod compact;
pub mod degrade;
pub mod escalate;
pub mod fallback_model;
pub mod remind_and_retry;
pub mod retry;
pub mod rollback;
pub mod skip;
pub mod suggested;
pub mod summarize;
pub mod truncate;

mod last_words;
mod reminders;
#[cfg(test)]
mod totality;
