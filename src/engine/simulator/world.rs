use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::agent::Agent;
use super::disk::Disk;
use super::faults::HowBad;
use super::model::Model;
use super::scenario::Scenario;
use crate::actors::{Clock, TokioClock};
use crate::failure::{SessionId, Timestamp};
use crate::policy::{Durability, RecoveryConfig};

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

    pub fn is_ahead(&self) -> bool {
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
}
