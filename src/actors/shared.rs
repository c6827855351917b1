use std::hash::{BuildHasher, Hasher};
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use dashmap::DashMap;
use ractor::ActorRef;
use tokio::runtime::Handle;

use super::admission::Gate;
use super::checkpoints::Checkpoints;
use super::clock::Clock;
use super::directory::Directory;
use super::events::EventBus;
use super::lanes::Lanes;
use super::messages::{DetectorMsg, MetricsMsg, PersistenceMsg, SaveAck};
use super::remembered::{Draft, Stored};
use super::runner::RunnerPool;
use super::session_supervisor::SupervisorMsg;
use super::writer::{self, Writer};
use super::{EngineError, Outcome};
use crate::failure::{PatternRegistry, SessionId, Timestamp};
use crate::policy::machine::{Moment, Plan};
use crate::policy::{Durability, RecoveryConfig, seed};
use crate::state::Journal;
use crate::strategy::{SessionClient, StrategyRegistry};

/// Called with every escalation (R18).
pub(crate) type OnEscalate = Arc<dyn Fn(Arc<Outcome>) + Send + Sync>;
/// Makes a session's client when an episode goes on without its host.
pub(crate) type ClientFactory = Arc<dyn Fn(&SessionId) -> Option<Arc<dyn SessionClient>> + Send + Sync>;

/// What all actors of one engine share. Published values are replaced as a whole, so that a reader
/// holds a lock for a clone only.
pub(crate) struct Shared {
    pub clock: Arc<dyn Clock>,
    pub strategies: StrategyRegistry,
    pub runner: RunnerPool,
    pub events: Arc<EventBus>,
    pub lanes: Arc<Lanes>,
    pub on_escalate: Option<OnEscalate>,
    pub client_factory: Option<ClientFactory>,
    pub writer: Arc<Writer>,
    pub journal: Journal,
    pub checkpoints: Checkpoints,
    /// What sessions keep to instead of the engine's configuration.
    own_configs: DashMap<SessionId, Arc<RecoveryConfig>>,
    config: RwLock<Arc<RecoveryConfig>>,
    /// The detector's snapshot, published at every change.
    patterns: RwLock<Arc<PatternRegistry>>,
    /// Patterns that code registered: those of a configuration come and go over them.
    code_patterns: RwLock<PatternRegistry>,
    /// One configuration is put in force at a time.
    pub reloading: tokio::sync::Mutex<()>,
    /// The newest memory of every session that has any: what counts, on disk or not yet.
    pub stored: DashMap<SessionId, Stored>,
    pub directory: Directory,
    /// Episodes that were open at the start: they may all be gone on with in one moment.
    pub found_open: AtomicUsize,
    /// Bounds the root's mailbox.
    pub root_mail: Gate,
    /// Where actors and timers live, for callers on other threads.
    pub runtime: Handle,
    /// When the closed loops that have a deadline must be over: it bounds their children's.
    deadlines: DashMap<SessionId, Timestamp>,
    slots: Slots,
    seed: u64,
    draws: AtomicU64,
    closing: AtomicBool,
    stopped: AtomicBool,
}

/// Where the shared actors are now; a restart changes it.
#[derive(Default)]
struct Slots {
    persistence: RwLock<Option<ActorRef<PersistenceMsg>>>,
    metrics: RwLock<Option<ActorRef<MetricsMsg>>>,
    detector: RwLock<Option<ActorRef<DetectorMsg>>>,
    sessions: RwLock<Option<ActorRef<SupervisorMsg>>>,
}

/// What [`Shared`] is made of.
pub(crate) struct SharedParts {
    pub clock: Arc<dyn Clock>,
    pub strategies: StrategyRegistry,
    pub runner: RunnerPool,
    pub config: RecoveryConfig,
    /// All patterns, and those of them that no configuration brought along.
    pub patterns: PatternRegistry,
    pub code_patterns: PatternRegistry,
    pub on_escalate: Option<OnEscalate>,
    pub client_factory: Option<ClientFactory>,
    pub writer: Arc<Writer>,
    pub journal: Journal,
    pub checkpoints: Checkpoints,
    pub seed: Option<u64>,
}

