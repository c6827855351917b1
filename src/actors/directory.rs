//! Which sessions have an actor, and how a message reaches it whatever happens meanwhile.

use std::sync::{Arc, Mutex, PoisonError};

use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use ractor::{ActorCell, ActorRef, ActorRuntime};

use super::admission::{Gate, Place};
use super::desk::Desk;
use super::intensity::Failures;
use super::messages::SessionMsg;
use super::outcome::EngineError;
use super::session::{SessionActor, SessionArgs};
use super::shared::Shared;
use crate::failure::SessionId;
use crate::policy::machine::Event;

/// A session whose actor lives.
#[derive(Clone)]
pub(crate) struct SessionEntry {
    pub actor: ActorRef<SessionMsg>,
    pub desk: Arc<Desk>,
    /// The actor's number behind this desk.
    pub incarnation: u64,
}

impl SessionEntry {
    fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.desk, &other.desk) && self.incarnation == other.incarnation
    }
}

/// What somebody wants of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Room {
    /// To report a failure that may have to wait.
    Report,
    /// To be heard in spite of those who wait.
    Control,
}

/// Requests at once beside those that report failures: a host has few reasons for even one.
const CONTROL_PLACES: usize = 16;

/// The live sessions. The order of locks: a desk's `serving`, then the directory, then the desk's others.
#[derive(Default)]
pub(crate) struct Directory {
    entries: DashMap<SessionId, SessionEntry>,
    failures: Mutex<Failures>,
}

impl Directory {
    pub fn get(&self, id: &SessionId) -> Option<SessionEntry> {
        self.entries.get(id).map(|entry| entry.clone())
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Every live session, in the order of their ids: the map's own differs from run to run.
    pub fn all(&self) -> Vec<(SessionId, SessionEntry)> {
        let mut all: Vec<_> = self.entries.iter().map(|entry| (entry.key().clone(), entry.value().clone())).collect();
        all.sort_by(|(one, _), (other, _)| one.cmp(other));
        all
    }

    /// Drops the entry of an actor that nobody uses; tells whether it did.
    pub fn passivate(&self, id: &SessionId, desk: &Arc<Desk>) -> bool {
        let is_unused = |entry: &SessionEntry| Arc::ptr_eq(&entry.desk, desk) && desk.is_unused();
        self.entries.remove_if(id, |_, entry| is_unused(entry)).is_some()
    }

    /// Whose actor this is; walks the directory, for failures only.
    pub fn session_of(&self, actor: &ActorCell) -> Option<(SessionId, SessionEntry)> {
        let found = self.entries.iter().find(|entry| entry.actor.get_id() == actor.get_id())?;
        Some((found.key().clone(), found.value().clone()))
    }

    /// Drops this entry, unless another took its place; tells whether it did.
    pub fn remove(&self, id: &SessionId, entry: &SessionEntry) -> bool {
        self.entries.remove_if(id, |_, known| known.is(entry)).is_some()
    }

    pub fn clear(&self) {
        self.entries.clear();
    }
}

impl Shared {
    /// Room at the session for one more request.
    ///
    /// # Errors
    ///
    /// [`EngineError::Busy`], or the engine's end.
    pub fn enter(self: &Arc<Self>, id: &SessionId, room: Room) -> Result<Place, EngineError> {
        let limit = match room {
            // The one that opens an episode does not wait.
            Room::Report => self.config().limits().waiting_reports.saturating_add(1),
            Room::Control => CONTROL_PLACES,
        };
        let gate = |desk: &Desk| -> Gate {
            match room {
                Room::Report => desk.reports.clone(),
                Room::Control => desk.control.clone(),
            }
        };
        let (place, desk) = self.at_desk(id, |entry| (gate(&entry.desk).enter(limit), Arc::clone(&entry.desk)))?;
        if let Some(place) = place {
            return Ok(place);
        }
        // Places of callers that have left are free.
        desk.prune();
        self.at_desk(id, |entry| gate(&entry.desk).enter(limit))?.ok_or(EngineError::Busy)
    }

    /// Brings a message to the session, whose actor is spawned if there is none. Once this is `Ok` the
    /// message is handled, or whoever waits for its answer is told of the engine's end.
    ///
    /// # Errors
    ///
    /// The engine's end.
    pub fn send(self: &Arc<Self>, id: &SessionId, message: SessionMsg) -> Result<(), EngineError> {
        let entry = self.at_desk(id, |entry| {
            entry.desk.push(message);
            entry.clone()
        })?;
        self.wake(id, &entry);
        Ok(())
    }

