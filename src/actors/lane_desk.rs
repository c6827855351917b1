use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

use super::EngineError;
use super::intensity::Intensity;
use super::lane::{LanePermit, LanePressure, Refused};
use crate::failure::{LaneKey, Timestamp};
use crate::policy::Limits;

/// How an admission gets back.
pub(super) type Admission = oneshot::Sender<Result<LanePermit, Refused>>;
/// Told until when the lane is closed, if it is.
pub(super) type AskReply = Box<dyn FnOnce(Option<Timestamp>) + Send>;

/// What belongs to a lane but outlives a failure of its actor: who waits, who is inside, and its hold.
pub(super) struct LaneDesk {
    pub key: LaneKey,
    inner: Mutex<LaneState>,
}

pub(super) struct LaneState {
    inside: usize,
    concurrency: usize,
    limit: usize,
    queue: VecDeque<Admission>,
    asks: Vec<AskReply>,
    closed_until: Option<Timestamp>,
    /// Rises with whatever happens at the lane.
    pub touched: u64,
    pub failures: Intensity,
    pub published: Option<LanePressure>,
    /// Set at the engine's end: nobody serves this desk any more.
    over: Option<EngineError>,
}

/// Who is to be told what, once the lane's lock is free: a permit that nobody takes comes back at once.
#[derive(Default)]
pub(super) struct Answers {
    pub admitted: Vec<Admission>,
    pub refused: Vec<(Admission, Timestamp)>,
    pub asked: Vec<(AskReply, Option<Timestamp>)>,
}

impl LaneDesk {
    pub fn new(key: LaneKey, limits: &Limits) -> Self {
        let concurrency = limits.lane_concurrency.max(1);
        let state = LaneState {
            inside: 0,
            concurrency,
            limit: limits.lane_queue,
            queue: VecDeque::new(),
            asks: vec![],
            closed_until: None,
            touched: 0,
            failures: Intensity::default(),
            published: None,
            over: None,
        };
        Self { key, inner: Mutex::new(state) }
    }

    pub fn lock(&self) -> MutexGuard<'_, LaneState> {
        let mut state = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        state.touched += 1;
        state
    }

    /// The state as it is, without counting as something that happened.
    pub fn look(&self) -> MutexGuard<'_, LaneState> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LaneState {
    /// Somebody wants to start a turn.
    ///
    /// # Errors
    ///
    /// Its reply, when too many wait already.
    pub fn arrive(&mut self, reply: Admission) -> Result<(), Admission> {
        if let Some(why) = self.over {
            let _ = reply.send(Err(why.into()));
            return Ok(());
        }
        let room = self.limit.saturating_add(self.free());
        if self.queue.len() >= room {
            self.prune();
        }
        if self.queue.len() >= room {
            return Err(reply);
        }
        self.queue.push_back(reply);
        Ok(())
    }

    /// Drops those who have left the queue.
    pub fn prune(&mut self) {
        self.queue.retain(|reply| !reply.is_closed());
    }

    pub fn ask(&mut self, reply: AskReply) {
        self.asks.push(reply);
    }

    pub fn release(&mut self) {
        self.inside = self.inside.saturating_sub(1);
    }

    /// Turns that may start at once.
    fn free(&self) -> usize {
        self.concurrency.saturating_sub(self.inside)
    }

    /// Other limits, from now on: nobody who is inside or waits is sent away.
    pub fn set_limits(&mut self, limits: &Limits) {
        self.concurrency = limits.lane_concurrency.max(1);
        self.limit = limits.lane_queue;
    }

    /// Closes the lane until then; a hold is never shortened. Tells whether that is news.
    pub fn hold(&mut self, until: Timestamp, now: Timestamp) -> bool {
        if until <= now || self.closed_until.is_some_and(|known| known >= until) {
            return false;
        }
        self.closed_until = Some(until);
        true
    }

    /// How long the lane stays closed.
    pub fn closed_for(&self, now: Timestamp) -> Option<Duration> {
        self.closed_until.map(|until| until.since(now))
    }

    /// Who is to be told what now: first come, first served.
    pub fn serve(&mut self, now: Timestamp) -> Answers {
        self.closed_until = self.closed_until.filter(|until| *until > now);
        let mut answers = Answers::default();
        let closed_until = self.closed_until;
        answers.asked = self.asks.drain(..).map(|reply| (reply, closed_until)).collect();
        if let Some(until) = closed_until {
            answers.refused = self.queue.drain(..).map(|reply| (reply, until)).collect();
        }
        while self.free() > 0
            && let Some(reply) = self.queue.pop_front()
        {
            if !reply.is_closed() {
                self.inside += 1;
                answers.admitted.push(reply);
            }
        }
        answers
    }

    pub fn pressure(&self, lane: &LaneKey) -> LanePressure {
        LanePressure {
            lane: lane.clone(),
            free: self.free(),
            queued: self.queue.len(),
            closed_until: self.closed_until,
        }
    }

    /// Whether nobody is inside, waits, or is kept out.
    pub fn is_idle(&self) -> bool {
        self.inside == 0 && self.queue.is_empty() && self.asks.is_empty() && self.closed_until.is_none()
    }

    /// Everybody who waits, at the engine's end.
    pub fn dismiss(&mut self, why: EngineError) -> (Vec<Admission>, Vec<AskReply>) {
        self.over = Some(why);
        (self.queue.drain(..).collect(), self.asks.drain(..).collect())
    }
}