impl Shared {
    pub fn new(parts: SharedParts) -> Arc<Self> {
        let seed = parts.seed.unwrap_or_else(seed_of_this_process);
        let events = Arc::new(EventBus::new());
        let lanes = Lanes::new(parts.config.limits(), Arc::clone(&parts.clock), Arc::clone(&events), seed);
        Arc::new(Self {
            clock: parts.clock,
            strategies: parts.strategies,
            runner: parts.runner,
            events,
            lanes,
            on_escalate: parts.on_escalate,
            client_factory: parts.client_factory,
            writer: parts.writer,
            journal: parts.journal,
            checkpoints: parts.checkpoints,
            own_configs: DashMap::new(),
            config: RwLock::new(Arc::new(parts.config)),
            patterns: RwLock::new(Arc::new(parts.patterns)),
            code_patterns: RwLock::new(parts.code_patterns),
            reloading: tokio::sync::Mutex::default(),
            stored: DashMap::new(),
            directory: Directory::default(),
            found_open: AtomicUsize::new(0),
            root_mail: Gate::default(),
            runtime: Handle::current(),
            deadlines: DashMap::new(),
            slots: Slots::default(),
            seed,
            draws: AtomicU64::new(0),
            closing: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
        })
    }

    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Now, with fresh randomness from the engine's own seed.
    pub fn moment(&self) -> Moment {
        let draw = self.draws.fetch_add(1, Ordering::Relaxed);
        Moment { now: self.now(), seed: seed::mix(self.seed, draw) }
    }

    /// How long it is until a wall-clock time.
    pub fn until(&self, time: Timestamp) -> Duration {
        time.since(self.now())
    }

    pub fn config(&self) -> Arc<RecoveryConfig> {
        Arc::clone(&read(&self.config))
    }

    /// Puts a configuration in force, but for its patterns, which are the detector's.
    pub fn set_config(&self, config: RecoveryConfig) {
        let limits = config.limits();
        self.journal.set_limit(if config.persist_state() { limits.journal_bytes } else { 0 });
        self.runner.set_limits(limits.strategies_at_once, limits.stuck_threads);
        self.lanes.set_limits(limits);
        *write(&self.config) = Arc::new(config);
    }

    /// Changes what code registered.
    pub fn with_code_patterns<T>(&self, change: impl FnOnce(&mut PatternRegistry) -> T) -> T {
        change(&mut write(&self.code_patterns))
    }

    /// What an episode of the session that opens now keeps to.
    pub fn plan(&self, id: &SessionId) -> Plan {
        let own = self.own_configs.get(id).map(|config| Arc::clone(&config));
        Plan { config: own.unwrap_or_else(|| self.config()), computing: self.strategies.computing() }
    }

    /// Gives a session a configuration of its own, or takes it away.
    pub fn set_own_config(&self, id: &SessionId, config: Option<Arc<RecoveryConfig>>) {
        match config {
            Some(config) => self.own_configs.insert(id.clone(), config),
            None => self.own_configs.remove(id).map(|(_, config)| config),
        };
    }

    pub fn patterns(&self) -> Arc<PatternRegistry> {
        Arc::clone(&read(&self.patterns))
    }

    pub fn publish_patterns(&self, patterns: PatternRegistry) {
        *write(&self.patterns) = Arc::new(patterns);
    }

    pub fn is_closing(&self) -> bool {
        self.closing.load(Ordering::SeqCst)
    }

    pub fn begin_closing(&self) {
        self.closing.store(true, Ordering::SeqCst);
    }

    /// Whether the root has ended: nothing is handled any more.
    pub fn is_over(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    /// Why nothing new is taken, if so.
    pub fn end(&self) -> Option<EngineError> {
        match (self.is_closing(), self.is_over()) {
            (true, _) => Some(EngineError::ShuttingDown),
            (false, true) => Some(EngineError::Stopped),
            (false, false) => None,
        }
    }

    /// Why a request's answer never came.
    pub fn lost(&self) -> EngineError {
        self.end().unwrap_or(EngineError::Interrupted)
    }

    /// The root has ended: whoever waits is told.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        let why = self.lost();
        for (_, entry) in self.directory.all() {
            entry.desk.dismiss(why);
        }
        self.directory.clear();
        self.lanes.close(why);
        self.events.close();
    }

