//! The lanes in use, and how one is reached.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, Weak};
use std::time::Duration;

use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use ractor::{ActorCell, ActorRef, ActorRuntime};
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};

use super::EngineError;
use super::clock::Clock;
use super::lane::{LaneActor, LaneArgs, LaneMsg, LanePermit, LanePressure, Refused};
use super::lane_desk::{AskReply, LaneDesk, LaneState};
use crate::failure::{LaneKey, Timestamp};
use crate::policy::Limits;

pub(crate) struct Lanes {
    entries: DashMap<LaneKey, LaneEntry>,
    parent: RwLock<Option<ActorCell>>,
    pressure: watch::Sender<Arc<Vec<LanePressure>>>,
    clock: Arc<dyn Clock>,
    limits: RwLock<Limits>,
    runtime: Handle,
    me: Weak<Self>,
}

#[derive(Clone)]
struct LaneEntry {
    actor: ActorRef<LaneMsg>,
    desk: Arc<LaneDesk>,
}

impl Lanes {
    pub fn new(limits: &Limits, clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            entries: DashMap::new(),
            parent: RwLock::default(),
            pressure: watch::channel(Arc::default()).0,
            clock,
            limits: RwLock::new(limits.clone()),
            runtime: Handle::current(),
            me: Weak::clone(me),
        })
    }

    pub fn set_parent(&self, parent: ActorCell) {
        *self.parent.write().unwrap_or_else(PoisonError::into_inner) = Some(parent);
    }

    /// Other limits, from now on, for lanes in use too.
    pub fn set_limits(&self, limits: &Limits) {
        *self.limits.write().unwrap_or_else(PoisonError::into_inner) = limits.clone();
        for entry in &self.entries {
            entry.desk.lock().set_limits(limits);
            let _ = entry.actor.send_message(LaneMsg::Wake);
        }
    }

    fn limits(&self) -> RwLockReadGuard<'_, Limits> {
        self.limits.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn pressure(&self) -> watch::Receiver<Arc<Vec<LanePressure>>> {
        self.pressure.subscribe()
    }

    /// Waits in the lane's queue for permission to start a turn.
    pub async fn admit(&self, key: &LaneKey, limit: Option<Duration>) -> Result<LanePermit, Refused> {
        let (reply, answer) = oneshot::channel();
        let arrived = self.at_desk(key, |lane| lane.arrive(reply))?;
        arrived.map_err(|_| Refused::QueueFull)?;
        let queued = Queued { lanes: self, key };
        let answer = match limit {
            None => answer.await,
            Some(limit) => match tokio::time::timeout(limit, answer).await {
                Ok(answer) => answer,
                Err(_) => return Err(Refused::Closed { not_before: self.clock.now() }),
            },
        };
        // Answered, and so in no queue any more.
        std::mem::forget(queued);
        answer.map_err(|_| EngineError::Stopped)?
    }

    /// Asks whether a redo may go now.
    ///
    /// # Errors
    ///
    /// The engine's end.
    pub fn ask(&self, key: &LaneKey, reply: AskReply) -> Result<(), EngineError> {
        self.at_desk(key, |lane| lane.ask(reply))
    }

    /// The server stated a wait: nobody goes before it ends.
    ///
    /// # Errors
    ///
    /// The engine's end.
    pub fn hold(&self, key: &LaneKey, until: Timestamp) -> Result<(), EngineError> {
        let now = self.clock.now();
        self.at_desk(key, |lane| lane.hold(until, now)).map(|_| ())
    }

    /// Wakes the lane's actor, if the lane is in use.
    pub fn wake(&self, key: &LaneKey) {
        if let Some(entry) = self.entries.get(key) {
            // One that failed is about to be replaced, and the next one looks at the desk first.
            let _ = entry.actor.send_message(LaneMsg::Wake);
        }
    }

    /// Does something at a lane's desk, which cannot be put away meanwhile, and wakes its actor.
    fn at_desk<T>(&self, key: &LaneKey, act: impl FnOnce(&mut LaneState) -> T) -> Result<T, EngineError> {
        let at = |entry: &LaneEntry| {
            let done = act(&mut entry.desk.lock());
            let _ = entry.actor.send_message(LaneMsg::Wake);
            done
        };
        if let Some(entry) = self.entries.get(key) {
            return Ok(at(&entry));
        }
        match self.entries.entry(key.clone()) {
            Entry::Occupied(entry) => Ok(at(entry.get())),
            Entry::Vacant(place) => {
                let desk = Arc::new(LaneDesk::new(key.clone(), &self.limits()));
                let actor = self.spawn(&desk)?;
                Ok(at(&place.insert(LaneEntry { actor, desk })))
            }
        }
    }

    fn spawn(&self, desk: &Arc<LaneDesk>) -> Result<ActorRef<LaneMsg>, EngineError> {
        let parent = self.parent.read().unwrap_or_else(PoisonError::into_inner).clone();
        let parent = parent.ok_or(EngineError::Stopped)?;
        let args = LaneArgs {
            desk: Arc::clone(desk),
            lanes: Weak::clone(&self.me),
            clock: Arc::clone(&self.clock),
            pressure: self.pressure.clone(),
            idle_after: self.limits().passivate_after,
        };
        let _here = self.runtime.enter();
        let spawned = ActorRuntime::spawn_linked_instant(None, LaneActor, args, parent);
        spawned.map(|(actor, _)| actor).map_err(|_| EngineError::Stopped)
    }

    /// Puts another actor behind the desk of a lane whose actor failed; false if it fails too often.
    pub fn revive(&self, dead: &ActorCell) -> bool {
        let is_dead = |entry: &LaneEntry| entry.actor.get_id() == dead.get_id();
        let Some(mut entry) = self.entries.iter_mut().find(|entry| is_dead(entry.value())) else { return true };
        let (intensity, window) = {
            let limits = self.limits();
            (limits.restart_intensity, limits.restart_window)
        };
        if !entry.desk.look().failures.restart(intensity, window, self.clock.now()) {
            return false;
        }
        tracing::error!(lane = %entry.key(), "a lane's actor failed and is restarted");
        let desk = Arc::clone(&entry.desk);
        match self.spawn(&desk) {
            Ok(actor) => entry.actor = actor,
            Err(error) => tracing::error!(%error, "a lane's actor cannot be restarted"),
        }
        true
    }

    /// Forgets a lane that nobody has used since then; tells whether it did.
    pub(super) fn put_away(&self, desk: &Arc<LaneDesk>, touched: u64) -> bool {
        let is_unused = |entry: &LaneEntry| {
            let lane = desk.look();
            Arc::ptr_eq(&entry.desk, desk) && lane.touched == touched && lane.is_idle()
        };
        let removed = self.entries.remove_if(&desk.key, |_, entry| is_unused(entry)).is_some();
        if removed {
            self.pressure.send_modify(|all| Arc::make_mut(all).retain(|known| known.lane != desk.key));
        }
        removed
    }

    /// The engine has ended: whoever waits is told.
    pub fn close(&self, why: EngineError) {
        *self.parent.write().unwrap_or_else(PoisonError::into_inner) = None;
        for entry in &self.entries {
            let (admissions, asks) = entry.desk.look().dismiss(why);
            for reply in admissions {
                let _ = reply.send(Err(why.into()));
            }
            drop(asks);
        }
        self.entries.clear();
    }

    /// A lane's actor, for tests that make it fail.
    #[cfg(any(test, feature = "test-util"))]
    pub fn actor(&self, key: &LaneKey) -> Option<ActorRef<LaneMsg>> {
        self.entries.get(key).map(|entry| entry.actor.clone())
    }
}

/// A place in a lane's queue, given back when its caller leaves early.
struct Queued<'a> {
    lanes: &'a Lanes,
    key: &'a LaneKey,
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        if let Some(entry) = self.lanes.entries.get(self.key) {
            entry.desk.lock().prune();
        }
        self.lanes.wake(self.key);
    }
}
