//! One actor per lane in use: who may start a turn there, and until when nobody may.

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError, RwLock};

use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use ractor::{Actor, ActorCell, ActorProcessingErr, ActorRef, ActorRuntime};
use serde::Serialize;
use tokio::sync::{oneshot, watch};

use super::EngineError;
use super::admission::{Gate, Permit};
use super::clock::Clock;
use crate::failure::{LaneKey, Timestamp};
use crate::policy::Limits;

/// What is asked of a lane.
pub(crate) enum LaneMsg {
    /// May a redo go now? Answered at once.
    Ask { reply: Box<dyn FnOnce(Option<Timestamp>) + Send> },
    /// A turn wants to start.
    Admit { place: Permit, reply: oneshot::Sender<Result<LanePermit, Refused>> },
    /// A turn ended.
    Release,
    /// The server stated a wait: nobody goes before it ends.
    Hold { until: Timestamp },
    /// A hold may be over.
    Thaw,
}

type Admission = oneshot::Sender<Result<LanePermit, Refused>>;

/// Permission to start one turn on a lane; its end is reported by dropping it.
#[derive(Debug)]
pub struct LanePermit {
    lane: ActorRef<LaneMsg>,
}

impl Drop for LanePermit {
    fn drop(&mut self) {
        // A lane that is gone has forgotten its permits.
        let _ = self.lane.send_message(LaneMsg::Release);
    }
}

/// Why a lane lets no turn start now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// The lane is closed, or will not be free before the caller's deadline.
    #[error("the lane lets no turn start before {not_before}")]
    Closed {
        /// The earliest sensible time to ask again.
        not_before: Timestamp,
    },
    /// Too many callers queue already.
    #[error("too many callers wait at this lane")]
    QueueFull,
    /// The engine takes nothing any more.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// How busy a lane is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LanePressure {
    /// The lane.
    pub lane: LaneKey,
    /// Turns that may start at once.
    pub free: usize,
    /// Callers that wait.
    pub queued: usize,
    /// Until when the lane is closed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub closed_until: Option<Timestamp>,
}

/// How many full queues may exist at once over all lanes.
const LANES_AT_ONCE: usize = 16;

/// The lanes in use.
pub(crate) struct Lanes {
    actors: DashMap<LaneKey, ActorRef<LaneMsg>>,
    parent: RwLock<Option<ActorCell>>,
    pressure: watch::Sender<Arc<Vec<LanePressure>>>,
    gate: Gate,
    concurrency: usize,
    queue: usize,
}

impl Lanes {
    pub fn new(limits: &Limits) -> Self {
        Self {
            actors: DashMap::new(),
            parent: RwLock::default(),
            pressure: watch::channel(Arc::default()).0,
            gate: Gate::default(),
            concurrency: limits.lane_concurrency.max(1),
            queue: limits.lane_queue,
        }
    }

    pub fn set_parent(&self, parent: ActorCell) {
        *self.parent.write().unwrap_or_else(PoisonError::into_inner) = Some(parent);
    }

    pub fn pressure(&self) -> watch::Receiver<Arc<Vec<LanePressure>>> {
        self.pressure.subscribe()
    }

    /// Room for one more caller at any lane: what bounds their mailboxes.
    pub fn enter(&self) -> Option<Permit> {
        self.gate.enter(self.queue.saturating_mul(LANES_AT_ONCE))
    }

    /// Sends to a lane's actor; one that is gone is spawned anew, once.
    pub fn send(&self, key: &LaneKey, clock: &Arc<dyn Clock>, message: LaneMsg) -> Result<(), EngineError> {
        let Err(failed) = self.resolve(key, clock)?.send_message(message) else { return Ok(()) };
        self.actors.remove(key);
        let ractor::MessagingErr::SendErr(message) = failed else { return Err(EngineError::Stopped) };
        self.resolve(key, clock)?.send_message(message).map_err(|_| EngineError::Stopped)
    }

