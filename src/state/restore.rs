//! Sessions of an archive put into a store, all of them or none.

use super::{Archived, FileStore, Inspection, RecoveryStateStore, StateError, StateRecord};
use crate::failure::SessionId;

/// What happens to a session that the store has already, and differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnConflict {
    /// Nothing is put in at all.
    #[default]
    Refuse,
    /// The archive's takes its place.
    Replace,
}

/// What was put in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct Restored {
    /// Sessions that the store did not know.
    pub added: usize,
    /// Sessions that took another's place.
    pub replaced: usize,
    /// Sessions that were there already, equal in everything.
    pub unchanged: usize,
}

/// Why nothing was put in.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RestoreError {
    /// The store has some of the sessions already, and differently.
    #[error("{} of the sessions are there already, and differ: {}", .0.len(), named(.0))]
    Exists(Vec<SessionId>),
    /// The store cannot be read or written.
    #[error(transparent)]
    State(#[from] StateError),
}

fn named(sessions: &[SessionId]) -> String {
    const NAMED: usize = 5;
    let mut text = sessions.iter().take(NAMED).map(|session| format!("{session:?}")).collect::<Vec<_>>().join(", ");
    if sessions.len() > NAMED {
        text.push_str(", …");
    }
    text
}

impl Inspection {
    /// Which of the archive's sessions are there already, and differently.
    pub fn conflicts(&self, sessions: &[Archived]) -> Vec<SessionId> {
        let differs = |one: &&Archived| self.load(&one.session).is_some_and(|known| !is_same(&known, one));
        sessions.iter().filter(differs).map(|one| one.session.clone()).collect()
    }
}

impl FileStore {
    /// Puts an archive's sessions in, whoever kept them, by writing the log anew: after a crash all of them
    /// are there or none. Each gets a revision above the one that it replaces.
    ///
    /// # Errors
    ///
    /// [`RestoreError`]; nothing was put in. After [`RestoreError::State`] the store is closed.
    pub fn restore(&mut self, sessions: &[Archived], on_conflict: OnConflict) -> Result<Restored, RestoreError> {
        let mut conflicts = vec![];
        let mut done = Restored::default();
        let mut records = vec![];
        for one in sessions {
            let revision = match self.load(&one.session)? {
                Some(known) if is_same(&known, one) => {
                    done.unchanged += 1;
                    continue;
                }
                Some(_) if on_conflict == OnConflict::Refuse => {
                    conflicts.push(one.session.clone());
                    continue;
                }
                Some(known) => {
                    done.replaced += 1;
                    one.revision.max(known.revision.saturating_add(1))
                }
                None => {
                    done.added += 1;
                    one.revision
                }
            };
            records.push(StateRecord::new(one.session.clone(), revision, &one.memory));
        }
        if !conflicts.is_empty() {
            return Err(RestoreError::Exists(conflicts));
        }
        if !records.is_empty() {
            self.rewrite(&records, [])?;
        }
        Ok(done)
    }
}

fn is_same(known: &StateRecord, one: &Archived) -> bool {
    known.read().is_ok_and(|memory| memory.as_ref() == Some(&one.memory))
}
