//! The log's bytes: what is whole is read, whatever lies between, and nothing else (R10).

use backstop::state::decode::{read_log, write_log};
use backstop::state::{RecoveryState, StateRecord};

/// The input is a log, and also what a log of our own is spoilt with.
pub fn check(input: &[u8]) {
    let read = read_log(input);
    assert!(read.lost + read.torn <= input.len());
    assert!(read.records.len() <= input.len() / 25 + 1, "an entry takes at least its frame");
    assert!(read.records.is_sorted_by(|one, next| one.session < next.session), "one record of each session");
    for record in &read.records {
        // What the memory says may be anything; it is read or refused.
        if let Ok(Some(memory)) = record.read()
            && let Some(view) = RecoveryState::of(&record.session, &memory)
            && let Some(json) = view.to_json(RecoveryState::MAX_BYTES)
        {
            assert!(json.len() <= RecoveryState::MAX_BYTES);
            serde_json::from_slice::<RecoveryState>(&json).expect("a view that is written reads");
        }
    }
    let again = read_log(&write_log(&read.records));
    assert_eq!((&again.records, again.lost, again.torn), (&read.records, 0, 0));
    spoilt(input);
}

/// Of a good log a part of which was overwritten, the other records are read.
fn spoilt(with: &[u8]) {
    let own: Vec<_> =
        ["own one", "own two", "own three"].iter().zip(1..).map(|(id, revision)| record(id, revision)).collect();
    let whole = write_log(&own);
    let seed = with.iter().fold(with.len(), |sum, byte| sum.wrapping_mul(31).wrapping_add(usize::from(*byte)));
    let at = seed % whole.len();
    let end = (at + with.len()).min(whole.len());
    let mut bytes = whole.clone();
    bytes[at..end].copy_from_slice(&with[..end - at]);
    let read = read_log(&bytes);
    let touched = |from: usize, to: usize| at < to && from < end;
    for (index, record) in own.iter().enumerate() {
        let ends = |count: usize| write_log(&own[..count]).len();
        if !touched(ends(index), ends(index + 1)) {
            assert!(read.records.contains(record), "{record:?} was not touched");
        }
    }
    // Put between two records, it costs neither.
    let middle = write_log(&own[..1]).len();
    let mut bytes = whole[..middle].to_vec();
    bytes.extend_from_slice(with);
    bytes.extend_from_slice(&whole[middle..]);
    let read = read_log(&bytes);
    let is_known = |known: &&StateRecord| !own.iter().any(|own| own.session == known.session);
    let foreign = read.records.iter().filter(is_known).count();
    assert!(read.records.len() - foreign >= 2, "{:?}", read.records);
}

fn record(id: &str, revision: u64) -> StateRecord {
    let memory = format!("{{\"episodes\":{revision}}}").into_bytes();
    StateRecord { session: id.try_into().expect("not empty"), revision, memory: Some(memory.into()) }
}
