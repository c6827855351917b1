use std::collections::HashMap;
use std::sync::Arc;

use super::frame::Entry;
use super::{SessionSummary, StateError, StateRecord};
use crate::failure::SessionId;

/// The last record of every session that is not forgotten.
#[derive(Debug, Default)]
pub(super) struct Index {
    records: HashMap<SessionId, Live>,
    bytes: u64,
}

#[derive(Debug)]
struct Live {
    revision: u64,
    memory: Arc<[u8]>,
}

impl Index {
    /// What of a batch is to be written: the highest revision of each session, without what is stored.
    pub fn changes<'a>(&self, batch: &'a [StateRecord]) -> Result<Vec<&'a StateRecord>, StateError> {
        let mut changes: Vec<&StateRecord> = Vec::with_capacity(batch.len());
        let mut places: HashMap<&SessionId, usize> = HashMap::with_capacity(batch.len());
        for record in batch {
            let bytes = size(record);
            if bytes > StateRecord::MAX_BYTES {
                let session = record.session.clone();
                return Err(StateError::TooLarge { session, bytes, limit: StateRecord::MAX_BYTES });
            }
            let place = *places.entry(&record.session).or_insert(changes.len());
            match changes.get_mut(place) {
                None => changes.push(record),
                Some(known) if known.revision <= record.revision => *known = record,
                Some(_) => {}
            }
        }
        for record in &changes {
            if let Some(live) = self.records.get(&record.session)
                && record.revision <= live.revision
                && !live.is(record)
            {
                let session = record.session.clone();
                return Err(StateError::Stale { session, known: live.revision, given: record.revision });
            }
        }
        changes.retain(|record| match self.records.get(&record.session) {
            Some(live) => !live.is(record),
            None => record.memory.is_some(),
        });
        Ok(changes)
    }

    /// Puts a record in its predecessor's place.
    pub fn apply(&mut self, session: &SessionId, revision: u64, memory: Option<Arc<[u8]>>) {
        let added = memory.as_ref().map_or(0, |memory| weight(session, memory));
        let old = match memory {
            Some(memory) => self.records.insert(session.clone(), Live { revision, memory }),
            None => self.records.remove(session),
        };
        let removed = old.map_or(0, |old| weight(session, &old.memory));
        self.bytes = self.bytes + added - removed;
    }

    pub fn get(&self, session: &SessionId) -> Option<StateRecord> {
        let live = self.records.get(session)?;
        Some(live.record(session))
    }

    pub fn iter(&self) -> impl Iterator<Item = StateRecord> {
        self.records.iter().map(|(session, live)| live.record(session))
    }

    /// What the live records take in a log.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn list(&self) -> Vec<SessionSummary> {
        let mut lines: Vec<_> = self.iter().map(|record| SessionSummary::of(&record)).collect();
        lines.sort_by(|a, b| a.session.cmp(&b.session));
        lines
    }
}

impl Live {
    fn is(&self, record: &StateRecord) -> bool {
        self.revision == record.revision && record.memory.as_ref().is_some_and(|memory| *memory == self.memory)
    }

    fn record(&self, session: &SessionId) -> StateRecord {
        StateRecord { session: session.clone(), revision: self.revision, memory: Some(Arc::clone(&self.memory)) }
    }
}

fn size(record: &StateRecord) -> usize {
    record.session.as_str().len() + record.memory.as_ref().map_or(0, |memory| memory.len())
}

/// What a record takes in a log.
fn weight(session: &SessionId, memory: &[u8]) -> u64 {
    Entry::Put { session: session.as_str(), revision: 0, memory }.frame_length() as u64
}
