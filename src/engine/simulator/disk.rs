//! The disk of a simulated world: it is slow or fails at times, and outlives the engine.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::dice::Dice;
use super::faults::HowBad;
use super::world::World;
use crate::failure::SessionId;
use crate::policy::session::SessionMemory;
use crate::state::{MemoryStore, RecoveryStateStore, SessionSummary, StateError, StateRecord};

/// What the disk holds.
pub(super) struct Disk {
    inner: Mutex<Platters>,
}

struct Platters {
    kept: MemoryStore,
    /// Refused, but it may be found after a crash all the same.
    perhaps: BTreeMap<SessionId, StateRecord>,
    /// Sessions whose newest record was refused: memory counts for them (R10).
    refused: BTreeSet<SessionId>,
    powered: bool,
    dice: Dice,
}

impl Disk {
    pub fn new(seed: u64) -> Self {
        let (kept, perhaps, refused) = Default::default();
        Self { inner: Mutex::new(Platters { kept, perhaps, refused, powered: true, dice: Dice::new(seed, 2) }) }
    }

    fn lock(&self) -> MutexGuard<'_, Platters> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The session's acknowledged memory.
    pub fn memory(&self, session: &SessionId) -> Option<SessionMemory> {
        let record = self.lock().kept.load(session).ok().flatten()?;
        record.read().ok().flatten()
    }

    /// Whether the session's newest record was refused.
    pub fn refused(&self, session: &SessionId) -> bool {
        self.lock().refused.contains(session)
    }

    /// The power goes off: nothing is written any more.
    pub fn power_off(&self) {
        self.lock().powered = false;
    }

    /// The power is back. What was refused may turn out to have been written.
    pub fn power_on(&self) {
        let mut disk = self.lock();
        disk.powered = true;
        for (_, record) in std::mem::take(&mut disk.perhaps) {
            if disk.dice.chance(50) {
                // An older record than the kept one is refused, as it should be.
                let _ = disk.kept.append(&[record]);
            }
        }
        disk.refused.clear();
    }

    fn append(&self, batch: &[StateRecord], fails: bool) -> Result<(), StateError> {
        let mut disk = self.lock();
        if !disk.powered {
            return Err(StateError::Closed);
        }
        if fails {
            for record in batch {
                disk.refused.insert(record.session.clone());
                if disk.dice.chance(50) {
                    disk.perhaps.insert(record.session.clone(), record.clone());
                }
            }
            let source = io::Error::other("the simulated disk fails");
            return Err(StateError::Save { path: "log".into(), source });
        }
        disk.kept.append(batch)?;
        for record in batch {
            disk.refused.remove(&record.session);
        }
        Ok(())
    }
}

/// The store that an engine gets: the same disk in every life.
pub(super) struct Mounted(pub Arc<World>);

impl RecoveryStateStore for Mounted {
    fn append(&mut self, batch: &[StateRecord]) -> Result<(), StateError> {
        let fails = matches!(self.0.trouble(), Some(HowBad::Fails));
        self.0.disk.append(batch, fails)?;
        batch.iter().for_each(|record| self.0.written(record));
        Ok(())
    }

    fn load(&mut self, session: &SessionId) -> Result<Option<StateRecord>, StateError> {
        self.0.disk.lock().kept.load(session)
    }

    fn list(&mut self) -> Result<Vec<SessionSummary>, StateError> {
        self.0.disk.lock().kept.list()
    }

    fn close(&mut self) -> Result<(), StateError> {
        Ok(())
    }
}
