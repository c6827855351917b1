use std::path::PathBuf;
use std::sync::Arc;

use ractor::ActorCell;

use super::{RecoveryEngine, StartError};
use crate::actors::{ClientFactory, Clock, OnEscalate, Outcome, Runner, SystemClock};
use crate::failure::{ErrorPattern, PatternRegistry, SessionId};
use crate::policy::{Answer, RecoveryConfig};
use crate::state::{CheckpointStore, RecoveryStateStore};
use crate::strategy::{Attempt, RecoveryStrategy, SessionClient, StrategyRegistry, UnnamedStrategy};

/// Where the state of an engine's sessions is kept, unless the host says otherwise.
pub const DEFAULT_STATE_DIR: &str = ".rolebox/state";

pub(super) enum Place {
    Directory(PathBuf),
    Store(Box<dyn RecoveryStateStore>),
    Memory,
}

/// Puts an engine together; see [`RecoveryEngine::builder`].
pub struct EngineBuilder {
    pub(super) config: RecoveryConfig,
    pub(super) place: Place,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) runner: Runner,
    pub(super) strategies: StrategyRegistry,
    pub(super) named: Result<(), UnnamedStrategy>,
    pub(super) patterns: PatternRegistry,
    pub(super) on_escalate: Option<OnEscalate>,
    pub(super) clients: Option<ClientFactory>,
    pub(super) seed: Option<u64>,
    pub(super) checkpoints: Option<Box<dyn CheckpointStore>>,
    /// How long each append takes, in virtual time.
    #[cfg(feature = "test-util")]
    pub(super) disk_latency: Option<crate::actors::Latency>,
}

impl Default for EngineBuilder {
    fn default() -> Self {
        Self {
            config: RecoveryConfig::default(),
            place: Place::Directory(DEFAULT_STATE_DIR.into()),
            clock: Arc::new(SystemClock),
            runner: Runner::default(),
            strategies: StrategyRegistry::new(),
            named: Ok(()),
            patterns: PatternRegistry::new(),
            on_escalate: None,
            clients: None,
            seed: None,
            checkpoints: None,
            #[cfg(feature = "test-util")]
            disk_latency: None,
        }
    }
}

impl EngineBuilder {
    /// Uses this configuration instead of the built-in one.
    #[must_use]
    pub fn config(mut self, config: RecoveryConfig) -> Self {
        self.config = config;
        self
    }

    /// Keeps state in this directory; `.rolebox/state` unless set.
    #[must_use]
    pub fn state_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.place = Place::Directory(dir.into());
        self
    }

    /// Keeps state in a store of the host's.
    #[must_use]
    pub fn store(mut self, store: impl RecoveryStateStore + 'static) -> Self {
        self.place = Place::Store(Box::new(store));
        self
    }

    /// Keeps the checkpoints of self-healing loops in a store of the host's; without one they are kept in the
    /// state directory, or in memory where there is none.
    #[must_use]
    pub fn checkpoint_store(mut self, store: impl CheckpointStore + 'static) -> Self {
        self.checkpoints = Some(Box::new(store));
        self
    }

    /// Keeps state in memory only: a crash loses everything.
    #[must_use]
    pub fn in_memory(mut self) -> Self {
        self.place = Place::Memory;
        self
    }

    /// Reads the time from this clock.
    #[must_use]
    pub fn clock(mut self, clock: impl Clock + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Says where own strategies and client calls run.
    #[must_use]
    pub fn runner(mut self, runner: Runner) -> Self {
        self.runner = runner;
        self
    }

    /// Fixes the randomness of delays, so that a run can be repeated.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Adds a strategy of the host's.
    #[must_use]
    pub fn strategy(mut self, strategy: impl RecoveryStrategy + 'static) -> Self {
        let added = self.strategies.register(Arc::new(strategy)).map(|_| ());
        self.named = self.named.and(added);
        self
    }

    /// Adds an async closure as a strategy.
    #[must_use]
    pub fn strategy_fn<F, Fut>(mut self, name: impl Into<Arc<str>>, execute: F) -> Self
    where
        F: Fn(Attempt) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Answer> + Send + 'static,
    {
        let added = self.strategies.register_fn(name, execute).map(|_| ());
        self.named = self.named.and(added);
        self
    }

    /// Adds a pattern of the host's; it wins over the built-in ones.
    #[must_use]
    pub fn pattern(mut self, pattern: ErrorPattern) -> Self {
        self.patterns.register(pattern);
        self
    }

    /// Is called with every escalation (R18), outside the actors.
    #[must_use]
    pub fn on_escalate(mut self, hook: impl Fn(Arc<Outcome>) + Send + Sync + 'static) -> Self {
        self.on_escalate = Some(Arc::new(hook));
        self
    }

    /// Makes the client of a session that has none, for `recover` and for episodes found on disk.
    #[must_use]
    pub fn clients(
        mut self,
        make: impl Fn(&SessionId) -> Option<Arc<dyn SessionClient>> + Send + Sync + 'static,
    ) -> Self {
        self.clients = Some(Arc::new(make));
        self
    }

    /// Starts the engine's actors.
    ///
    /// # Errors
    ///
    /// [`StartError`]; nothing is left running.
    pub async fn spawn(self) -> Result<RecoveryEngine, StartError> {
        super::start::start(self, None).await
    }

    /// Starts the engine's actors linked under one of the host's: it sees them end, and they end with it.
    ///
    /// # Errors
    ///
    /// [`StartError`]; nothing is left running.
    pub async fn spawn_linked(self, parent: ActorCell) -> Result<RecoveryEngine, StartError> {
        super::start::start(self, Some(parent)).await
    }
}
