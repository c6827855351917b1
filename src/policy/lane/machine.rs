use std::collections::VecDeque;
use std::time::Duration;

use super::budget::Budget;
use super::circuit::Circuit;
use super::evidence::{Blame, CallEnd};
use super::gate::Gate;
use super::note::{LaneNote, LaneNoteKind, Standing};
use super::rate::{Rate, seconds};
use super::settings::LaneSettings;
use super::suspicion::Suspicion;
use super::thaw::Thaw;
use crate::failure::Timestamp;
use crate::policy::seed;

/// Whether a call may start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// It has begun, as one of this generation: what a later trip says does not rest on it.
    Go {
        /// To be handed back with the call's end.
        generation: u32,
    },
    /// Not before this time.
    NotBefore(Timestamp),
    /// As many as may are under way: when one ends, this may be asked again.
    Full,
}

/// One lane's decisions: circuit, gate, budget and ramp.
///
/// ```
/// use backstop::policy::Limits;
/// use backstop::policy::lane::{Blame, CallEnd, Lane, LaneSettings, Standing, Start};
/// use backstop::failure::Timestamp;
///
/// let now = Timestamp::from_millis(1_000);
/// let mut lane = Lane::new(LaneSettings::of(&Limits::default()), 7, now);
/// // Five sessions in a row fail: the provider is down, and nobody else has to find out.
/// for session in 0..5 {
///     let Start::Go { generation } = lane.start_fresh(0, now) else { panic!() };
///     lane.ended(session, Some(generation), CallEnd::Failed(Blame::Lane), 0, now);
/// }
/// assert_eq!(lane.standing(now), Standing::Closed);
/// assert!(matches!(lane.start_fresh(0, now), Start::NotBefore(later) if later > now));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Lane {
    settings: LaneSettings,
    circuit: Circuit,
    gate: Gate,
    budget: Budget,
    suspicion: Suspicion,
    worked: Rate,
    generation: u32,
    seed: u64,
    notes: Vec<LaneNote>,
    /// Calls that ended without a word, until nobody complained for long enough.
    silent: VecDeque<Timestamp>,
    /// Whether redos wait for the budget, so that it is said once.
    is_short: bool,
}

impl Lane {
    /// How far back calls that worked tell what the provider carries.
    const WORKED: Duration = Duration::from_secs(30);
    /// Decisions kept until they are taken.
    const NOTES: usize = 256;
    /// Calls that ended without a word and may still be complained of.
    const SILENT: usize = 4_096;
    /// A host that complains does so at once.
    const COMPLAINS_WITHIN: Duration = Duration::from_secs(1);

    /// A lane of which nothing is known.
    pub fn new(settings: LaneSettings, seed: u64, now: Timestamp) -> Self {
        Self {
            circuit: Circuit::Closed,
            gate: Gate::new(&settings),
            budget: Budget::new(now),
            suspicion: Suspicion::new(now),
            worked: Rate::over(Self::WORKED, now),
            generation: 0,
            seed,
            notes: vec![],
            silent: VecDeque::new(),
            is_short: false,
            settings,
        }
    }

    /// Other settings, from now on.
    pub fn adjust(&mut self, settings: LaneSettings) {
        self.gate.adjust(&settings);
        if !settings.is_guarded || settings.trip_sessions == 0 {
            self.circuit = Circuit::Closed;
        }
        self.settings = settings;
    }

    /// The server stated a wait: nobody goes before it ends, and a hold is never shortened. Tells whether that is
    /// news.
    pub fn hold(&mut self, until: Timestamp, now: Timestamp) -> bool {
        let is_news = self.gate.hold(until, now);
        if is_news {
            if let Circuit::Thawing(thaw) = &mut self.circuit {
                thaw.failed(now);
            }
            self.note(now, LaneNoteKind::Held { until });
        }
        is_news
    }

    /// Starts a fresh call while this many are under way, if it may start.
    pub fn start_fresh(&mut self, inside: usize, now: Timestamp) -> Start {
        let may = self.may_start(Some(inside), now);
        if matches!(may, Start::Go { .. }) {
            self.budget.fresh(&self.settings, now);
        }
        may
    }

    /// Starts a call that was let go before: only the number under way bounds it.
    pub fn start_passed(&mut self, inside: usize, now: Timestamp) -> Start {
        self.tick(now);
        if let Some(until) = self.gate.held_until(now) {
            return Start::NotBefore(until);
        }
        if inside >= self.gate.window(&self.settings) { Start::Full } else { Start::Go { generation: self.generation } }
    }

    /// Lets a session's redo go, if it may: within the budget, or by the ramp.
    pub fn start_redo(&mut self, session: u64, now: Timestamp) -> Start {
        self.tick(now);
        let is_budgeted = self.settings.is_guarded && self.circuit == Circuit::Closed;
        if is_budgeted && self.gate.held_until(now).is_none() {
            let next = self.budget.next(session, &self.settings, now);
            if next > now {
                if !std::mem::replace(&mut self.is_short, true) {
                    self.note(now, LaneNoteKind::OutOfBudget { wait: next.since(now) });
                }
                return Start::NotBefore(next);
            }
            self.is_short = false;
        }
        let may = self.may_start(None, now);
        if is_budgeted && matches!(may, Start::Go { .. }) {
            self.budget.redo(session, &self.settings, now);
        }
        may
    }

