//! What is remembered of a session on its way to the disk: made text only where it is written or kept long.

use std::sync::Arc;

use crate::failure::{SessionId, Timestamp};
use crate::policy::Limits;
use crate::policy::session::{Compact, SessionMemory};
use crate::state::StateRecord;

/// A session's memory, as a value while it changes often and in less room while it rests.
#[derive(Debug, Clone)]
pub(crate) enum Remembered {
    /// The smallest, for sessions that nobody uses and that have nothing but a few numbers.
    Compact(Compact),
    /// For other sessions that nobody uses, and as the store handed it over.
    Text(Arc<[u8]>),
    /// Cheap to make: an episode that ends before it is written never becomes text.
    Value(Arc<SessionMemory>),
}

impl Remembered {
    /// The text that the log keeps.
    pub fn text(&self) -> Arc<[u8]> {
        match self {
            Self::Text(text) => Arc::clone(text),
            Self::Value(memory) => text_of(memory),
            Self::Compact(compact) => text_of(&compact.memory()),
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
            Self::Compact(compact) => Ok(compact.memory()),
        }
    }
}

fn text_of(memory: &SessionMemory) -> Arc<[u8]> {
    // Maps have text keys and numbers are finite, so this cannot fail; if it did, reading would say so.
    serde_json::to_vec(memory).unwrap_or_default().into()
}

/// A session's newest memory: as many of these as there are sessions, so it is kept small.
#[derive(Debug, Clone)]
pub(crate) struct Stored {
    pub revision: u64,
    pub memory: Remembered,
    /// From when on it need not be remembered any more (R11); [`NEVER`] while an episode is open.
    spent_from: Timestamp,
}

const NEVER: Timestamp = Timestamp::from_millis(u64::MAX);
/// The last moment that is one.
const AT_LAST: Timestamp = Timestamp::from_millis(u64::MAX - 1);

impl Stored {
    /// What is to be remembered now.
    pub fn of(memory: &SessionMemory, limits: &Limits, revision: u64, now: Timestamp) -> Self {
        let snapshot = memory.snapshot();
        let spent_from = spent_from(&snapshot, limits, now);
        Self { revision, memory: Remembered::Value(Arc::new(snapshot)), spent_from }
    }

    /// The same for a memory that was read from this text.
    pub fn read(text: Arc<[u8]>, memory: &SessionMemory, limits: &Limits, revision: u64, now: Timestamp) -> Self {
        let spent_from = spent_from(memory, limits, now);
        Self { revision, memory: Remembered::Text(text), spent_from }
    }

    /// Whether an episode is open.
    pub fn has_episode(&self) -> bool {
        self.spent_from == NEVER
    }

    /// Whether it need not be remembered any more (R11).
    pub fn is_spent(&self, now: Timestamp) -> bool {
        now > self.spent_from
    }

    /// Takes as little room as possible from now on.
    pub fn rest(&mut self) {
        let Remembered::Value(memory) = &self.memory else { return };
        self.memory = memory.compact().map_or_else(|| Remembered::Text(text_of(memory)), Remembered::Compact);
    }
}

fn spent_from(memory: &SessionMemory, limits: &Limits, now: Timestamp) -> Timestamp {
    memory.spent_from(limits, now).map_or(NEVER, |at| at.min(AT_LAST))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_of_each_session_stays_small() {
        assert!(size_of::<Stored>() <= 48, "{}", size_of::<Stored>());
    }
}
