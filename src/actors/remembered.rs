//! What is remembered of a session on its way to the disk: made text only where it is written or kept long.

use std::sync::Arc;

use crate::failure::{SessionId, Timestamp};
use crate::policy::Limits;
use crate::policy::session::SessionMemory;
use crate::state::StateRecord;

/// A session's memory, as a value while it changes often and as text while it rests.
#[derive(Debug, Clone)]
pub(crate) enum Remembered {
    /// Small, for sessions that nobody uses.
    Text(Arc<[u8]>),
    /// Cheap to make: an episode that ends before it is written never becomes text.
    Value(Arc<SessionMemory>),
}

impl Remembered {
    /// The text that the log keeps.
    pub fn text(&self) -> Arc<[u8]> {
        match self {
            Self::Text(text) => Arc::clone(text),
            // Maps have text keys and numbers are finite, so this cannot fail; if it did, reading would
            // say so.
            Self::Value(memory) => serde_json::to_vec(&**memory).unwrap_or_default().into(),
        }
    }

    /// The memory itself.
    ///
    /// # Errors
    ///
    /// When the text is not what this version writes.
    pub fn value(&self) -> Result<SessionMemory, serde_json::Error> {
        match self {
            Self::Text(text) => serde_json::from_slice(text),
            Self::Value(memory) => Ok((**memory).clone()),
        }
    }
}

/// A session's newest memory.
#[derive(Debug, Clone)]
pub(crate) struct Stored {
    pub revision: u64,
    pub memory: Remembered,
    pub has_episode: bool,
    /// From when on it need not be remembered any more (R11).
    pub spent_from: Option<Timestamp>,
}

impl Stored {
    /// What is to be remembered now.
    pub fn of(memory: &SessionMemory, limits: &Limits, revision: u64, now: Timestamp) -> Self {
        let snapshot = memory.snapshot();
        let (has_episode, spent_from) = (snapshot.open_episode().is_some(), snapshot.spent_from(limits, now));
        Self { revision, memory: Remembered::Value(Arc::new(snapshot)), has_episode, spent_from }
    }

    /// The same for a memory that was read from this text.
    pub fn read(text: Arc<[u8]>, memory: &SessionMemory, limits: &Limits, revision: u64, now: Timestamp) -> Self {
        let (has_episode, spent_from) = (memory.open_episode().is_some(), memory.spent_from(limits, now));
        Self { revision, memory: Remembered::Text(text), has_episode, spent_from }
    }

    /// Takes as little room as possible from now on.
    pub fn rest(&mut self) {
        self.memory = Remembered::Text(self.memory.text());
    }
}

/// A record that is to be written, unless a newer one of its session takes its place first.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    pub session: SessionId,
    pub revision: u64,
    /// `None`: the session is forgotten.
    pub memory: Option<Remembered>,
}

impl Draft {
    pub fn record(&self) -> StateRecord {
        let memory = self.memory.as_ref().map(Remembered::text);
        StateRecord { session: self.session.clone(), revision: self.revision, memory }
    }
}
