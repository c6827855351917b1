//! From the log's bytes to the live records. Pure.

use std::collections::BTreeSet;

use super::StateRecord;
use super::frame::{Entry, HEADER, Header, read_header, scan};
use super::index::Index;
use crate::failure::SessionId;
use crate::policy::session::SessionMemory;

/// What the log says, all in all.
#[derive(Debug, Default)]
pub(super) struct Replay {
    /// The live records.
    pub index: Index,
    /// Sessions whose views may show something older.
    pub stale: BTreeSet<SessionId>,
    /// Entries read.
    pub read: usize,
    /// Where the last good frame of the newest segment ends.
    pub end: usize,
    /// Unreadable bytes of the newest segment's last write, which was not finished.
    pub torn: usize,
    /// Some of them lie before good frames.
    pub is_gapped: bool,
    /// Unreadable bytes elsewhere: it is damaged, if there are any.
    pub lost: usize,
    /// How many records they held, or more.
    pub lost_entries: usize,
    /// The newest segment's header does not read.
    pub headless: bool,
    /// An older version wrote the newest segment.
    pub is_older: bool,
    /// Open episodes of which newer records may be lost.
    pub doubted: usize,
}

impl Replay {
    /// Reads the newest segment. Each segment begins with all that was live before it.
    pub fn newest(bytes: &[u8]) -> Self {
        let mut this = Self::default();
        this.add(bytes);
        this
    }

    /// Reads every segment, the oldest first: for when the newest one is damaged. A session that was
    /// forgotten meanwhile may come back by it; that is better than one lost.
    pub fn every<'a>(segments: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut this = Self::default();
        for bytes in segments {
            this.add(bytes);
        }
        this.stale.extend(this.index.iter().map(|record| record.session));
        this
    }

    /// Whether more is wrong than a last write that a crash cut short.
    pub fn is_damaged(&self) -> bool {
        self.headless || self.lost > 0
    }

    /// Marks every open episode: newer records may be lost, and the budget spent in them must not come back.
    pub fn doubt(&mut self) {
        let doubted: Vec<StateRecord> = self.index.iter().filter_map(doubted).collect();
        self.doubted = doubted.len();
        for record in doubted {
            self.index.apply(&record.session, record.revision, record.memory);
        }
    }

    fn add(&mut self, bytes: &[u8]) {
        let header = read_header(bytes);
        (self.headless, self.is_older) = (header == Header::Damaged, header == Header::Older);
        let found = scan(bytes, if self.headless { 0 } else { HEADER });
        for entry in &found.entries {
            self.apply(entry);
        }
        self.read += found.entries.len();
        (self.end, self.torn, self.is_gapped) = (found.end, found.torn, found.is_gapped);
        self.lost += found.lost;
        self.lost_entries += found.lost_entries;
        if self.headless && found.entries.is_empty() {
            // Nobody knows what it was.
            self.lost += std::mem::take(&mut self.torn);
            self.lost_entries += usize::from(found.lost_entries == 0);
        }
    }

    fn apply(&mut self, entry: &Entry<'_>) {
        let (session, revision, memory) = match *entry {
            Entry::Put { session, revision, memory } => (session, revision, Some(memory.into())),
            Entry::Forget { session, revision } => (session, revision, None),
            Entry::ViewsFresh => return self.stale.clear(),
        };
        let Ok(session) = SessionId::new(session) else { return };
        self.index.apply(&session, revision, memory);
        self.stale.insert(session);
    }
}

/// The record with its open episode in doubt, if it has one that reads.
fn doubted(record: StateRecord) -> Option<StateRecord> {
    let mut memory: SessionMemory = record.read().ok()??;
    memory.open_episode()?;
    memory.episode_mut()?.doubt();
    Some(StateRecord::new(record.session, record.revision, &memory))
}
