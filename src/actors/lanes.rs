//! The lanes in use, and how one is reached.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, Weak};
use std::time::Duration;

use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use ractor::{ActorCell, ActorRef, ActorRuntime};
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};

use super::EngineError;
use super::clock::Clock;
use super::events::EventBus;
use super::lane::{LaneActor, LaneArgs, LaneMsg, LanePermit, LanePressure, Refused};
use super::lane_desk::{AskReply, Caller, LaneDesk, LaneState, Question};
use crate::failure::{LaneKey, SessionId, Timestamp};
use crate::policy::lane::CallEnd;
use crate::policy::{Limits, seed};

pub(crate) struct Lanes {
    entries: DashMap<LaneKey, LaneEntry>,
    parent: RwLock<Option<ActorCell>>,
    pressure: watch::Sender<Arc<Vec<LanePressure>>>,
    clock: Arc<dyn Clock>,
    limits: RwLock<Limits>,
    events: Arc<EventBus>,
    seed: u64,
    runtime: Handle,
    me: Weak<Self>,
}

#[derive(Clone)]
struct LaneEntry {
    actor: ActorRef<LaneMsg>,
    desk: Arc<LaneDesk>,
}

impl Lanes {
    pub fn new(limits: &Limits, clock: Arc<dyn Clock>, events: Arc<EventBus>, seed: u64) -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            entries: DashMap::new(),
            parent: RwLock::default(),
            pressure: watch::channel(Arc::default()).0,
            clock,
            limits: RwLock::new(limits.clone()),
            events,
            seed,
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

    /// After how long without use a lane is put away, by the configuration in force.
    pub fn idle_after(&self) -> Duration {
        self.limits().passivate_after
    }

    /// Waits in the lane's queue for permission to start a turn; a closed lane refuses.
    pub async fn admit(&self, key: &LaneKey, limit: Option<Duration>) -> Result<LanePermit, Refused> {
        self.admit_as(key, None, false, None, limit).await
    }

    /// The same for a session's turn, which waits while the lane is closed, but for no stated wait that ends after
    /// the limit.
    pub async fn admit_turn(
        &self,
        key: &LaneKey,
        session: &SessionId,
        is_redo: bool,
        limit: Option<Duration>,
    ) -> Result<LanePermit, Refused> {
        let until = limit.map(|limit| self.clock.now() + limit);
        self.admit_as(key, Some(number_of(session)), is_redo, Some(until), limit).await
    }

    async fn admit_as(
        &self,
        key: &LaneKey,
        session: Option<u64>,
        is_redo: bool,
        patience: Option<Option<Timestamp>>,
        limit: Option<Duration>,
    ) -> Result<LanePermit, Refused> {
        let (reply, answer) = oneshot::channel();
        let (now, caller) = (self.clock.now(), Caller { session, is_redo, patience, reply });
        self.at_desk(key, |lane| lane.arrive(caller, now))??;
        let queued = Queued { lanes: self, key };
        let answer = match limit {
            None => answer.await,
            Some(limit) => match tokio::time::timeout(limit, answer).await {
                Ok(answer) => answer,
                Err(_) => {
                    drop(queued);
                    let now = self.clock.now();
                    let not_before = self.at_desk(key, |lane| lane.expected(now))?;
                    return Err(Refused::Closed { not_before });
                }
            },
        };
        // Answered, and so in no queue any more.
        std::mem::forget(queued);
        answer.map_err(|_| EngineError::Stopped)?
    }

    /// Asks whether a session's redo may go now.
    ///
    /// # Errors
    ///
    /// The engine's end.
    pub fn ask(&self, key: &LaneKey, session: &SessionId, is_hosts: bool, reply: AskReply) -> Result<(), EngineError> {
        let question = Question { session: number_of(session), is_hosts, reply };
        let now = self.clock.now();
        self.at_desk(key, |lane| lane.ask(question, now))
    }

    /// A call of the session ended of which the lane gave no permit, or one that said nothing.
    ///
    /// # Errors
    ///
    /// The engine's end.
    pub fn ended(&self, key: &LaneKey, session: &SessionId, end: CallEnd) -> Result<(), EngineError> {
        let now = self.clock.now();
        self.at_desk(key, |lane| lane.ended(number_of(session), end, now))
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
                let seed = seed::mix(self.seed, number_of(key));
                let desk = Arc::new(LaneDesk::new(key.clone(), &self.limits(), seed, self.clock.now()));
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
            events: Arc::clone(&self.events),
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
        let now = self.clock.now();
        let is_unused = |entry: &LaneEntry| {
            let lane = desk.look();
            Arc::ptr_eq(&entry.desk, desk) && lane.touched == touched && lane.is_idle(now)
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
            let waiting = entry.desk.look().dismiss(why);
            for reply in waiting {
                let _ = reply.send(Err(why.into()));
            }
        }
        self.entries.clear();
    }

    /// A lane's actor, for tests that make it fail.
    #[cfg(any(test, feature = "test-util"))]
    pub fn actor(&self, key: &LaneKey) -> Option<ActorRef<LaneMsg>> {
        self.entries.get(key).map(|entry| entry.actor.clone())
    }
}

/// A number that tells sessions or lanes apart, the same in every run.
fn number_of(name: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    hasher.finish()
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
