//! A random walk of one session through the machine, with everything checked at every step.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::super::fixture::{failure, failure_on_lane, session};
use super::super::{Carrier, Command, Event, Looked, Moment, PhaseName, Plan, Record, Redoer};
use crate::failure::{Kind, RecoveryError, Timestamp};
use crate::policy::session::SessionMemory;
use crate::policy::{Answer, Chain, ChainKey, Injection, Limits, Remedy, Verdict, seed};

/// More steps than any fair path takes: 12 executions, each with a wait, parks, a remedy and a redo.
pub(super) const FAIR_STEPS: usize = 2_000;

/// The world that a walk goes through.
#[derive(Clone)]
pub(super) struct Setup {
    pub plan: Plan,
    pub redoer: Redoer,
    pub start: u64,
    pub deadline: Option<Duration>,
    pub extreme: bool,
    pub seed: u64,
}

/// Only what differs from case to case.
impl std::fmt::Debug for Setup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let users = |chain: &&Arc<Chain>| matches!(chain.key, ChainKey::Category(_));
        let text = |chain: &Arc<Chain>| {
            let steps: Vec<&str> = chain.steps.iter().map(|step| &*step.strategy).collect();
            format!("{} ({}): {}", chain.key, chain.origin, steps.join(" "))
        };
        let Limits { max_total_attempts, max_wait, max_park, .. } = self.plan.limits();
        f.debug_struct("Setup")
            .field("chains", &self.plan.config.chains().filter(users).map(text).collect::<Vec<_>>())
            .field("limits", &(max_total_attempts, max_wait, max_park))
            .field("redoer", &self.redoer)
            .field("start", &self.start)
            .field("deadline", &self.deadline)
            .field("extreme", &self.extreme)
            .field("seed", &self.seed)
            .finish()
    }
}

/// What the machine has asked for and not heard of yet.
#[derive(Default, Clone)]
struct Owed {
    persists: Vec<(u64, Record)>,
    execute: Option<u64>,
    wait: Option<(Timestamp, u32)>,
    lane: Option<u32>,
    carry: Option<u64>,
    redo: Option<u64>,
}

pub(super) struct Walk<'a> {
    setup: &'a Setup,
    pub memory: SessionMemory,
    durable: SessionMemory,
    now: Timestamp,
    owed: Owed,
    dice: u64,
    heard: Vec<Event>,
    pub verdict: Option<Verdict>,
    pub trace: Vec<Command>,
    /// Each attempt by its number: chain, step, attempt, strategy; and how often it was executed.
    executed: BTreeMap<u64, (ChainKey, usize, u32, Arc<str>)>,
    acted: BTreeMap<u64, u32>,
}

impl<'a> Walk<'a> {
    fn begin(setup: &'a Setup) -> Self {
        let mut walk = Self {
            setup,
            memory: SessionMemory::default(),
            durable: SessionMemory::default(),
            now: Timestamp::from_millis(setup.start),
            owed: Owed::default(),
            dice: setup.seed,
            heard: vec![],
            verdict: None,
            trace: vec![],
            executed: BTreeMap::new(),
            acted: BTreeMap::new(),
        };
        let at = Moment { now: walk.now, seed: setup.seed };
        let deadline = setup.deadline.map(|span| walk.now + span);
        let error = walk.error();
        match walk.memory.open(&session(), error, setup.redoer, None, deadline, &setup.plan, at) {
            Ok(commands) => walk.follow(commands),
            Err(refusal) => walk.verdict = Some(refusal.verdict),
        }
        walk
    }

    fn roll(&mut self, sides: u64) -> u64 {
        self.dice = seed::mix(self.dice, 1);
        self.dice % sides
    }

