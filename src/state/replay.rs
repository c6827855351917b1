//! From the log's bytes to the live records. Pure.

use std::collections::BTreeSet;

use super::frame::{Entry, HEADER, Header, read_header, scan};
use super::index::Index;
use crate::failure::SessionId;

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
    /// Unreadable bytes at the newest segment's end.
    pub torn: usize,
    /// Unreadable bytes elsewhere: it is damaged, if there are any.
    pub lost: usize,
    /// The newest segment's header does not read.
    pub headless: bool,
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

    fn add(&mut self, bytes: &[u8]) {
        self.headless = read_header(bytes) == Header::Damaged;
        let found = scan(bytes, if self.headless { 0 } else { HEADER });
        for entry in &found.entries {
            self.apply(entry);
        }
        self.read += found.entries.len();
        (self.end, self.torn) = (found.end, found.torn);
        self.lost += found.lost;
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