    fn may_start(&mut self, inside: Option<usize>, now: Timestamp) -> Start {
        self.tick(now);
        if let Some(until) = self.gate.held_until(now) {
            return Start::NotBefore(until);
        }
        if inside.is_some_and(|inside| inside >= self.gate.window(&self.settings)) {
            return Start::Full;
        }
        match &mut self.circuit {
            Circuit::Closed => {}
            Circuit::Open { until, .. } => return Start::NotBefore(*until),
            Circuit::HalfOpen { probe, .. } => {
                let patient = probe.map(|sent| sent + Circuit::PATIENCE).filter(|until| *until > now);
                if let Some(until) = patient {
                    return Start::NotBefore(until);
                }
                *probe = Some(now);
            }
            Circuit::Thawing(thaw) => {
                let next = thaw.next(now);
                if next > now {
                    return Start::NotBefore(next);
                }
                thaw.go(now);
            }
        }
        Start::Go { generation: self.generation }
    }

    /// A call of the session ended, while this many others are under way. Of one whose start the lane did not see
    /// there is no generation.
    pub fn ended(&mut self, session: u64, generation: Option<u32>, end: CallEnd, inside: usize, now: Timestamp) {
        self.tick(now);
        if !self.settings.is_guarded {
            return;
        }
        if generation.is_none() {
            // Most likely the end of one that was silent at first.
            self.silent.pop_back();
        }
        // It began before the circuit opened: of what has been since it knows nothing.
        let is_stale = generation.is_some_and(|generation| generation != self.generation);
        match end {
            CallEnd::Worked => self.call_worked(generation.is_some(), is_stale, inside, now),
            CallEnd::Silent if is_stale => {}
            CallEnd::Silent => {
                if self.silent.len() == Self::SILENT {
                    self.silent.pop_front();
                }
                self.silent.push_back(now);
            }
            CallEnd::Failed(Blame::Session) if is_stale => {}
            CallEnd::Failed(Blame::Session) => {
                if let Circuit::HalfOpen { probe, .. } = &mut self.circuit {
                    // It said nothing about the provider: the next one may.
                    *probe = None;
                }
            }
            CallEnd::Failed(blame) if !is_stale => self.call_failed(session, blame, inside, now),
            CallEnd::Failed(_) => {}
        }
    }

    fn call_worked(&mut self, was_seen: bool, is_stale: bool, inside: usize, now: Timestamp) {
        self.worked.add(now);
        if is_stale {
            return;
        }
        self.gate.worked(inside, &self.settings, now);
        self.suspicion.worked(now);
        match &mut self.circuit {
            Circuit::Closed => {}
            // A probe that was slow, and overtaken by one that failed.
            Circuit::Open { strikes, .. } if was_seen && *strikes > 0 => self.thaw("a probe worked", now),
            Circuit::HalfOpen { probe: Some(_), .. } => self.thaw("a probe worked", now),
            Circuit::Open { .. } | Circuit::HalfOpen { .. } => {}
            Circuit::Thawing(thaw) => thaw.worked(now),
        }
    }

    fn call_failed(&mut self, session: u64, blame: Blame, inside: usize, now: Timestamp) {
        if blame == Blame::Throttle && self.gate.throttled(inside, &self.settings, now) {
            let window = self.gate.window(&self.settings);
            self.note(now, LaneNoteKind::Narrowed { window });
        }
        let needed = self.settings.trip_sessions;
        match &mut self.circuit {
            Circuit::Closed => {
                if needed > 0 && self.suspicion.failed(session, needed, now) {
                    self.trip(0, now);
                }
            }
            Circuit::Open { .. } | Circuit::HalfOpen { probe: None, .. } => {}
            Circuit::HalfOpen { strikes, .. } => {
                let strikes = strikes.saturating_add(1);
                let until = self.open(strikes, now);
                self.note(now, LaneNoteKind::ProbeFailed { strikes, until });
            }
            Circuit::Thawing(thaw) => {
                // Being throttled is what the ramp is for; only a provider that is gone again ends it.
                let is_gone = blame == Blame::Lane && needed > 0 && self.suspicion.failed(session, needed, now);
                // Some failures among successes are a brown-out, which a slower ramp does not heal.
                let slows = blame == Blame::Throttle || !thaw.has_failed() || self.suspicion.is_grave();
                if slows && thaw.failed(now) {
                    let per_second = thaw.rate();
                    self.note(now, LaneNoteKind::BackedOff { per_second });
                }
                if is_gone {
                    self.trip(1, now);
                }
            }
        }
    }