    fn error(&mut self) -> Arc<RecoveryError> {
        let kinds = [Kind::RateLimit, Kind::ContextOverflow, Kind::EditNotFound, Kind::RateLimit];
        let kind = kinds[self.roll(4) as usize].clone();
        let mut error = if self.roll(2) == 0 { failure(kind) } else { failure_on_lane(kind) };
        error.timestamp = self.now;
        error.retryable = self.roll(4) > 0;
        // What a record holds: whole milliseconds, as many as fit.
        let longest = Duration::from_millis(u64::MAX);
        error.details.retry_after = (self.roll(3) == 0).then(|| self.duration().min(longest));
        Arc::new(error)
    }

    fn duration(&mut self) -> Duration {
        match self.roll(8) {
            0..3 => Duration::ZERO,
            3 if self.setup.extreme => Duration::MAX,
            4 if self.setup.extreme => Duration::from_secs(u64::MAX),
            sides => Duration::from_millis(sides * 700),
        }
    }

    fn answer(&mut self) -> Answer {
        let remedy = match self.roll(6) {
            0 => Some(Remedy::Compact { preserve: vec![] }),
            1 => Some(Remedy::SwitchModel { model: "acme/small".into() }),
            2 => {
                Some(Remedy::Truncate { ratio: [0.5, 1.0, f64::NAN, -1.0][self.roll(4) as usize], min_output_size: 1 })
            }
            _ => None,
        };
        match self.roll(9) {
            0..3 => Answer::Success { message: "done".into(), remedy },
            3..6 => Answer::Retry { delay: self.duration(), reason: "again".into(), remedy },
            6..8 => Answer::next_strategy("no"),
            _ => [Answer::abort("stop"), Answer::escalate("help")][self.roll(2) as usize].clone(),
        }
    }

    /// One thing that can happen now and that the machine waits for.
    fn fair_event(&mut self) -> Option<Event> {
        if !self.owed.persists.is_empty() && (self.roll(3) > 0 || self.nothing_else_owed()) {
            let (seq, record) = self.owed.persists.remove(0);
            return Some(Event::Persisted { seq, record });
        }
        if let Some(seq) = self.owed.execute.take() {
            if self.roll(10) == 0 {
                return Some(Event::RunnerBusy { seq });
            }
            let injections = vec![Injection::new("remember this"); self.roll(30) as usize];
            return Some(Event::Answered { seq, answer: self.answer(), injections });
        }
        if let Some(epoch) = self.owed.lane.take() {
            if self.roll(2) == 0 {
                return Some(Event::LaneOpen { epoch });
            }
            return Some(Event::LaneClosed { epoch, until: self.now + self.duration() });
        }
        if let Some(seq) = self.owed.carry.take() {
            return Some(match self.roll(4) {
                0 => Event::RemedyFailed { seq, reason: "cannot".into() },
                1 => Event::Carried { seq, by: Carrier::Client },
                2 => Event::Carried { seq, by: Carrier::Turn(Some(Injection::new("be brief"))) },
                _ => Event::Carried { seq, by: Carrier::Turn(None) },
            });
        }
        if let Some(seq) = self.owed.redo.take() {
            return Some(match self.roll(8) {
                0 => Event::TurnWorked { seq },
                1 => Event::Reported { seq, error: None },
                2 if self.is_redone_by(&[Redoer::Host, Redoer::Client]) => {
                    Event::RemedyFailed { seq, reason: "declined".into() }
                }
                _ => Event::Reported { seq, error: Some(self.error()) },
            });
        }
        let (until, epoch) = self.owed.wait.take()?;
        self.now = self.now.max(until);
        Some(Event::DelayElapsed { epoch })
    }

    fn is_redone_by(&self, redoers: &[Redoer]) -> bool {
        self.memory.episode().is_some_and(|episode| redoers.contains(&episode.redoer()))
    }

    fn nothing_else_owed(&self) -> bool {
        let Owed { execute, lane, carry, redo, wait, .. } = &self.owed;
        execute.is_none() && lane.is_none() && carry.is_none() && redo.is_none() && wait.is_none()
    }

    fn send(&mut self, event: Event) {
        self.heard.push(event.clone());
        let commands = self.memory.on(event, &self.setup.plan, self.now);
        self.follow(commands);
    }

