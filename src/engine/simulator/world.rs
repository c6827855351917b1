use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;

use super::agent::Agent;
use super::disk::Disk;
use super::failures::CANARY;
use super::model::Model;
use super::scenario::{Drive, HowBad, Scenario, SessionPlan};
use crate::actors::{Clock, EngineEvent, Outcome, TokioClock};
use crate::failure::{SessionId, Timestamp};
use crate::policy::{Durability, RecoveryConfig, Turn};
use crate::state::StateRecord;

/// Everything that outlives the engine, and what was seen of it.
pub(super) struct World {
    pub scenario: Scenario,
    pub disk: Disk,
    pub agents: Vec<Agent>,
    /// Which configuration is in force.
    pub config: AtomicUsize,
    model: Mutex<Model>,
    clock: Mutex<TokioClock>,
}

/// When every world begins.
pub(super) const BEGINNING: Timestamp = Timestamp::from_millis(1_700_000_000_000);

impl World {
    /// The world of a seed. To be made inside the runtime of its first life, whose clock it reads.
    pub fn new(seed: u64) -> Self {
        let scenario = Scenario::new(seed);
        let agents = scenario.sessions.iter().enumerate().map(|(index, plan)| Agent::new(index, plan)).collect();
        let model = Mutex::new(Model::new(&scenario.configs[0]));
        let clock = Mutex::new(TokioClock::starting_at(BEGINNING));
        Self { disk: Disk::new(seed), agents, config: AtomicUsize::new(0), model, clock, scenario }
    }

    /// A life begins in a runtime of its own at the moment when the one before ended.
    pub fn wind_up(&self, now: Timestamp) -> TokioClock {
        let clock = TokioClock::starting_at(now);
        *self.clock.lock().unwrap_or_else(PoisonError::into_inner) = clock;
        clock
    }

    pub fn now(&self) -> Timestamp {
        self.clock.lock().unwrap_or_else(PoisonError::into_inner).now()
    }

    /// The time since the world's beginning.
    pub fn age(&self) -> Duration {
        self.now().since(BEGINNING)
    }

    pub fn model(&self) -> MutexGuard<'_, Model> {
        self.model.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn current_config(&self) -> &RecoveryConfig {
        &self.scenario.configs[self.config.load(Ordering::Relaxed)]
    }

    /// What ails the disk now.
    pub fn trouble(&self) -> Option<HowBad> {
        let age = self.age();
        let now = self.scenario.troubles.iter().find(|trouble| trouble.from <= age && age < trouble.until);
        now.map(|trouble| trouble.how)
    }

    /// How long an append takes now.
    pub fn latency(&self) -> Duration {
        match self.trouble() {
            Some(HowBad::Slow(latency)) => latency,
            Some(HowBad::Fails) | None => self.scenario.latency,
        }
    }

    fn is_ahead(&self) -> bool {
        self.scenario.durability == Durability::Ahead
    }

    /// Notes something that was seen.
    pub fn saw(&self, who: &SessionId, what: impl std::fmt::Display) {
        let at = self.age().as_millis();
        self.model().steps.push(format!("{at} {who} {what}"));
    }

    /// Notes a broken promise.
    pub fn broke(&self, promise: &str, who: &SessionId, what: impl std::fmt::Display) {
        let at = self.age().as_millis();
        self.model().broken.push(format!("{promise} at {at} ms, session {who}: {what}"));
    }

    /// Looks for a planted secret in what was handed out (P5).
    pub fn handed_out(&self, who: &SessionId, what: &str, value: &impl Serialize) {
        let text = serde_json::to_string(value).unwrap_or_default();
        if text.contains(CANARY) {
            self.broke("P5", who, format_args!("{what} holds a secret: {text}"));
        }
    }

    /// A strategy was asked: the effect that its record must precede.
    pub fn executed(&self, session: &SessionId, seq: u64, strategy: &str) {
        self.saw(session, format_args!("executes {strategy} seq {seq}"));
        if !self.model().executed.insert((session.clone(), seq)) {
            self.broke("P1", session, format_args!("attempt {seq} was executed twice"));
        }
        self.is_recorded(session, seq, "executed");
    }

