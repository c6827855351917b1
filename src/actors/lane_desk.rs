use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

use super::EngineError;
use super::intensity::Intensity;
use super::lane::{LanePermit, LanePressure, Refused};
use crate::failure::{LaneKey, Timestamp};
use crate::policy::Limits;
use crate::policy::lane::{CallEnd, Lane, LaneNote, LaneSettings, Standing, Start};

/// How an admission gets back.
pub(super) type Admission = oneshot::Sender<Result<LanePermit, Refused>>;
/// Told until when the lane is closed, if it is; and again, once the lane lets the redo go.
pub(super) type AskReply = Arc<dyn Fn(Option<Timestamp>) + Send + Sync>;

/// Somebody who wants to start a turn.
pub(super) struct Caller {
    /// The session's number, where it is known.
    pub session: Option<u64>,
    /// Whether it may have been let go before, by [`LaneState::ask`].
    pub is_redo: bool,
    /// Waits while the lane is closed, but not past this; `None` is refused instead.
    pub patience: Option<Option<Timestamp>>,
    pub reply: Admission,
}

/// A session's question whether its redo may go.
pub(super) struct Question {
    pub session: u64,
    /// An open-loop host waits by itself and comes back with an admission: it is answered once.
    pub is_hosts: bool,
    pub reply: AskReply,
}

/// A question that waits, and what it was told to wait for.
struct Parked {
    question: Question,
    told: Option<Timestamp>,
}

/// That a redo was let go: until when it may come, unless the circuit opened meanwhile.
#[derive(Clone, Copy)]
struct Pass {
    until: Timestamp,
    generation: u32,
}

/// What belongs to a lane but outlives a failure of its actor: who waits, who is inside, and what it learned.
pub(super) struct LaneDesk {
    pub key: LaneKey,
    inner: Mutex<LaneState>,
}

pub(super) struct LaneState {
    inside: usize,
    limit: usize,
    lane: Lane,
    /// Those who were let go before, then the others and the redos, each with the number of its coming.
    passed: VecDeque<Caller>,
    fresh: VecDeque<(u64, Caller)>,
    redos: BTreeMap<u64, Parked>,
    /// Under which number a session's question waits, and which were not answered yet.
    asking: HashMap<u64, u64>,
    unanswered: Vec<u64>,
    granted: Vec<AskReply>,
    came: u64,
    /// Sessions whose redo was let go and has not come yet.
    passes: HashMap<u64, Pass>,
    /// The same for hosts, whose sessions are not known when they come.
    host_passes: VecDeque<Pass>,
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
    pub admitted: Vec<(Caller, u32)>,
    pub refused: Vec<(Admission, Timestamp)>,
    pub asked: Vec<(AskReply, Option<Timestamp>)>,
    pub notes: Vec<LaneNote>,
    /// When to look again, if nothing happens before.
    pub later: Option<Timestamp>,
}

impl LaneDesk {
    pub fn new(key: LaneKey, limits: &Limits, seed: u64, now: Timestamp) -> Self {
        let state = LaneState {
            inside: 0,
            limit: limits.lane_queue,
            lane: Lane::new(LaneSettings::of(limits), seed, now),
            passed: VecDeque::new(),
            fresh: VecDeque::new(),
            redos: BTreeMap::new(),
            asking: HashMap::new(),
            unanswered: vec![],
            granted: vec![],
            came: 0,
            passes: HashMap::new(),
            host_passes: VecDeque::new(),
            touched: 0,
            failures: Intensity::default(),
            published: None,
            over: None,
        };
        Self { key, inner: Mutex::new(state) }
    }

