//! Faults that simulated worlds brought to light, each as the promise that it broke.

#![allow(clippy::unwrap_used)]

use std::time::Duration;

use backstop::actors::TokioClock;
use backstop::engine::Target;
use backstop::policy::config::ConfigBuilder;
use backstop::state::{MemoryStore, RecoveryStateStore, SessionSummary, StateError, StateRecord};
use backstop::{RecoveryConfig, RecoveryEngine, Report, Runner, SessionId, Timestamp, Verdict};
use std::sync::{Arc, Mutex};

/// A store that outlives its engines.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<MemoryStore>>);

impl RecoveryStateStore for Kept {
    fn append(&mut self, batch: &[StateRecord]) -> Result<(), StateError> {
        self.0.lock().unwrap().append(batch)
    }

    fn load(&mut self, session: &SessionId) -> Result<Option<StateRecord>, StateError> {
        self.0.lock().unwrap().load(session)
    }

    fn list(&mut self) -> Result<Vec<SessionSummary>, StateError> {
        self.0.lock().unwrap().list()
    }

    fn close(&mut self) -> Result<(), StateError> {
        Ok(())
    }
}

fn id() -> SessionId {
    SessionId::new("s").unwrap()
}

fn overloaded() -> Report {
    Report::text("503 Service Unavailable")
}

async fn engine(store: &Kept, config: RecoveryConfig) -> RecoveryEngine {
    let clock = TokioClock::starting_at(Timestamp::from_millis(1_700_000_000_000));
    let builder = RecoveryEngine::builder().store(store.clone()).runner(Runner::Inline).clock(clock).seed(7);
    builder.config(config).spawn().await.unwrap()
}

/// An answer that must come.
async fn soon<T>(answer: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(3_600), answer).await.expect("it is answered")
}

#[tokio::test(start_paused = true)]
async fn a_report_goes_on_with_the_episode_that_a_restart_left_open() {
    let store = Kept::default();
    let before = engine(&store, RecoveryConfig::default()).await;
    let told = before.report(&id(), overloaded()).await.unwrap();
    before.shutdown().await;
    let after = engine(&store, RecoveryConfig::default()).await;
    let next = soon(after.report_redo(&id(), overloaded(), Some(told.seq))).await.unwrap();
    assert!(next.is_redo() && next.episode == told.episode && next.seq > told.seq, "{next:?}");
}

#[tokio::test(start_paused = true)]
async fn a_redo_that_worked_before_a_restart_is_heard_after_it() {
    let store = Kept::default();
    let before = engine(&store, RecoveryConfig::default()).await;
    let told = before.report(&id(), overloaded()).await.unwrap();
    before.shutdown().await;
    let after = engine(&store, RecoveryConfig::default()).await;
    let end = soon(after.succeeded(&id(), told.seq)).await.unwrap();
    assert!(end.verdict().is_some_and(Verdict::is_recovered), "{end:?}");
}

#[tokio::test(start_paused = true)]
async fn an_episode_that_nobody_goes_on_with_can_be_cancelled() {
    let store = Kept::default();
    let before = engine(&store, RecoveryConfig::default()).await;
    before.report(&id(), overloaded()).await.unwrap();
    before.shutdown().await;
    let after = engine(&store, RecoveryConfig::default()).await;
    assert!(soon(after.cancel(&id())).await.unwrap());
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(after.status(&id()).await.unwrap().episode, None);
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_for_an_episode_is_told_of_its_reset() {
    let engine = engine(&Kept::default(), RecoveryConfig::default()).await;
    let session = engine.session(id());
    let waits = tokio::spawn(session.run_with(|_| async { Err::<(), _>(std::io::Error::other("503 overloaded")) }));
    tokio::time::sleep(Duration::from_millis(500)).await;
    soon(engine.reset(&id())).await.unwrap();
    let stopped = soon(waits).await.unwrap().unwrap_err();
    assert_eq!(stopped.verdict(), Some(&Verdict::Cancelled));
}

#[tokio::test(start_paused = true)]
async fn all_reports_that_waited_for_an_episode_are_answered_at_its_end() {
    let config = ConfigBuilder::new().limits(|limits| limits.max_recoveries = 1).build().unwrap().config;
    let engine = engine(&Kept::default(), config).await;
    let running = tokio::spawn({
        let session = engine.session(id());
        session.report_with(|_: &()| overloaded().with_turn(1)).run_with(|turn| async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            if turn.redo == 0 { Err(()) } else { Ok(()) }
        })
    });
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let later = [2, 3, 4].map(|turn| {
        let engine = engine.clone();
        tokio::spawn(async move { engine.report(&id(), overloaded().with_turn(turn)).await })
    });
    soon(running).await.unwrap().unwrap();
    for answer in later {
        let directive = soon(answer).await.unwrap().unwrap();
        assert!(matches!(directive.verdict(), Some(Verdict::Escalated { .. })), "{directive:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_actor_that_is_killed_while_nothing_happens_is_replaced() {
    let engine = engine(&Kept::default(), RecoveryConfig::default()).await;
    let turns = tokio::spawn(engine.session(id()).run_with(|turn| async move {
        if turn.redo == 0 { Err(std::io::Error::other("503 overloaded")) } else { Ok(()) }
    }));
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(engine.test_kill(&Target::Session(id())), "it waits for its delay");
    assert!(soon(turns).await.unwrap().is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_success_that_comes_too_late_is_no_verdict_of_the_open_episode() {
    let engine = engine(&Kept::default(), RecoveryConfig::default()).await;
    let told = engine.report(&id(), overloaded()).await.unwrap();
    let again = engine.report_redo(&id(), overloaded(), Some(told.seq)).await.unwrap();
    let stale = soon(engine.succeeded(&id(), told.seq)).await.unwrap();
    assert!(stale.is_redo() && stale.seq == again.seq, "{stale:?}");
}