    fn resolve(&self, key: &LaneKey, clock: &Arc<dyn Clock>) -> Result<ActorRef<LaneMsg>, EngineError> {
        if let Some(actor) = self.actors.get(key) {
            return Ok(actor.clone());
        }
        let parent = self.parent.read().unwrap_or_else(PoisonError::into_inner).clone();
        let parent = parent.ok_or(EngineError::Stopped)?;
        match self.actors.entry(key.clone()) {
            Entry::Occupied(actor) => Ok(actor.get().clone()),
            Entry::Vacant(place) => {
                let args = LaneState {
                    key: key.clone(),
                    clock: Arc::clone(clock),
                    pressure: self.pressure.clone(),
                    free: self.concurrency,
                    limit: self.queue,
                    queue: VecDeque::new(),
                    closed_until: None,
                };
                let (actor, _) = ActorRuntime::spawn_linked_instant(None, LaneActor, args, parent)
                    .map_err(|_| EngineError::Stopped)?;
                Ok(place.insert(actor).clone())
            }
        }
    }

    /// Drops a lane whose actor failed; tells whether it was one.
    pub fn forget(&self, actor: &ActorCell) -> bool {
        let before = self.actors.len();
        self.actors.retain(|_, known| known.get_id() != actor.get_id());
        self.actors.len() < before
    }
}

struct LaneActor;

struct LaneState {
    key: LaneKey,
    clock: Arc<dyn Clock>,
    pressure: watch::Sender<Arc<Vec<LanePressure>>>,
    free: usize,
    limit: usize,
    queue: VecDeque<(Permit, Admission)>,
    closed_until: Option<Timestamp>,
}

impl Actor for LaneActor {
    type Msg = LaneMsg;
    type State = LaneState;
    type Arguments = LaneState;

    async fn pre_start(&self, _: ActorRef<LaneMsg>, state: LaneState) -> Result<LaneState, ActorProcessingErr> {
        Ok(state)
    }

    async fn handle(
        &self,
        me: ActorRef<LaneMsg>,
        message: LaneMsg,
        state: &mut LaneState,
    ) -> Result<(), ActorProcessingErr> {
        state.reopen_if_due();
        match message {
            LaneMsg::Ask { reply } => reply(state.closed_until),
            LaneMsg::Admit { place, reply } => state.admit(&me, place, reply),
            LaneMsg::Release => state.free += 1,
            LaneMsg::Hold { until } => state.hold(&me, until),
            LaneMsg::Thaw => {}
        }
        state.let_in(&me);
        state.publish();
        Ok(())
    }
}

impl LaneState {
    fn reopen_if_due(&mut self) {
        self.closed_until = self.closed_until.filter(|until| *until > self.clock.now());
    }

    fn admit(&mut self, me: &ActorRef<LaneMsg>, place: Permit, reply: Admission) {
        if let Some(not_before) = self.closed_until {
            let _ = reply.send(Err(Refused::Closed { not_before }));
        } else if self.free > 0 && self.queue.is_empty() {
            self.grant(me, reply);
        } else if self.queue.len() >= self.limit {
            let _ = reply.send(Err(Refused::QueueFull));
        } else {
            self.queue.push_back((place, reply));
        }
    }

    fn grant(&mut self, me: &ActorRef<LaneMsg>, reply: Admission) {
        if reply.is_closed() {
            return;
        }
        self.free -= 1;
        // A caller that left just now drops the permit, which gives the place back.
        let _ = reply.send(Ok(LanePermit { lane: me.clone() }));
    }

    fn let_in(&mut self, me: &ActorRef<LaneMsg>) {
        if let Some(not_before) = self.closed_until {
            for (_, reply) in self.queue.drain(..) {
                let _ = reply.send(Err(Refused::Closed { not_before }));
            }
        }
        while self.free > 0
            && let Some((_, reply)) = self.queue.pop_front()
        {
            self.grant(me, reply);
        }
    }

    fn hold(&mut self, me: &ActorRef<LaneMsg>, until: Timestamp) {
        let now = self.clock.now();
        if until <= now || self.closed_until.is_some_and(|known| known >= until) {
            return;
        }
        self.closed_until = Some(until);
        let (me, delay) = (me.clone(), until.since(now));
        tokio::spawn(async move {
            tokio::time::sleep(delay).await;
            let _ = me.send_message(LaneMsg::Thaw);
        });
    }

    fn publish(&self) {
        let mine = LanePressure {
            lane: self.key.clone(),
            free: self.free,
            queued: self.queue.len(),
            closed_until: self.closed_until,
        };
        self.pressure.send_if_modified(|all| {
            let lanes = Arc::make_mut(all);
            match lanes.iter_mut().find(|known| known.lane == mine.lane) {
                Some(known) if *known == mine => false,
                Some(known) => {
                    *known = mine;
                    true
                }
                None => {
                    lanes.push(mine);
                    true
                }
            }
        });
    }
}