    /// A turn is done, or done again.
    pub fn performs(&self, plan: &SessionPlan, turn: &Turn) {
        let (id, seq) = (&plan.id, turn.seq);
        self.saw(id, format_args!("performs redo {} seq {seq} model {:?}", turn.redo, turn.model));
        self.handed_out(id, "a turn", turn);
        if seq == 0 {
            return;
        }
        if !self.model().redone.insert((id.clone(), seq)) {
            self.broke("P1", id, format_args!("the redo of attempt {seq} was made twice"));
        }
        self.is_recorded(id, seq, "redone");
        let memory = self.disk.memory(id);
        let episode = memory.as_ref().and_then(|memory| memory.open_episode()).filter(|episode| episode.seq() == seq);
        // A host may be told of a redo long before it makes it.
        let late = plan.drive == Drive::Open;
        if self.is_ahead() && !late && episode.is_some_and(|episode| !episode.is_underway()) && !self.disk.refused(id) {
            self.broke("P1", id, format_args!("the redo of attempt {seq} has no record"));
        }
    }

    fn is_recorded(&self, session: &SessionId, seq: u64, what: &str) {
        let recorded = self.disk.memory(session).is_some_and(|memory| memory.fence().seq >= seq);
        if self.is_ahead() && !recorded && !self.disk.refused(session) {
            self.broke("P1", session, format_args!("attempt {seq} was {what} before its record was durable"));
        }
    }

    /// A record was acknowledged.
    pub fn written(&self, record: &StateRecord) {
        match record.read() {
            Err(error) => self.broke("P2", &record.session, error),
            Ok(memory) => {
                let text = record.memory.as_deref().map(String::from_utf8_lossy).unwrap_or_default();
                if text.contains(CANARY) {
                    self.broke("P5", &record.session, format_args!("a record holds a secret: {text}"));
                }
                self.saw(&record.session, format_args!("stored revision {} {:08x}", record.revision, crc(&text)));
                if let Some(episode) = memory.as_ref().and_then(|memory| memory.open_episode()) {
                    self.model().belongs(&record.session, episode.seq(), episode.id());
                }
            }
        }
    }

    /// The engine told what happens.
    pub fn heard(&self, event: &EngineEvent) {
        let nobody = SessionId::new("-").expect("it is not empty");
        self.handed_out(&nobody, "an event", event);
        let text = serde_json::to_string(event).unwrap_or_default();
        self.saw(&nobody, format_args!("event {text:.120} {:08x}", crc(&text)));
        let broken = match event {
            EngineEvent::Opened { session, episode, .. } => {
                let plan = self.scenario.sessions.iter().find(|plan| plan.id == *session);
                let monotonous = plan.is_some_and(|plan| plan.script.is_monotonous());
                self.model().opened(session, *episode, monotonous, self.now())
            }
            EngineEvent::Decided { session, episode, note } => {
                self.model().decided(session, *episode, &note.what);
                None
            }
            EngineEvent::Ended(outcome) => {
                self.model().ended(outcome);
                None
            }
            _ => None,
        };
        if let Some(broken) = broken {
            self.broke("P3", &nobody, broken);
        }
    }

    /// Somebody got a verdict.
    pub fn verdict(&self, outcome: &Outcome) {
        let id = &outcome.session;
        let Outcome { episode, executions, redos, .. } = outcome;
        self.saw(
            id,
            format_args!("verdict {} of episode {episode}, {executions} executions, {redos} redos", outcome.verdict),
        );
        self.handed_out(id, "an outcome", outcome);
        let passed = self.model().within_limits(outcome);
        if let Some(passed) = passed {
            self.broke("P3", id, passed);
        }
        let memory = self.disk.memory(id);
        let open = memory.as_ref().and_then(|memory| memory.open_episode()).map(|open| open.id());
        if self.is_ahead() && *episode > 0 && open == Some(*episode) && !self.disk.refused(id) {
            self.broke("P1", id, "a verdict was returned before it was durable");
        }
    }

    /// A life ended. What must have survived did; what may be lost is forgotten by the model too.
    pub fn life_ended(&self, gracefully: bool) {
        let promised = match self.scenario.durability {
            Durability::Ahead => true,
            Durability::Behind => gracefully,
            Durability::Off => false,
        };
        for plan in &self.scenario.sessions {
            let memory = self.disk.memory(&plan.id).unwrap_or_default();
            let kept = memory.fence().seq;
            self.model().knows_of(&plan.id, memory.episodes());
            let seen = self.model().highest(&plan.id);
            if seen <= kept && promised && !self.disk.refused(&plan.id) {
                continue;
            }
            if promised && !self.disk.refused(&plan.id) {
                self.broke("P1", &plan.id, format_args!("attempt {seen} was lost: the disk knows of {kept}"));
            }
            self.model().forget(&plan.id, kept);
        }
    }
}

/// A short number of a text, for traces.
fn crc(text: &str) -> u32 {
    crc32fast::hash(text.as_bytes())
}