    fn trip(&mut self, strikes: u32, now: Timestamp) {
        let sessions = self.suspicion.suspects();
        self.suspicion.clear();
        self.silent.clear();
        self.generation = self.generation.wrapping_add(1);
        let until = self.open(strikes, now);
        self.note(now, LaneNoteKind::Tripped { sessions, until });
    }

    fn open(&mut self, strikes: u32, now: Timestamp) -> Timestamp {
        self.seed = seed::mix(self.seed, 1);
        self.circuit = Circuit::opened(strikes, &self.settings, self.seed, now);
        match self.circuit {
            Circuit::Open { until, .. } => until,
            _ => now,
        }
    }

    fn thaw(&mut self, because: &'static str, now: Timestamp) {
        self.seed = seed::mix(self.seed, 1);
        self.suspicion.expect_trouble();
        let thaw = Thaw::new(self.carried(now), self.seed, now);
        self.note(now, LaneNoteKind::Thaws { per_second: thaw.rate(), because });
        self.circuit = Circuit::Thawing(thaw);
    }

    /// The calls per second that the provider carried in its last good time: the usual offer, which a wait does
    /// not make smaller, or what just worked.
    fn carried(&mut self, now: Timestamp) -> f64 {
        self.worked.per_second(now).max(self.budget.offered())
    }

    /// What passing time changes.
    fn tick(&mut self, now: Timestamp) {
        while self.silent.front().is_some_and(|ended| *ended + Self::COMPLAINS_WITHIN <= now) {
            self.silent.pop_front();
            self.call_worked(false, false, 0, now);
        }
        if self.gate.is_released(now) && self.settings.is_guarded && self.circuit == Circuit::Closed {
            self.thaw("the stated wait is over", now);
        }
        if let Circuit::Open { until, strikes } = self.circuit
            && until <= now
        {
            self.circuit = Circuit::HalfOpen { probe: None, strikes };
            self.note(now, LaneNoteKind::MayProbe);
        }
    }

    /// Nobody waits any more: a lane that has been quiet for long enough has thawed. Tells when to look again.
    pub fn settle(&mut self, now: Timestamp) -> Option<Timestamp> {
        self.tick(now);
        if let Some(due) = self.complaint_due() {
            return Some(due);
        }
        let Circuit::Thawing(thaw) = &self.circuit else { return None };
        let until = thaw.quiet_since + Thaw::QUIET;
        if until > now {
            return Some(until);
        }
        self.circuit = Circuit::Closed;
        self.note(now, LaneNoteKind::Thawed);
        None
    }

    /// When a probe that ended without a word counts as one that worked.
    pub fn complaint_due(&self) -> Option<Timestamp> {
        let is_probing = matches!(self.circuit, Circuit::HalfOpen { .. });
        self.silent.front().filter(|_| is_probing).map(|ended| *ended + Self::COMPLAINS_WITHIN)
    }

    /// Until when nobody may start, if so.
    pub fn closed_until(&self, now: Timestamp) -> Option<Timestamp> {
        let opens = match &self.circuit {
            Circuit::Open { until, .. } => Some(*until).filter(|until| *until > now),
            Circuit::HalfOpen { probe: Some(sent), .. } => Some(*sent + Circuit::PATIENCE).filter(|until| *until > now),
            _ => None,
        };
        self.gate.held_until(now).max(opens)
    }

    /// When somebody with so many before them may expect to start.
    pub fn expected(&mut self, ahead: usize, is_redo: bool, now: Timestamp) -> Timestamp {
        let from = self.closed_until(now).unwrap_or(now);
        let per_second = match &self.circuit {
            Circuit::Closed if is_redo && self.gate.held_until(now).is_none() => {
                self.budget.per_second(&self.settings, now)
            }
            Circuit::Thawing(thaw) => thaw.rate(),
            Circuit::Closed if self.gate.held_until(now).is_none() => self.carried(now),
            _ => self.carried(now) / 2.0,
        };
        from + seconds(ahead as f64 / per_second.max(1.0))
    }

    /// How the lane stands.
    pub fn standing(&self, now: Timestamp) -> Standing {
        if self.gate.held_until(now).is_some() {
            return Standing::Held;
        }
        match &self.circuit {
            Circuit::Closed => Standing::Open,
            Circuit::Open { until, .. } if *until > now => Standing::Closed,
            Circuit::Open { .. } | Circuit::HalfOpen { .. } => Standing::Probing,
            Circuit::Thawing(_) => Standing::Thawing,
        }
    }

    /// The generation of calls that start now; a trip begins another.
    pub fn generation(&self) -> u32 {
        self.generation
    }

    /// Calls that may be under way at once.
    pub fn window(&self) -> usize {
        self.gate.window(&self.settings)
    }

    /// The decisions since the last call, oldest first; of very many the newest.
    pub fn take_notes(&mut self) -> Vec<LaneNote> {
        std::mem::take(&mut self.notes)
    }

    fn note(&mut self, at: Timestamp, what: LaneNoteKind) {
        if self.notes.len() == Self::NOTES {
            self.notes.remove(0);
        }
        self.notes.push(LaneNote { at, what });
    }
}
