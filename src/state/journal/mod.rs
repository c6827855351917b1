//! The journal: one JSON line per decision (R15), for people; nothing is ever taken back from it.

mod file;
mod line;
mod queue;
mod read;

pub(crate) use queue::Journal;
pub use read::JournalReader;
pub(super) use read::unreadable_lines;

/// The file that grows.
const CURRENT: &str = "journal.jsonl";
/// The one before it; both together stay within the bound.
const OLDER: &str = "journal.1.jsonl";
