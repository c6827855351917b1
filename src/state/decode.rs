//! The state's bytes without a directory, for fuzzing.

use super::StateRecord;
use super::frame::{Entry, header};
use super::import::taken_over;
use super::replay::Replay;

/// What a log's bytes say.
#[derive(Debug)]
pub struct Log {
    /// The last record of every session that is not forgotten, in the order of their ids.
    pub records: Vec<StateRecord>,
    /// Unreadable bytes before the last good entry.
    pub lost: usize,
    /// Unreadable bytes after it.
    pub torn: usize,
}

/// Reads one segment, as a start does.
pub fn read_log(bytes: &[u8]) -> Log {
    let replay = Replay::newest(bytes);
    let mut records: Vec<_> = replay.index.iter().collect();
    records.sort_by(|one, other| one.session.cmp(&other.session));
    Log { records, lost: replay.lost, torn: replay.torn }
}

/// One segment that holds these records.
pub fn write_log(records: &[StateRecord]) -> Vec<u8> {
    let mut bytes = header(1).to_vec();
    records.iter().for_each(|record| Entry::of(record).write(0, &mut bytes));
    bytes
}

/// What a state file of this name becomes, if it can be taken over.
pub fn import(name: &str, bytes: &[u8]) -> Option<StateRecord> {
    let id = name.strip_prefix("recovery-")?.strip_suffix(".json")?;
    let (session, memory) = taken_over(name, id, bytes).ok()?;
    Some(StateRecord::new(session, 1, &memory))
}