    pub fn set_persistence(&self, actor: ActorRef<PersistenceMsg>) {
        *write(&self.slots.persistence) = Some(actor);
    }

    pub fn set_metrics(&self, actor: ActorRef<MetricsMsg>) {
        *write(&self.slots.metrics) = Some(actor);
    }

    pub fn set_detector(&self, actor: ActorRef<DetectorMsg>) {
        *write(&self.slots.detector) = Some(actor);
    }

    pub fn set_sessions(&self, actor: ActorRef<SupervisorMsg>) {
        *write(&self.slots.sessions) = Some(actor);
    }

    pub fn persistence(&self) -> Option<ActorRef<PersistenceMsg>> {
        read(&self.slots.persistence).clone()
    }

    pub fn metrics(&self) -> Option<ActorRef<MetricsMsg>> {
        read(&self.slots.metrics).clone()
    }

    pub fn detector(&self) -> Option<ActorRef<DetectorMsg>> {
        read(&self.slots.detector).clone()
    }

    pub fn sessions(&self) -> Option<ActorRef<SupervisorMsg>> {
        read(&self.slots.sessions).clone()
    }

    pub fn set_deadline(&self, id: &SessionId, deadline: Timestamp) {
        self.deadlines.insert(id.clone(), deadline);
    }

    pub fn clear_deadline(&self, id: &SessionId) {
        self.deadlines.remove(id);
    }

    pub fn deadline_of(&self, id: &SessionId) -> Option<Timestamp> {
        self.deadlines.get(id).map(|deadline| *deadline)
    }

    /// The client of a session that was given none.
    pub fn make_client(&self, id: &SessionId) -> Option<Arc<dyn SessionClient>> {
        self.client_factory.as_ref().and_then(|make| make(id))
    }

    /// Publishes a session's newest memory and hands it to the writer; tells whether it is to be
    /// written at all.
    pub fn store(&self, id: &SessionId, stored: Stored, ack: Option<SaveAck>, durability: Durability) -> bool {
        let draft = Draft { session: id.clone(), revision: stored.revision, memory: Some(stored.memory.clone()) };
        self.stored.insert(id.clone(), stored);
        if durability == Durability::Off {
            return false;
        }
        self.push(writer::Entry::new(draft, ack));
        true
    }

    /// Lets go of sessions that nobody uses and that have nothing to be remembered any more (R11).
    pub fn sweep(&self) {
        let now = self.now();
        let is_spent = |stored: &Stored| stored.is_spent(now);
        let spent = self.stored.iter().filter(|stored| is_spent(stored) && self.directory.get(stored.key()).is_none());
        let mut spent: Vec<_> = spent.map(|stored| stored.key().clone()).collect();
        spent.sort();
        for id in spent {
            if let Some((id, stored)) = self.stored.remove_if(&id, |_, stored| is_spent(stored)) {
                self.forget(&id, stored.revision + 1);
            }
        }
    }

    fn forget(&self, id: &SessionId, revision: u64) {
        if self.config().durability() != Durability::Off {
            self.push(writer::Entry::new(Draft { session: id.clone(), revision, memory: None }, None));
        }
    }

    fn push(&self, entry: writer::Entry) {
        if self.writer.push(entry)
            && let Some(persistence) = self.persistence()
        {
            // A writer that is being replaced looks at the queue first.
            let _ = persistence.send_message(PersistenceMsg::Wake);
        }
    }

    /// Tells the host of an escalation; a panic of its hook stays outside.
    pub fn escalated(&self, outcome: &Arc<Outcome>) {
        let Some(hook) = self.on_escalate.clone() else { return };
        let outcome = Arc::clone(outcome);
        self.runner.call_host(move || {
            let session = outcome.session.clone();
            if std::panic::catch_unwind(AssertUnwindSafe(|| hook(outcome))).is_err() {
                tracing::error!(%session, "the on_escalate hook panicked");
            }
        });
    }
}

fn read<T>(lock: &RwLock<T>) -> std::sync::RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

fn write<T>(lock: &RwLock<T>) -> std::sync::RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

/// The standard library seeds its hash maps from the operating system's randomness.
fn seed_of_this_process() -> u64 {
    std::hash::RandomState::new().build_hasher().finish()
}
