use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::index::Index;
use super::store::Lease;
use super::{RecoveryStateStore, SessionSummary, StateError, StateRecord};
use crate::failure::SessionId;

/// Keeps state in memory: for tests, and for hosts that want no files. Nothing survives the process.
///
/// ```
/// use backstop::policy::session::SessionMemory;
/// use backstop::state::{MemoryStore, RecoveryStateStore, StateError, StateRecord};
///
/// let record = StateRecord::new("s1".try_into().unwrap(), 1, &SessionMemory::default());
/// let mut first = MemoryStore::default();
/// let mut second = first.take_over();
/// assert!(matches!(first.append(&[record.clone()]), Err(StateError::Superseded { .. })));
/// second.append(&[record])?;
/// # Ok::<(), StateError>(())
/// ```
#[derive(Debug)]
pub struct MemoryStore {
    place: Arc<Mutex<Place>>,
    token: u64,
    closed: bool,
}

#[derive(Debug)]
struct Place {
    index: Index,
    /// The newest holder's token.
    newest: u64,
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self { place: Arc::new(Mutex::new(Place { index: Index::default(), newest: 1 })), token: 1, closed: false }
    }
}

impl MemoryStore {
    /// The next holder of the same memory, as another process is of a directory: this store's appends
    /// are refused from now on.
    pub fn take_over(&self) -> Self {
        let mut place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        place.newest += 1;
        Self { place: Arc::clone(&self.place), token: place.newest, closed: false }
    }

    fn open(&self) -> Result<MutexGuard<'_, Place>, StateError> {
        if self.closed {
            Err(StateError::Closed)
        } else {
            Ok(self.place.lock().unwrap_or_else(PoisonError::into_inner))
        }
    }

    fn held(&self) -> Result<MutexGuard<'_, Place>, StateError> {
        let place = self.open()?;
        let (token, newest) = (self.token, place.newest);
        if token == newest { Ok(place) } else { Err(StateError::Superseded { token, newest }) }
    }
}

impl RecoveryStateStore for MemoryStore {
    fn append(&mut self, batch: &[StateRecord]) -> Result<(), StateError> {
        let mut place = self.held()?;
        for record in place.index.changes(batch)? {
            place.index.apply(&record.session, record.revision, record.memory.clone());
        }
        Ok(())
    }

    fn load(&mut self, session: &SessionId) -> Result<Option<StateRecord>, StateError> {
        Ok(self.open()?.index.get(session))
    }

    fn list(&mut self) -> Result<Vec<SessionSummary>, StateError> {
        Ok(self.open()?.index.list())
    }

    fn visit(&mut self, each: &mut dyn FnMut(StateRecord)) -> Result<(), StateError> {
        self.open()?.index.iter().for_each(each);
        Ok(())
    }

    fn hold(&mut self) -> Result<Lease, StateError> {
        self.held().map(|place| Lease { token: place.newest, lasts: None })
    }

    fn close(&mut self) -> Result<(), StateError> {
        self.closed = true;
        Ok(())
    }
}

/// Keeps nothing: durability `off`. A session's memory then lives as long as its actor.
#[derive(Debug, Default, Clone, Copy)]
pub struct NullStore;

impl RecoveryStateStore for NullStore {
    fn append(&mut self, _: &[StateRecord]) -> Result<(), StateError> {
        Ok(())
    }

    fn load(&mut self, _: &SessionId) -> Result<Option<StateRecord>, StateError> {
        Ok(None)
    }

    fn list(&mut self) -> Result<Vec<SessionSummary>, StateError> {
        Ok(vec![])
    }

    fn close(&mut self) -> Result<(), StateError> {
        Ok(())
    }
}
