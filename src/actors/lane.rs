//! One actor per lane in use: who may start a turn there, and until when nobody may.

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use ractor::{Actor, ActorProcessingErr, ActorRef};
use serde::Serialize;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::EngineError;
use super::clock::Clock;
use super::events::{EngineEvent, EventBus};
use super::lane_desk::{Answers, LaneDesk};
use super::lanes::Lanes;
use crate::failure::{LaneKey, RecoveryError, Timestamp};
use crate::policy::lane::{Blame, CallEnd, LaneNote, Standing};

/// A time that has come since it was named is looked at with the next tick, never in a spin.
const SHORTEST_SLEEP: Duration = Duration::from_millis(1);

/// What a lane's actor is told: what has happened stands at its desk.
pub(crate) enum LaneMsg {
    /// Something changed at the desk.
    Wake,
    /// A hold may be over, or the lane may be out of use since this many changes.
    Later { touched: u64 },
    /// Panics, to prove that neighbours are unharmed.
    #[cfg(any(test, feature = "test-util"))]
    Panic,
}

/// Permission to start one turn on a lane; its end is reported by dropping it.
///
/// What came of the turn is evidence about the lane: [`worked`](Self::worked) and [`failed`](Self::failed) say so.
/// A permit that is only dropped counts as a turn that worked, unless its host reports a failure within a second.
pub struct LanePermit {
    desk: Arc<LaneDesk>,
    lanes: Weak<Lanes>,
    clock: Arc<dyn Clock>,
    session: u64,
    generation: u32,
    end: CallEnd,
}

impl LanePermit {
    /// The turn worked.
    pub fn worked(mut self) {
        self.end = CallEnd::Worked;
    }

    /// The turn failed with this. A host that hands the failure to the engine besides, by
    /// [`report`](crate::RecoveryEngine::report), only drops the permit: the same failure would count twice.
    pub fn failed(mut self, error: &RecoveryError) {
        self.end = CallEnd::Failed(Blame::of(error));
    }
}

impl fmt::Debug for LanePermit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LanePermit").field(&self.desk.key).finish()
    }
}

impl Drop for LanePermit {
    fn drop(&mut self) {
        self.desk.lock().release(self.session, self.generation, self.end, self.clock.now());
        if let Some(lanes) = self.lanes.upgrade() {
            lanes.wake(&self.desk.key);
        }
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
    #[error("too many callers wait at this lane; it may have room from {not_before}")]
    QueueFull {
        /// When those who wait now are expected to have gone.
        not_before: Timestamp,
    },
    /// The engine takes nothing any more.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// How busy a lane is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LanePressure {
    /// The lane.
    pub lane: LaneKey,
    /// Whether and how turns start.
    pub standing: Standing,
    /// Turns that may start at once, as far as their number goes.
    pub free: usize,
    /// Callers that wait.
    pub queued: usize,
    /// Sessions whose redos wait.
    pub parked: usize,
    /// Until when the lane is closed: when its stated wait ends, or a probe goes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub closed_until: Option<Timestamp>,
}

pub(super) struct LaneActor;

pub(super) struct LaneArgs {
    pub desk: Arc<LaneDesk>,
    pub lanes: Weak<Lanes>,
    pub clock: Arc<dyn Clock>,
    pub pressure: watch::Sender<Arc<Vec<LanePressure>>>,
    pub events: Arc<EventBus>,
}

pub(super) struct LaneActorState {
    args: LaneArgs,
    later: Option<AbortHandle>,
}

impl Actor for LaneActor {
    type Msg = LaneMsg;
    type State = LaneActorState;
    type Arguments = LaneArgs;

    async fn pre_start(&self, me: ActorRef<LaneMsg>, args: LaneArgs) -> Result<LaneActorState, ActorProcessingErr> {
        // What the one before left at the desk goes on.
        let _ = me.send_message(LaneMsg::Wake);
        Ok(LaneActorState { args, later: None })
    }

    async fn handle(
        &self,
        me: ActorRef<LaneMsg>,
        message: LaneMsg,
        state: &mut LaneActorState,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            LaneMsg::Wake => {}
            LaneMsg::Later { touched } => {
                if state.is_out_of_use(touched) {
                    me.stop(None);
                    return Ok(());
                }
            }
            #[cfg(any(test, feature = "test-util"))]
            LaneMsg::Panic => panic!("asked to panic"),
        }
        state.serve(&me);
        Ok(())
    }
}

impl LaneActorState {
    fn serve(&mut self, me: &ActorRef<LaneMsg>) {
        let desk = &self.args.desk;
        let Some(lanes) = self.args.lanes.upgrade() else { return };
        let now = self.args.clock.now();
        let (answers, later, touched) = {
            let mut lane = desk.look();
            let answers = lane.serve(now);
            let idle = lane.is_idle(now).then(|| lanes.idle_after());
            let later = answers.later.map(|at| at.since(now).max(SHORTEST_SLEEP)).or(idle);
            let pressure = lane.pressure(&desk.key, now);
            if lane.published.as_ref() != Some(&pressure) {
                self.publish(&pressure);
                lane.published = Some(pressure);
            }
            (answers, later, lane.touched)
        };
        self.tell(answers);
        if let Some(task) = self.later.take() {
            task.abort();
        }
        let Some(delay) = later else { return };
        let me = me.clone();
        let timer = tokio::spawn(async move {
            tokio::time::sleep(delay).await;
            let _ = me.send_message(LaneMsg::Later { touched });
        });
        self.later = Some(timer.abort_handle());
    }

    fn tell(&self, answers: Answers) {
        for note in answers.notes {
            self.announce(note);
        }
        for (caller, generation) in answers.admitted {
            // A caller that left just now drops the permit, which gives the place back.
            let permit = LanePermit {
                desk: Arc::clone(&self.args.desk),
                lanes: Weak::clone(&self.args.lanes),
                clock: Arc::clone(&self.args.clock),
                session: caller.session.unwrap_or_default(),
                generation,
                // The session tells by itself how its turn ended; of a host nothing more may come.
                end: caller.session.map_or(CallEnd::Silent, |_| CallEnd::Failed(Blame::Session)),
            };
            let _ = caller.reply.send(Ok(permit));
        }
        for (reply, not_before) in answers.refused {
            let _ = reply.send(Err(Refused::Closed { not_before }));
        }
        for (reply, closed_until) in answers.asked {
            reply(closed_until);
        }
    }

    fn announce(&self, note: LaneNote) {
        let lane = &self.args.desk.key;
        tracing::info!(%lane, decision = note.what.as_str(), what = ?note.what, "the lane decided");
        if self.args.events.is_heard() {
            self.args.events.publish(EngineEvent::Lane { lane: lane.clone(), note });
        }
    }

    fn is_out_of_use(&self, touched: u64) -> bool {
        let Some(lanes) = self.args.lanes.upgrade() else { return true };
        lanes.put_away(&self.args.desk, touched)
    }

    /// Puts the lane's pressure among the others', which are in the order of their keys.
    fn publish(&self, mine: &LanePressure) {
        self.args.pressure.send_modify(|all| {
            let lanes = Arc::make_mut(all);
            match lanes.binary_search_by(|known| known.lane.cmp(&mine.lane)) {
                Ok(place) => lanes[place] = mine.clone(),
                Err(place) => lanes.insert(place, mine.clone()),
            }
        });
    }
}

impl Drop for LaneActorState {
    fn drop(&mut self) {
        if let Some(task) = self.later.take() {
            task.abort();
        }
    }
}
