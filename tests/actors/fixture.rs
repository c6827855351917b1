//! Engines under paused time, a store that tells what it does, and failures to recover from.

use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use backstop::actors::TokioClock;
use backstop::engine::EngineBuilder;
use backstop::state::{MemoryStore, RecoveryStateStore, SessionSummary, StateError, StateRecord};
use backstop::{RecoveryConfig, RecoveryEngine, Report, Runner, SessionId, Timestamp};

pub const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);

/// The built-in configuration.
pub const DEFAULTS: &str = "";

pub fn id(name: &str) -> SessionId {
    SessionId::new(name).unwrap()
}

pub fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub fn config(yaml: &str) -> RecoveryConfig {
    if yaml == DEFAULTS {
        return RecoveryConfig::default();
    }
    let loaded = RecoveryConfig::parse("test.yaml", yaml).unwrap();
    assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
    loaded.config
}

/// An engine on paused time.
pub fn builder(yaml: &str) -> EngineBuilder {
    let builder = RecoveryEngine::builder().config(config(yaml)).in_memory();
    builder.runner(Runner::Inline).clock(TokioClock::starting_at(START)).seed(7)
}

pub fn failure() -> Report {
    Report::text("503 Service Unavailable")
}

pub fn error() -> std::io::Error {
    std::io::Error::other("503 Service Unavailable")
}

/// What happened, in order.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub fn note(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    pub fn clear(&self) {
        self.0.lock().unwrap().clear();
    }

    pub fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    pub fn count(&self, what: &str) -> usize {
        self.all().iter().filter(|noted| *noted == what).count()
    }
}

/// A store in memory that outlives its engine, can be held back, can fail, and tells what it does.
#[derive(Clone, Default)]
pub struct Shelf {
    inner: Arc<(Mutex<Inner>, Condvar)>,
    pub log: Log,
}

#[derive(Default)]
struct Inner {
    store: MemoryStore,
    held: bool,
    waiting: usize,
    fails: bool,
    panics: bool,
    too_large: Option<SessionId>,
}

impl Shelf {
    pub fn set_held(&self, held: bool) {
        self.inner.0.lock().unwrap().held = held;
        self.inner.1.notify_all();
    }

    pub fn set_failing(&self, fails: bool) {
        self.inner.0.lock().unwrap().fails = fails;
    }

    /// The records of this session alone are refused, whatever else a batch holds.
    pub fn set_too_large(&self, session: Option<SessionId>) {
        self.inner.0.lock().unwrap().too_large = session;
    }

    pub fn set_panicking(&self, panics: bool) {
        self.inner.0.lock().unwrap().panics = panics;
    }

    /// Returns once an append is being held back.
    pub fn wait_for_an_append(&self) {
        let (inner, changed) = &*self.inner;
        let inner = inner.lock().unwrap();
        drop(changed.wait_while(inner, |inner| inner.waiting == 0).unwrap());
    }

    pub fn record(&self, session: &SessionId) -> Option<StateRecord> {
        self.inner.0.lock().unwrap().store.load(session).unwrap()
    }
}

impl RecoveryStateStore for Shelf {
    fn append(&mut self, batch: &[StateRecord]) -> Result<(), StateError> {
        let (inner, changed) = &*self.inner;
        self.log.note("append");
        let mut inner = inner.lock().unwrap();
        inner.waiting += 1;
        changed.notify_all();
        let mut inner = changed.wait_while(inner, |inner| inner.held).unwrap();
        inner.waiting -= 1;
        if inner.panics {
            drop(inner);
            panic!("a store that panics");
        }
        if inner.fails {
            let source = std::io::Error::other("no space left on device");
            return Err(StateError::Save { path: "shelf".into(), source });
        }
        if let Some(session) = inner.too_large.clone().filter(|large| batch.iter().any(|one| one.session == *large)) {
            return Err(StateError::TooLarge { session, bytes: 2, limit: 1 });
        }
        inner.store.append(batch)?;
        self.log.note("appended");
        Ok(())
    }

    fn load(&mut self, session: &SessionId) -> Result<Option<StateRecord>, StateError> {
        self.inner.0.lock().unwrap().store.load(session)
    }

    fn list(&mut self) -> Result<Vec<SessionSummary>, StateError> {
        self.inner.0.lock().unwrap().store.list()
    }

    /// The next engine goes on with it.
    fn close(&mut self) -> Result<(), StateError> {
        Ok(())
    }
}
