use std::collections::BTreeSet;
use std::io;

use super::disk::{Disk, set_aside};
use super::index::Index;
use super::{RecoveryState, StateError, file_stem};
use crate::failure::SessionId;

/// Keeps the `recovery-*.json` files abreast of the log, in the background.
pub(super) struct Views {
    disk: Box<dyn Disk>,
    stale: BTreeSet<SessionId>,
    /// The largest view, in bytes.
    largest: usize,
}

/// Every view is written here first; no session's view has this name.
const NEW: &str = "recovery-.new";

/// The name of a session's view.
pub(super) fn view_name(session: &SessionId) -> String {
    format!("recovery-{}.json", file_stem(session))
}

impl Views {
    pub fn new(disk: Box<dyn Disk>, stale: BTreeSet<SessionId>, largest: usize) -> Self {
        Self { disk, stale, largest }
    }

    /// The session's view shows something older from now on.
    pub fn outdate(&mut self, session: &SessionId) {
        if !self.stale.contains(session) {
            self.stale.insert(session.clone());
        }
    }

    /// Sessions whose views show something older.
    pub fn stale(&self) -> &BTreeSet<SessionId> {
        &self.stale
    }

    /// Refreshes up to this many views. One that fails stays stale and does not stop the others.
    pub fn refresh(&mut self, index: &Index, at_most: usize) -> Result<(), StateError> {
        let mut failed = vec![];
        let mut first_error = None;
        for _ in 0..at_most {
            let Some(session) = self.stale.pop_first() else { break };
            if let Err(source) = self.refresh_one(&session, index) {
                let path = self.disk.path(&view_name(&session));
                first_error.get_or_insert(StateError::View { path, source });
                failed.push(session);
            }
        }
        if let Err(source) = self.disk.sync() {
            first_error.get_or_insert(StateError::View { path: self.disk.path(""), source });
        }
        self.stale.extend(failed);
        first_error.map_or(Ok(()), Err)
    }

    fn refresh_one(&mut self, session: &SessionId, index: &Index) -> io::Result<()> {
        let name = view_name(session);
        let record = index.get(session);
        let memory = match record.map(|record| record.read()) {
            None => None,
            Some(Ok(memory)) => memory,
            // Another version's record: its view is not ours to change.
            Some(Err(_)) => return Ok(()),
        };
        match memory.and_then(|memory| RecoveryState::of(session, &memory)?.to_json(self.largest)) {
            Some(json) => self.write(&name, &json),
            None => missing_is_fine(self.disk.remove(&name)),
        }
    }

    /// Written beside it, synced, renamed over it: readers see the old view or the new one.
    fn write(&mut self, name: &str, json: &[u8]) -> io::Result<()> {
        missing_is_fine(self.disk.remove(NEW))?;
        let mut file = self.disk.create(NEW)?;
        let written = file.write(json).and_then(|()| file.sync());
        drop(file);
        let renamed = written.and_then(|()| match self.disk.rename(NEW, name) {
            Err(error) if error.kind() == io::ErrorKind::IsADirectory => {
                set_aside(&mut *self.disk, name)?;
                self.disk.rename(NEW, name)
            }
            renamed => renamed,
        });
        if renamed.is_err() {
            let _ = self.disk.remove(NEW);
        }
        renamed
    }

    /// Removes what a crash in the middle of a view left behind.
    pub fn tidy(&mut self) {
        let _ = self.disk.remove(NEW);
    }

    /// The directory.
    pub fn disk(&mut self) -> &mut dyn Disk {
        &mut *self.disk
    }
}

/// What is not there needs no removal; a directory of the name is no view.
fn missing_is_fine(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::IsADirectory) => Ok(()),
        other => other,
    }
}
