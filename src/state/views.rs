use std::collections::{BTreeSet, HashSet};
use std::io;
use std::ops::Bound;

use super::disk::{Disk, set_aside};
use super::index::Index;
use super::{RecoveryState, StateError, StateRecord, file_stem};
use crate::failure::SessionId;

/// Keeps the `recovery-*.json` files abreast of the log, in the background.
pub(super) struct Views {
    disk: Box<dyn Disk>,
    stale: BTreeSet<SessionId>,
    /// The largest view, in bytes.
    largest: usize,
    /// The session looked at last.
    last: Option<SessionId>,
    /// The views that there are; known from the first refresh on.
    present: Option<HashSet<String>>,
}

/// Sessions looked at in one refresh: most recovered at once, and have no view to be removed.
const LOOKED_AT: usize = 1_024;

/// Every view is written here first; no session's view has this name.
pub(super) const NEW_VIEW: &str = "recovery-.new";

/// The name of a session's view.
pub(super) fn view_name(session: &SessionId) -> String {
    format!("recovery-{}.json", file_stem(session))
}

impl Views {
    pub fn new(disk: Box<dyn Disk>, stale: BTreeSet<SessionId>, largest: usize) -> Self {
        Self { disk, stale, largest, last: None, present: None }
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

    /// Writes or removes up to this many views. One that fails stays stale and does not stop the others.
    pub fn refresh(&mut self, index: &Index, at_most: usize) -> Result<(), StateError> {
        let (mut failed, mut done, mut first_error, mut changed) = (vec![], vec![], None, 0);
        for _ in 0..LOOKED_AT.max(at_most) {
            let Some(session) = (changed < at_most).then(|| self.next()).flatten() else { break };
            match self.refresh_one(&session, index) {
                Ok(false) => {}
                Ok(true) => {
                    changed += 1;
                    done.push(session);
                }
                Err(source) => {
                    changed += 1;
                    let path = self.disk.path(&view_name(&session));
                    first_error.get_or_insert(StateError::View { path, source });
                    failed.push(session);
                }
            }
        }
        if changed > 0
            && let Err(source) = self.disk.sync()
        {
            first_error.get_or_insert(StateError::View { path: self.disk.path(""), source });
            // A power cut may bring the old ones back.
            failed.append(&mut done);
        }
        self.stale.extend(failed);
        first_error.map_or(Ok(()), Err)
    }

    /// Takes the next stale session, round and round, so that those that fail stop no others.
    fn next(&mut self) -> Option<SessionId> {
        let after = (self.last.take().map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded);
        let session = self.stale.range(after).next().or_else(|| self.stale.first()).cloned()?;
        self.stale.remove(&session);
        self.last = Some(session.clone());
        Some(session)
    }

    /// Tells whether a file had to be written or removed.
    fn refresh_one(&mut self, session: &SessionId, index: &Index) -> io::Result<bool> {
        let name = view_name(session);
        let record = index.get(session);
        if !self.is_present(&name) && record.as_ref().is_none_or(|record| !shows(record)) {
            return Ok(false);
        }
        let memory = match record.map(|record| record.read()) {
            None => None,
            Some(Ok(memory)) => memory,
            // Another version's record: its view is not ours to change.
            Some(Err(_)) => return Ok(false),
        };
        match memory.and_then(|memory| RecoveryState::of(session, &memory)?.to_json(self.largest)) {
            Some(json) => self.write(&name, &json)?,
            None => missing_is_fine(self.disk.remove(&name))?,
        }
        Ok(true)
    }

    /// Whether there is a view of this name; if nobody knows, there may be.
    fn is_present(&mut self, name: &str) -> bool {
        if self.present.is_none() {
            let names = self.disk.names().ok();
            self.present = names.map(|names| names.into_iter().map(|entry| entry.name).collect());
        }
        self.present.as_ref().is_none_or(|present| present.contains(name))
    }

    /// Written beside it, synced, renamed over it: readers see the old view or the new one.
    fn write(&mut self, name: &str, json: &[u8]) -> io::Result<()> {
        missing_is_fine(self.disk.remove(NEW_VIEW))?;
        let mut file = self.disk.create(NEW_VIEW)?;
        let written = file.write(json).and_then(|()| file.sync());
        drop(file);
        let renamed = written.and_then(|()| match self.disk.rename(NEW_VIEW, name) {
            Err(error) if error.kind() == io::ErrorKind::IsADirectory => {
                set_aside(&mut *self.disk, name)?;
                self.disk.rename(NEW_VIEW, name)
            }
            renamed => renamed,
        });
        match &renamed {
            Ok(()) => {
                // From now on it is there, whatever becomes of it.
                self.present.as_mut().map(|present| present.insert(name.to_owned()));
            }
            Err(_) => {
                let _ = self.disk.remove(NEW_VIEW);
            }
        }
        renamed
    }

    /// Removes what a crash in the middle of a view left behind.
    pub fn tidy(&mut self) {
        let _ = self.disk.remove(NEW_VIEW);
    }

    /// The directory.
    pub fn disk(&mut self) -> &mut dyn Disk {
        &mut *self.disk
    }
}

/// Whether a record has anything to show in a view, as far as a glance can tell.
fn shows(record: &StateRecord) -> bool {
    #[derive(serde::Deserialize)]
    struct Glance {
        episode: Option<serde::de::IgnoredAny>,
        kept: Option<serde::de::IgnoredAny>,
    }
    let Some(memory) = &record.memory else { return false };
    serde_json::from_slice(memory).map_or(true, |Glance { episode, kept }| episode.is_some() || kept.is_some())
}

/// What is not there needs no removal; a directory of the name is no view.
fn missing_is_fine(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::IsADirectory) => Ok(()),
        other => other,
    }
}