    /// Brings a message to the session, if its actor lives: nobody else would know what it is about.
    pub fn send_if_live(self: &Arc<Self>, id: &SessionId, message: SessionMsg) {
        let pushed = self.directory.entries.get(id).map(|entry| {
            entry.desk.push(message);
            entry.clone()
        });
        if let Some(entry) = pushed {
            self.wake(id, &entry);
        }
    }

    /// Brings a message to the session, if it has an actor or an episode found on disk.
    pub fn send_if_any(self: &Arc<Self>, id: &SessionId, message: SessionMsg) {
        if self.stored.get(id).is_some_and(|stored| stored.has_episode()) {
            // An error is the engine's end.
            let _ = self.send(id, message);
        } else {
            self.send_if_live(id, message);
        }
    }

    /// Brings an episode's event to wherever its session's actor lives now.
    pub fn send_event(self: &Arc<Self>, id: &SessionId, episode: u64, event: Event) {
        self.send_if_live(id, SessionMsg::Event { episode, event });
    }

    /// Does something at the session's desk, which cannot be put away meanwhile.
    fn at_desk<T>(self: &Arc<Self>, id: &SessionId, act: impl FnOnce(&SessionEntry) -> T) -> Result<T, EngineError> {
        if let Some(end) = self.end() {
            return Err(end);
        }
        if let Some(entry) = self.directory.entries.get(id) {
            return Ok(act(&entry));
        }
        match self.directory.entries.entry(id.clone()) {
            Entry::Occupied(entry) => Ok(act(entry.get())),
            Entry::Vacant(place) => {
                let entry = self.spawn_session(id.clone(), Arc::default(), 0)?;
                Ok(act(&place.insert(entry)))
            }
        }
    }

    fn wake(self: &Arc<Self>, id: &SessionId, entry: &SessionEntry) {
        let is_deaf = entry.actor.send_message(SessionMsg::Wake).is_err();
        match self.end() {
            // Nobody reads that desk any more.
            Some(end) if is_deaf || self.is_over() => entry.desk.dismiss(end),
            None if is_deaf => self.revive(id, entry),
            Some(_) | None => {}
        }
    }

    fn spawn_session(
        self: &Arc<Self>,
        id: SessionId,
        desk: Arc<Desk>,
        incarnation: u64,
    ) -> Result<SessionEntry, EngineError> {
        let supervisor = self.sessions().ok_or(EngineError::Stopped)?;
        let args = SessionArgs { id, desk: Arc::clone(&desk), shared: Arc::clone(self), incarnation };
        // A dropped `run` may be on a thread of its own.
        let _here = self.runtime.enter();
        let (actor, _) = ActorRuntime::spawn_linked_instant(None, SessionActor, args, supervisor.get_cell())
            .map_err(|_| EngineError::Stopped)?;
        Ok(SessionEntry { actor, desk, incarnation })
    }

    /// Puts another actor behind the desk of one that failed; one that fails too often is given up.
    pub fn revive(self: &Arc<Self>, id: &SessionId, dead: &SessionEntry) {
        if self.end().is_some() || !dead.desk.supersede(dead.incarnation) {
            return;
        }
        let may_restart = {
            let mut failures = self.directory.failures.lock().unwrap_or_else(PoisonError::into_inner);
            failures.may_restart(id, self.config().limits(), self.now())
        };
        if may_restart {
            self.respawn(id, dead);
        } else if self.directory.remove(id, dead) {
            super::give_up::give_up(self, id, &dead.desk);
        }
    }

    /// Puts another actor behind the desk of one that its supervisor took along.
    pub fn bring_back(self: &Arc<Self>, id: &SessionId, gone: &SessionEntry) {
        if gone.desk.supersede(gone.incarnation) {
            self.respawn(id, gone);
        }
    }

    fn respawn(self: &Arc<Self>, id: &SessionId, dead: &SessionEntry) {
        // One that was put away has no desk to come back to.
        let Some(mut place) = self.directory.entries.get_mut(id).filter(|known| known.is(dead)) else { return };
        match self.spawn_session(id.clone(), Arc::clone(&dead.desk), dead.incarnation + 1) {
            Ok(entry) => *place = entry,
            Err(error) => {
                tracing::error!(session = %id, %error, "a session's actor cannot be brought back");
                drop(place);
                dead.desk.dismiss(error);
            }
        }
    }
}
