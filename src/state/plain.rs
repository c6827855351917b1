use super::index::Index;
use super::{RecoveryStateStore, SessionSummary, StateError, StateRecord};
use crate::failure::SessionId;

/// Keeps state in memory: for tests, and for hosts that want no files. Nothing survives the process.
#[derive(Debug, Default)]
pub struct MemoryStore {
    index: Index,
    closed: bool,
}

impl MemoryStore {
    fn open(&mut self) -> Result<&mut Index, StateError> {
        if self.closed { Err(StateError::Closed) } else { Ok(&mut self.index) }
    }
}

impl RecoveryStateStore for MemoryStore {
    fn append(&mut self, batch: &[StateRecord]) -> Result<(), StateError> {
        let index = self.open()?;
        for record in index.changes(batch)? {
            index.apply(&record.session, record.revision, record.memory.clone());
        }
        Ok(())
    }

    fn load(&mut self, session: &SessionId) -> Result<Option<StateRecord>, StateError> {
        Ok(self.open()?.get(session))
    }

    fn list(&mut self) -> Result<Vec<SessionSummary>, StateError> {
        Ok(self.open()?.list())
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