    /// An event that is late, stale or made up: it must change nothing.
    fn noise(&mut self) {
        let fence = self.memory.fence();
        let (seq, epoch) =
            (fence.seq.wrapping_add(1 + self.roll(3)), fence.epoch.wrapping_sub(1 + self.roll(3) as u32));
        let event = match self.roll(12) {
            0 => Event::Answered { seq, answer: self.answer(), injections: vec![Injection::new("late")] },
            1 => Event::RunnerBusy { seq },
            2 => Event::Persisted { seq, record: Record::Redo },
            3 => Event::Persisted { seq: fence.seq.wrapping_sub(1), record: Record::Attempt },
            4 => Event::DelayElapsed { epoch },
            5 => Event::LaneOpen { epoch },
            6 => Event::LaneClosed { epoch, until: self.now },
            7 => Event::Carried { seq, by: Carrier::Turn(None) },
            8 => Event::RemedyFailed { seq, reason: "late".into() },
            9 => Event::TurnWorked { seq },
            10 => Event::Reported { seq, error: Some(self.error()) },
            _ if self.heard.is_empty() => return,
            // What was heard once is heard again.
            _ => {
                let one = self.roll(self.heard.len() as u64) as usize;
                self.heard[one].clone()
            }
        };
        let before = self.memory.clone();
        let commands = self.memory.on(event.clone(), &self.setup.plan, self.now);
        assert_eq!(commands, [], "{event:?} in {before:?}");
        assert_eq!(self.memory, before, "{event:?}");
    }

    /// The process dies; either the last acknowledged record is found again, or one that was under way.
    fn crash(&mut self) {
        let found = if self.roll(2) == 0 { self.durable.clone() } else { self.memory.snapshot() };
        let json = serde_json::to_string(&found).expect("it has no value that JSON lacks");
        self.memory = serde_json::from_str(&json).expect("the machine wrote it");
        let mut expected = found;
        if let Some(episode) = expected.episode_mut() {
            episode.take_notes();
        }
        assert_eq!(self.memory, expected, "what was written is read");
        self.owed = Owed::default();
        self.heard.clear();
        // What was only computed and never written has not happened.
        let last = self.memory.fence().seq;
        self.executed.retain(|seq, _| *seq <= last);
        if self.memory.open_episode().is_none() {
            self.verdict = Some(self.memory.last_verdict().cloned().unwrap_or(Verdict::Cancelled));
            return;
        }
        if self.roll(4) == 0 {
            // The clock was set back.
            self.now = Timestamp::from_millis(self.now.as_millis() / 2);
        }
        let looked = match self.roll(4) {
            0 => Looked::Worked,
            1 => Looked::Failed(self.error()),
            _ => Looked::Unknown,
        };
        let others = [Redoer::Nobody, Redoer::Caller, Redoer::Client, Redoer::Host];
        let redoer = if self.roll(3) == 0 { others[self.roll(4) as usize] } else { self.setup.redoer };
        let commands = self.memory.resume(redoer, looked, &self.setup.plan, self.now);
        self.follow(commands);
    }