    pub fn lock(&self) -> MutexGuard<'_, LaneState> {
        let mut state = self.look();
        state.touched += 1;
        state
    }

    /// The state as it is, without counting as something that happened.
    pub fn look(&self) -> MutexGuard<'_, LaneState> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LaneState {
    /// How long a redo that was let go may take to come: its record and its remedy lie between.
    const PASS: Duration = Duration::from_secs(60);
    /// How many redos are looked at for one whose session had few: the budget makes room for those.
    const LOOKED_AT: usize = 64;
    /// Passes remembered.
    const PASSES: usize = 65_536;

    /// Somebody wants to start a turn.
    ///
    /// # Errors
    ///
    /// Why not, when too many wait already.
    pub fn arrive(&mut self, caller: Caller, now: Timestamp) -> Result<(), Refused> {
        if let Some(why) = self.over {
            let _ = caller.reply.send(Err(why.into()));
            return Ok(());
        }
        if self.has_pass(&caller, now) {
            self.passed.push_back(caller);
            return Ok(());
        }
        let room = self.limit.saturating_add(self.free());
        if self.fresh.len() >= room {
            self.prune();
        }
        if self.fresh.len() >= room {
            let not_before = self.expected(now);
            return Err(match self.lane.closed_until(now) {
                Some(_) => Refused::Closed { not_before },
                None => Refused::QueueFull { not_before },
            });
        }
        self.came += 1;
        self.fresh.push_back((self.came, caller));
        Ok(())
    }

    fn has_pass(&mut self, caller: &Caller, now: Timestamp) -> bool {
        let Some(session) = caller.session else {
            while self.host_passes.front().is_some_and(|pass| !self.is_good(*pass, now)) {
                self.host_passes.pop_front();
            }
            return self.host_passes.pop_front().is_some();
        };
        caller.is_redo && self.passes.remove(&session).is_some_and(|pass| self.is_good(pass, now))
    }

    fn is_good(&self, pass: Pass, now: Timestamp) -> bool {
        pass.until > now && pass.generation == self.lane.generation()
    }

    /// When one who came now could start.
    pub fn expected(&mut self, now: Timestamp) -> Timestamp {
        let ahead = self.passed.len() + self.fresh.len();
        self.lane.expected(ahead, false, now)
    }

    /// Drops those who have left the queue.
    pub fn prune(&mut self) {
        self.passed.retain(|caller| !caller.reply.is_closed());
        self.fresh.retain(|(_, caller)| !caller.reply.is_closed());
    }

    /// A session asks; one that asked before keeps its place.
    pub fn ask(&mut self, question: Question, now: Timestamp) {
        if self.passes.get(&question.session).is_some_and(|pass| self.is_good(*pass, now)) {
            // It was let go just now, and its own timer came first.
            self.granted.push(question.reply);
            return;
        }
        let came = *self.asking.entry(question.session).or_insert_with(|| {
            self.came += 1;
            self.came
        });
        self.redos.insert(came, Parked { question, told: None });
        self.unanswered.push(came);
    }

    /// A call that had a permit has ended.
    pub fn release(&mut self, session: u64, generation: u32, end: CallEnd, now: Timestamp) {
        self.inside = self.inside.saturating_sub(1);
        self.lane.ended(session, Some(generation), end, self.inside, now);
    }

    /// A call that had none, or whose permit said nothing, has ended.
    pub fn ended(&mut self, session: u64, end: CallEnd, now: Timestamp) {
        self.lane.ended(session, None, end, self.inside, now);
    }

    /// Turns that may start at once.
    fn free(&self) -> usize {
        self.lane.window().saturating_sub(self.inside)
    }

    /// Other limits, from now on: nobody who is inside or waits is sent away.
    pub fn set_limits(&mut self, limits: &Limits) {
        self.lane.adjust(LaneSettings::of(limits));
        self.limit = limits.lane_queue;
    }

    /// Closes the lane until then; a hold is never shortened. Tells whether that is news.
    pub fn hold(&mut self, until: Timestamp, now: Timestamp) -> bool {
        self.lane.hold(until, now)
    }

    /// Who is to be told what now: those who came first go first.
    pub fn serve(&mut self, now: Timestamp) -> Answers {
        let mut answers = Answers::default();
        answers.asked.extend(self.granted.drain(..).map(|reply| (reply, None)));
        self.refuse(&mut answers, now);
        self.let_go(&mut answers, now);
        self.tell_to_wait(&mut answers, now);
        if self.fresh.is_empty() && self.redos.is_empty() {
            later(&mut answers, self.lane.settle(now));
        } else {
            // Asked for what passing time changes; a lane at which somebody waits has not thawed.
            later(&mut answers, self.lane.complaint_due());
        }
        later(&mut answers, self.lane.closed_until(now));
        answers.notes = self.lane.take_notes();
        answers
    }

    /// Those who do not wait while the lane is closed, or not as long as the server stated.
    fn refuse(&mut self, answers: &mut Answers, now: Timestamp) {
        let Some(until) = self.lane.closed_until(now) else { return };
        let is_held = self.lane.standing(now) == Standing::Held;
        let stays = |caller: &Caller| match caller.patience {
            None => false,
            Some(last) => !(is_held && last.is_some_and(|last| last <= until)),
        };
        let fresh = std::mem::take(&mut self.fresh);
        for (came, caller) in fresh {
            if stays(&caller) {
                self.fresh.push_back((came, caller));
            } else {
                answers.refused.push((caller.reply, until));
            }
        }
        let passed = std::mem::take(&mut self.passed);
        for caller in passed {
            // The circuit closes behind those who were let go, a stated wait stops them too.
            if is_held && !stays(&caller) {
                answers.refused.push((caller.reply, until));
            } else {
                self.passed.push_back(caller);
            }
        }
    }

    fn let_go(&mut self, answers: &mut Answers, now: Timestamp) {
        while let Some(caller) = self.passed.pop_front() {
            if caller.reply.is_closed() {
                continue;
            }
            match self.lane.start_passed(self.inside, now) {
                Start::Go { generation } => self.enter(caller, generation, answers),
                _ => {
                    self.passed.push_front(caller);
                    return;
                }
            }
        }
        let (mut fresh_may, mut redos_may) = (true, true);
        loop {
            while self.fresh.front().is_some_and(|(_, caller)| caller.reply.is_closed()) {
                self.fresh.pop_front();
            }
            let fresh = self.fresh.front().map(|(came, _)| *came).filter(|_| fresh_may);
            let redo = self.redos.keys().next().copied().filter(|_| redos_may);
            match (fresh, redo) {
                (None, None) => return,
                (Some(fresh), redo) if redo.is_none_or(|redo| fresh < redo) => {
                    fresh_may = self.let_fresh_go(answers, now);
                }
                _ => redos_may = self.let_redo_go(answers, now),
            }
        }
    }

    /// Lets the first go; tells whether the next may be tried.
    fn let_fresh_go(&mut self, answers: &mut Answers, now: Timestamp) -> bool {
        let start = self.lane.start_fresh(self.inside, now);
        if let Start::NotBefore(until) = start {
            later(answers, Some(until));
        }
        let Start::Go { generation } = start else { return false };
        if let Some((_, caller)) = self.fresh.pop_front() {
            self.enter(caller, generation, answers);
        }
        true
    }

    fn enter(&mut self, caller: Caller, generation: u32, answers: &mut Answers) {
        self.inside += 1;
        answers.admitted.push((caller, generation));
    }

    /// Lets the first redo go that may; tells whether there was one.
    fn let_redo_go(&mut self, answers: &mut Answers, now: Timestamp) -> bool {
        // Whoever was told when to ask again and did not has gone.
        let has_gone = |parked: &Parked| parked.told.is_some_and(|told| told + Self::PASS <= now);
        let first: Vec<(u64, u64, bool)> = {
            let first = self.redos.iter().take(Self::LOOKED_AT);
            first.map(|(came, parked)| (*came, parked.question.session, has_gone(parked))).collect()
        };
        for (came, session, has_gone) in first {
            if has_gone {
                self.remove(came);
                continue;
            }
            match self.lane.start_redo(session, now) {
                Start::Go { generation } => {
                    if let Some(parked) = self.remove(came) {
                        self.pass(&parked.question, generation, now);
                        answers.asked.push((parked.question.reply, None));
                    }
                    return true;
                }
                Start::NotBefore(until) => later(answers, Some(until)),
                Start::Full => {}
            }
            if self.lane.standing(now) != Standing::Open {
                // The same for all: only the budget tells sessions apart.
                break;
            }
        }
        false
    }

    fn remove(&mut self, came: u64) -> Option<Parked> {
        let parked = self.redos.remove(&came)?;
        self.asking.remove(&parked.question.session);
        Some(parked)
    }

    fn pass(&mut self, question: &Question, generation: u32, now: Timestamp) {
        let pass = Pass { until: now + Self::PASS, generation };
        if question.is_hosts {
            if self.host_passes.len() < Self::PASSES {
                self.host_passes.push_back(pass);
            }
            return;
        }
        if self.passes.len() >= Self::PASSES {
            self.passes.retain(|_, pass| pass.until > now);
        }
        if self.passes.len() < Self::PASSES {
            self.passes.insert(question.session, pass);
        }
    }

    /// Those whose redo does not go yet are told when to ask again: they may hear before.
    fn tell_to_wait(&mut self, answers: &mut Answers, now: Timestamp) {
        let first = self.redos.keys().next().copied().unwrap_or_default();
        for came in std::mem::take(&mut self.unanswered) {
            let waiting = self.redos.len();
            let Some(parked) = self.redos.get_mut(&came) else { continue };
            let ahead = usize::try_from(came - first).unwrap_or(waiting).min(waiting);
            let until = self.lane.expected(ahead, true, now).max(now + Duration::from_millis(1));
            parked.told = Some(until);
            answers.asked.push((Arc::clone(&parked.question.reply), Some(until)));
            if parked.question.is_hosts {
                // It comes back by itself.
                self.remove(came);
            }
        }
    }

    pub fn pressure(&self, lane: &LaneKey, now: Timestamp) -> LanePressure {
        LanePressure {
            lane: lane.clone(),
            standing: self.lane.standing(now),
            free: self.free(),
            queued: self.fresh.len() + self.passed.len(),
            parked: self.redos.len(),
            closed_until: self.lane.closed_until(now),
        }
    }

    /// Whether nobody is inside, waits, or is kept out.
    pub fn is_idle(&self, now: Timestamp) -> bool {
        let waits = self.passed.len() + self.fresh.len() + self.redos.len();
        self.inside == 0 && waits == 0 && self.lane.standing(now) == Standing::Open
    }

    /// Everybody who waits, at the engine's end.
    pub fn dismiss(&mut self, why: EngineError) -> Vec<Admission> {
        self.over = Some(why);
        self.redos.clear();
        self.asking.clear();
        let fresh = self.fresh.drain(..).map(|(_, caller)| caller);
        self.passed.drain(..).chain(fresh).map(|caller| caller.reply).collect()
    }
}

fn later(answers: &mut Answers, at: Option<Timestamp>) {
    answers.later = match (answers.later, at) {
        (Some(known), Some(at)) => Some(known.min(at)),
        (known, at) => known.or(at),
    };
}
