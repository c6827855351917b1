//! Every store keeps the promises of its trait, and an engine runs on any that does.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use backstop::actors::TokioClock;
use backstop::state::{
    FileStore, FileStoreOptions, Lease, MemoryStore, RecoveryStateStore, SessionSummary, StateError, StateRecord,
    conformance,
};
use backstop::{RecoveryEngine, Report, Runner, SessionId, Timestamp};

use super::{open, record, revisions, session};

#[test]
fn the_memory_store_keeps_every_promise() {
    conformance::check(|| {
        let place = MemoryStore::default();
        move || Ok(Box::new(place.take_over()) as Box<dyn RecoveryStateStore>)
    });
}

#[test]
fn the_file_store_keeps_every_promise() {
    conformance::check(|| {
        let dir = tempfile::tempdir().unwrap();
        move || {
            let (store, notes) = FileStore::open(dir.path(), FileStoreOptions::default())?;
            assert_eq!(notes, []);
            Ok(Box::new(store) as Box<dyn RecoveryStateStore>)
        }
    });
}

#[test]
fn the_file_store_keeps_every_promise_while_it_writes_its_log_anew_all_the_time_and_shows_nothing() {
    conformance::check(|| {
        let dir = tempfile::tempdir().unwrap();
        let options = FileStoreOptions { snapshot_above: 0, views: false, ..FileStoreOptions::default() };
        move || Ok(Box::new(FileStore::open(dir.path(), options.clone())?.0) as Box<dyn RecoveryStateStore>)
    });
}

/// Keeps half of a promise: what is forgotten comes back with the next holder.
#[test]
#[should_panic(expected = "what is forgotten is gone")]
fn a_store_that_breaks_a_promise_is_told_which() {
    struct Forgetful(MemoryStore);
    impl RecoveryStateStore for Forgetful {
        fn append(&mut self, batch: &[StateRecord]) -> Result<(), StateError> {
            let kept: Vec<_> = batch.iter().filter(|record| record.memory.is_some()).cloned().collect();
            self.0.append(&kept)
        }
        fn load(&mut self, session: &SessionId) -> Result<Option<StateRecord>, StateError> {
            self.0.load(session)
        }
        fn list(&mut self) -> Result<Vec<SessionSummary>, StateError> {
            self.0.list()
        }
        fn close(&mut self) -> Result<(), StateError> {
            self.0.close()
        }
    }
    conformance::check(|| {
        let place = MemoryStore::default();
        move || Ok(Box::new(Forgetful(place.take_over())) as Box<dyn RecoveryStateStore>)
    });
}

#[test]
fn a_holder_whose_lock_was_taken_away_writes_nothing_over_the_next_one() {
    let dir = tempfile::tempdir().unwrap();
    let (mut first, _) = open(dir.path());
    first.append(&[record("a", 1)]).unwrap();
    // Somebody "cleans up", and another process starts: both have the same log open now.
    std::fs::remove_file(dir.path().join("backstop/lock")).unwrap();
    let (mut second, _) = open(dir.path());
    second.append(&[record("a", 2)]).unwrap();
    for _ in 0..2 {
        first.append(&[record("a", 7)]).unwrap_err();
    }
    assert!(matches!(first.append(&[record("a", 7)]), Err(StateError::Locked { .. })));
    second.append(&[record("a", 3)]).unwrap();
    drop((first, second));
    assert_eq!(revisions(&mut open(dir.path()).0), [("a".to_owned(), 3)]);
}

/// A store shared by machines, as far as an engine can tell: the right to write runs out.
#[derive(Clone)]
struct Leased {
    inner: Arc<Mutex<MemoryStore>>,
    held: Arc<Mutex<Vec<tokio::time::Instant>>>,
}

impl RecoveryStateStore for Leased {
    fn append(&mut self, batch: &[StateRecord]) -> Result<(), StateError> {
        self.inner.lock().unwrap().append(batch)
    }
    fn load(&mut self, session: &SessionId) -> Result<Option<StateRecord>, StateError> {
        self.inner.lock().unwrap().load(session)
    }
    fn list(&mut self) -> Result<Vec<SessionSummary>, StateError> {
        self.inner.lock().unwrap().list()
    }
    fn hold(&mut self) -> Result<Lease, StateError> {
        let lease = self.inner.lock().unwrap().hold()?;
        self.held.lock().unwrap().push(tokio::time::Instant::now());
        Ok(Lease { lasts: Some(Duration::from_secs(30)), ..lease })
    }
    fn close(&mut self) -> Result<(), StateError> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn an_engine_prolongs_a_lease_in_time_and_counts_in_memory_once_another_has_the_place() {
    let store = Leased { inner: Arc::default(), held: Arc::default() };
    let clock = TokioClock::starting_at(Timestamp::from_millis(1_700_000_000_000));
    let builder = RecoveryEngine::builder().store(store.clone()).runner(Runner::Inline).clock(clock).seed(7);
    let engine = builder.spawn().await.unwrap();
    tokio::time::sleep(Duration::from_secs(300)).await;
    let held = store.held.lock().unwrap().clone();
    assert!((25..=35).contains(&held.len()), "{held:?}");
    assert!(held.windows(2).all(|pair| pair[1] - pair[0] < Duration::from_secs(20)), "{held:?}");

    assert!(engine.report(&session("s"), Report::text("503 overloaded")).await.unwrap().is_redo());
    let mut next = store.inner.lock().unwrap().take_over();
    next.append(&[StateRecord::forgotten(session("s"), u64::MAX)]).unwrap();
    let told = engine.report(&session("other"), Report::text("503 overloaded")).await.unwrap();
    assert!(told.is_redo(), "memory counts");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(next.list().unwrap().len(), 0, "the next holder's state is not written over");
    assert!(!engine.shutdown().await.durable);
}