    fn follow(&mut self, commands: Vec<Command>) {
        self.trace.extend(commands.iter().cloned());
        for command in commands {
            match command {
                Command::Persist { seq, record } => {
                    // On disk the moment it is acknowledged at the latest; the walk crashes on both sides.
                    self.durable = self.memory.snapshot();
                    self.owed.persists.push((seq, record));
                }
                Command::Execute(attempt) => {
                    let episode = self.memory.episode().expect("it asked");
                    let strategy = Arc::clone(&attempt.plan.strategy);
                    let place = (episode.chain().clone(), attempt.step, attempt.attempt, Arc::clone(&strategy));
                    if !self.setup.plan.only_computes(&strategy) {
                        *self.acted.entry(attempt.seq).or_default() += 1;
                    }
                    self.executed.retain(|seq, _| *seq < attempt.seq);
                    self.executed.insert(attempt.seq, place);
                    self.owed.execute = Some(attempt.seq);
                }
                Command::Wait { until, epoch } => {
                    self.check_wait(until);
                    self.owed.wait = Some((until, epoch));
                }
                Command::AskLane { epoch, .. } => self.owed.lane = Some(epoch),
                Command::Carry { seq, .. } => self.owed.carry = Some(seq),
                Command::Redo(redo) => {
                    assert!(redo.turn.injections.len() <= super::super::Episode::INJECTIONS_KEPT);
                    let episode = self.memory.episode().expect("it asked");
                    if episode.redoer() == Redoer::Host {
                        let in_time =
                            episode.deadline().is_none_or(|deadline| redo.not_before <= deadline.max(self.now));
                        assert!(in_time, "a host is not told to wait past the deadline");
                    }
                    self.owed.redo = Some(redo.turn.seq);
                }
                Command::Finish(verdict) => {
                    assert!(self.verdict.is_none(), "one verdict an episode");
                    self.verdict = Some(verdict);
                }
            }
        }
    }

    fn check_wait(&self, until: Timestamp) {
        let (episode, limits) = (self.memory.episode().expect("it asked"), self.setup.plan.limits());
        let most = match episode.phase() {
            PhaseName::Waiting => limits.max_wait,
            PhaseName::Parked => limits.max_park,
            // How long a redo may be silent: the deadline ends it without being waited for.
            _ => return,
        };
        assert!(until <= self.now + most, "{:?}", episode.phase());
        assert!(episode.deadline().is_none_or(|deadline| until <= deadline), "{:?}", episode.phase());
    }

    fn check_always(&self) {
        let limit = self.setup.plan.limits().max_total_attempts;
        assert!(self.acted.values().all(|times| *times == 1), "an attempt that acts is never made again");
        let Some(episode) = self.memory.episode() else { return };
        assert!(episode.executions() <= limit);
        let over = self.executed.len().saturating_sub(limit as usize);
        assert!(over <= 1, "{} executions of {limit}", self.executed.len());
        if over == 1 {
            let (.., strategy) = self.executed.values().last().expect("there is one");
            assert!(matches!(&**strategy, "abort" | "escalate"), "only a closing step runs over the limit");
        }
    }

    /// In each chain the places go forward, and each step's attempts are 1, 2, 3…
    fn check_places(&self) {
        let mut places: BTreeMap<&ChainKey, (usize, u32)> = BTreeMap::new();
        for (chain, step, attempt, _) in self.executed.values() {
            match places.insert(chain, (*step, *attempt)) {
                Some((before, last)) if before == *step => assert_eq!(*attempt, last + 1, "{:?}", self.executed),
                Some((before, _)) => assert!(*step > before && *attempt == 1, "{:?}", self.executed),
                None => assert_eq!(*attempt, 1, "{:?}", self.executed),
            }
        }
    }

    pub(super) fn run(setup: &'a Setup, script: &[u8], crashes: bool) -> Self {
        let mut walk = Self::begin(setup);
        for byte in script {
            if walk.verdict.is_some() {
                break;
            }
            walk.dice = seed::mix(walk.dice, u64::from(*byte));
            match byte {
                0..120 => walk.step(),
                120..230 => walk.noise(),
                230..250 if crashes => walk.crash(),
                250 => walk.send(Event::Cancelled),
                251 => walk.send(Event::DeadlinePassed),
                _ => walk.noise(),
            }
            walk.check_always();
        }
        for _ in 0..FAIR_STEPS {
            if walk.verdict.is_some() {
                walk.noise();
                break;
            }
            walk.step();
            walk.check_always();
        }
        walk.check_places();
        walk
    }

    fn step(&mut self) {
        match self.fair_event() {
            Some(event) => self.send(event),
            None => panic!("nothing is owed and nothing has ended: {:?}", self.memory.episode()),
        }
    }
}
