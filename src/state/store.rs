use std::sync::Arc;
use std::time::Duration;

use super::{SessionSummary, StateError};
use crate::failure::SessionId;
use crate::policy::session::SessionMemory;

/// One session's whole state at one revision: what a store keeps.
///
/// It replaces the session's earlier record; it is no difference to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateRecord {
    /// The session.
    pub session: SessionId,
    /// Rises with every record of the session.
    pub revision: u64,
    /// The JSON text of its [`SessionMemory`]; `None`: the session is forgotten.
    pub memory: Option<Arc<[u8]>>,
}

impl StateRecord {
    /// The largest record, id and memory together, in bytes.
    ///
    /// Everything in a memory is bounded far below this; it keeps a mistake from filling the disk.
    pub const MAX_BYTES: usize = 4 * 1024 * 1024;

    /// A record of what is remembered now.
    ///
    /// ```
    /// use backstop::policy::session::SessionMemory;
    /// use backstop::state::StateRecord;
    ///
    /// let record = StateRecord::new("s1".try_into().unwrap(), 1, &SessionMemory::default());
    /// assert_eq!(record.read().unwrap(), Some(SessionMemory::default()));
    /// ```
    pub fn new(session: SessionId, revision: u64, memory: &SessionMemory) -> Self {
        // Maps have text keys and numbers are finite where they are built, so this cannot fail; if it
        // ever did, the record would say so when read.
        let json = serde_json::to_vec(&memory.snapshot()).unwrap_or_default();
        Self { session, revision, memory: Some(json.into()) }
    }

    /// A record that forgets the session.
    pub fn forgotten(session: SessionId, revision: u64) -> Self {
        Self { session, revision, memory: None }
    }

    /// The session's memory; `None` if the record forgets it.
    ///
    /// # Errors
    ///
    /// [`StateError::Unreadable`] when the text is not what this version writes.
    pub fn read(&self) -> Result<Option<SessionMemory>, StateError> {
        let Some(json) = &self.memory else { return Ok(None) };
        serde_json::from_slice(json)
            .map(Some)
            .map_err(|source| StateError::Unreadable { session: self.session.clone(), source })
    }
}

/// The right to write a place, as one holder has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// Rises with every holder of the place: what an earlier one appends is refused from then on.
    pub token: u64,
    /// For how long it is good from now on, unless it is [prolonged](RecoveryStateStore::hold); `None`:
    /// until the store is closed.
    pub lasts: Option<Duration>,
}

/// Where the state of sessions is kept: files, memory, nowhere, or a place shared by machines.
///
/// One caller owns a store and calls it from a thread that may block.
///
/// # Promises of an implementation
///
/// - What [`append`](Self::append) acknowledged is there after a crash, once.
/// - A batch that failed leaves everything acknowledged before as it was. Whether records of the
///   failed batch are found after a crash is not known, so the same batch may be appended again: a
///   record that is stored already, byte for byte, is no conflict.
/// - Of several records of one session in a batch only the one with the highest revision counts.
/// - A record whose revision is not above the stored one is refused ([`StateError::Stale`]): whoever
///   writes says by it which record he replaces.
/// - A place has one holder at a time: either a second one is refused ([`StateError::Locked`]), or it
///   gets a higher token and the first one's appends are refused ([`StateError::Superseded`]).
///
/// `state::conformance::check`, behind the feature `test-util`, asks a store for all of them.
///
/// ```
/// use backstop::policy::session::SessionMemory;
/// use backstop::state::{MemoryStore, RecoveryStateStore, StateError, StateRecord};
///
/// let mut store = MemoryStore::default();
/// let record = StateRecord::new("s1".try_into().unwrap(), 1, &SessionMemory::default());
/// store.append(&[record.clone()])?;
/// assert_eq!(store.load(&record.session)?, Some(record.clone()));
/// store.append(&[StateRecord::forgotten(record.session.clone(), 2)])?;
/// assert_eq!(store.load(&record.session)?, None);
/// # Ok::<(), StateError>(())
/// ```
pub trait RecoveryStateStore: Send {
    /// Makes a batch durable; it is when this returns `Ok`.
    ///
    /// # Errors
    ///
    /// [`StateError::Stale`] and [`StateError::TooLarge`] name the record that must be left out;
    /// [`StateError::Superseded`] says that another holder has the place, [`StateError::Save`] that it
    /// cannot be written: the batch may be tried again.
    fn append(&mut self, batch: &[StateRecord]) -> Result<(), StateError>;

    /// The session's last record; `None` if there is none or it was forgotten.
    ///
    /// # Errors
    ///
    /// When the place cannot be read.
    fn load(&mut self, session: &SessionId) -> Result<Option<StateRecord>, StateError>;

    /// Every session, in the order of their ids.
    ///
    /// # Errors
    ///
    /// When the place cannot be read.
    fn list(&mut self) -> Result<Vec<SessionSummary>, StateError>;

    /// Hands over the last record of every session that is not forgotten, in any order: what an engine
    /// reads when it starts. A store that has them at hand does better than this one, which lists and loads.
    ///
    /// # Errors
    ///
    /// When the place cannot be read; some records may have been handed over.
    fn visit(&mut self, each: &mut dyn FnMut(StateRecord)) -> Result<(), StateError> {
        for summary in self.list()? {
            self.load(&summary.session)?.into_iter().for_each(&mut *each);
        }
        Ok(())
    }

    /// Confirms the right to write, and prolongs it where it runs out. An engine calls it at its start
    /// and then whenever a third of the time that it was told has passed.
    ///
    /// # Errors
    ///
    /// [`StateError::Superseded`] when another holder has the place.
    fn hold(&mut self) -> Result<Lease, StateError> {
        Ok(Lease { token: 0, lasts: None })
    }

    /// Does up to this many pieces of work that can wait until nobody waits for an append, such as
    /// readable copies; tells how many are left.
    ///
    /// # Errors
    ///
    /// When a piece failed; it stays pending, and the others were still tried.
    fn refresh_views(&mut self, at_most: usize) -> Result<usize, StateError> {
        let _ = at_most;
        Ok(0)
    }

    /// Lets go of the place; what was acknowledged stays. Later calls answer [`StateError::Closed`].
    ///
    /// # Errors
    ///
    /// When something that was pending could not be finished; the place is let go of all the same.
    fn close(&mut self) -> Result<(), StateError>;
}
