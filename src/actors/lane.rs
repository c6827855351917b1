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
use super::lane_desk::{Answers, LaneDesk};
use super::lanes::Lanes;
use crate::failure::{LaneKey, Timestamp};

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
pub struct LanePermit {
    desk: Arc<LaneDesk>,
    lanes: Weak<Lanes>,
}

impl fmt::Debug for LanePermit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LanePermit").field(&self.desk.key).finish()
    }
}

impl Drop for LanePermit {
    fn drop(&mut self) {
        self.desk.lock().release();
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

pub(super) struct LaneActor;

pub(super) struct LaneArgs {
    pub desk: Arc<LaneDesk>,
    pub lanes: Weak<Lanes>,
    pub clock: Arc<dyn Clock>,
    pub pressure: watch::Sender<Arc<Vec<LanePressure>>>,
    pub idle_after: Duration,
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
        let (answers, later, touched) = {
            let mut lane = desk.look();
            let now = self.args.clock.now();
            let answers = lane.serve(now);
            let later = lane.closed_for(now).or(lane.is_idle().then_some(self.args.idle_after));
            let pressure = lane.pressure(&desk.key);
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
        for reply in answers.admitted {
            // A caller that left just now drops the permit, which gives the place back.
            let permit = LanePermit { desk: Arc::clone(&self.args.desk), lanes: Weak::clone(&self.args.lanes) };
            let _ = reply.send(Ok(permit));
        }
        for (reply, not_before) in answers.refused {
            let _ = reply.send(Err(Refused::Closed { not_before }));
        }
        for (reply, closed_until) in answers.asked {
            reply(closed_until);
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
