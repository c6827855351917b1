//! What is remembered of sessions over their episodes, and when it is let go of (R7, R11, R16).

#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use backstop::actors::TokioClock;
use backstop::engine::EngineBuilder;
use backstop::policy::config::ConfigBuilder;
use backstop::state::FileStore;
use backstop::{LaneKey, RecoveryEngine, Report, Runner, SessionId, Timestamp, Verdict};

fn id(name: &str) -> SessionId {
    SessionId::new(name).unwrap()
}

fn builder(yaml: &str) -> EngineBuilder {
    let clock = TokioClock::starting_at(Timestamp::from_millis(1_700_000_000_000));
    let config = ConfigBuilder::new().yaml("test", yaml).build().unwrap().config;
    RecoveryEngine::builder().config(config).in_memory().runner(Runner::Inline).clock(clock).seed(7)
}

fn sessions_in(dir: &std::path::Path) -> usize {
    FileStore::inspect(dir).unwrap().list().len()
}

#[tokio::test(start_paused = true)]
async fn a_kept_verdict_stays_for_its_retention_and_is_then_forgotten() {
    let dir = tempfile::tempdir().unwrap();
    let engine = builder("retention_ms: 7200000").state_dir(dir.path()).spawn().await.unwrap();
    let told = engine.report(&id("s"), Report::text("invalid x-api-key").with_status(401)).await.unwrap();
    assert!(matches!(told.verdict(), Some(Verdict::Escalated { .. })), "{told:?}");
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    assert_eq!(sessions_in(dir.path()), 1);
    tokio::time::sleep(Duration::from_secs(2 * 3_600)).await;
    assert_eq!(sessions_in(dir.path()), 0);
    // A session of the same name starts anew, and is remembered again.
    engine.report(&id("s"), Report::text("invalid x-api-key").with_status(401)).await.unwrap();
    engine.shutdown().await;
    assert_eq!(sessions_in(dir.path()), 1);
}

#[tokio::test(start_paused = true)]
async fn what_is_past_its_retention_is_not_loaded_at_the_next_start() {
    let dir = tempfile::tempdir().unwrap();
    let start = |at: u64| {
        let clock = TokioClock::starting_at(Timestamp::from_millis(at));
        builder("{retention_ms: 1000, recovery_window_ms: 1000}").state_dir(dir.path()).clock(clock).spawn()
    };
    let engine = start(1_700_000_000_000).await.unwrap();
    engine.report(&id("s"), Report::text("invalid x-api-key").with_status(401)).await.unwrap();
    engine.shutdown().await;
    assert_eq!(sessions_in(dir.path()), 1);
    start(1_700_100_000_000).await.unwrap().shutdown().await;
    assert_eq!(sessions_in(dir.path()), 0);
}

#[tokio::test(start_paused = true)]
async fn good_turns_between_two_failures_make_them_no_strikes() {
    let engine = builder("max_same_failure: 2").spawn().await.unwrap();
    for _ in 0..6 {
        let mut tries = 0;
        let turn = async |_: &_| {
            tries += 1;
            if tries == 1 { Err(Report::text("oldString not found in content")) } else { Ok(()) }
        };
        engine.session(id("s")).run(turn).await.unwrap();
        engine.session(id("s")).run(async |_| Ok::<_, Report>(())).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_full_window_calls_the_host_once() {
    let calls = Arc::new(AtomicUsize::new(0));
    let called = Arc::clone(&calls);
    let builder = builder("{max_recoveries: 1, max_same_failure: 100}");
    let engine = builder
        .on_escalate(move |_| {
            called.fetch_add(1, Ordering::Relaxed);
        })
        .spawn()
        .await
        .unwrap();
    for _ in 0..4 {
        let told = engine.report(&id("s"), Report::text("503 Service Unavailable")).await.unwrap();
        if told.is_redo() {
            engine.succeeded(&id("s"), told.seq).await.unwrap();
        } else {
            assert!(!told.explain.is_empty(), "a limit says which one it is");
        }
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(calls.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn a_fallback_model_does_not_wait_for_the_lane_that_it_left() {
    let yaml = "session_error: [{strategy: fallback_model, config: {model: small}}]";
    let engine = builder(yaml).spawn().await.unwrap();
    let started = tokio::time::Instant::now();
    let lane = LaneKey::of("acme", "large", "a");
    let turn = async |turn: &backstop::Turn| match turn.model.as_deref() {
        None => Err(Report::text("429 Too Many Requests: try again in 120s").with_status(429)),
        Some(model) => Ok(model.to_owned()),
    };
    let done = engine.session(id("s")).lane(lane.clone()).run(turn).await.unwrap();
    assert_eq!((done.value.as_str(), started.elapsed()), ("small", Duration::ZERO));
    // The lane that was left stays closed for everybody until the stated wait ends.
    assert!(engine.admit(&lane, Some(Duration::from_secs(1))).await.is_err());
    assert!(engine.admit(&lane.with_model("small"), None).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn whoever_goes_on_with_an_episode_brings_a_deadline_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let start = |at: u64| {
        let clock = TokioClock::starting_at(Timestamp::from_millis(at));
        builder("{}").state_dir(dir.path()).clock(clock).spawn()
    };
    let engine = start(1_700_000_000_000).await.unwrap();
    let fails = async |_: &_| Err::<(), _>(Report::text("503 Service Unavailable"));
    let run = engine.session(id("s")).deadline(Duration::from_secs(60)).run(fails);
    tokio::select! { biased; _ = run => {}, () = tokio::time::sleep(Duration::from_millis(100)) => {
        engine.shutdown().await;
    } }
    // An hour later the first deadline has long passed.
    let engine = start(1_700_003_600_000).await.unwrap();
    let works = async |_: &_| Ok::<_, Report>(());
    let done = engine.session(id("s")).deadline(Duration::from_secs(60)).run(works).await.unwrap();
    assert_eq!(done.recovery.unwrap().verdict, Verdict::Recovered(backstop::Proof::Verified));
}

/// Waits of a fleet that ended while nothing ran go on one after the other, within the length of one wait.
#[tokio::test(start_paused = true)]
async fn waits_that_ended_while_the_engine_was_down_do_not_all_go_on_at_once() {
    const SESSIONS: usize = 500;
    const WAIT: Duration = Duration::from_secs(20);
    let dir = tempfile::tempdir().unwrap();
    let yaml = "session_error: [{strategy: retry, config: {backoff_ms: 20000, jitter: false}}]";
    let start = |at: u64| {
        let clock = TokioClock::starting_at(Timestamp::from_millis(at));
        builder(yaml).state_dir(dir.path()).clock(clock).spawn()
    };
    let ids: Vec<_> = (0..SESSIONS).map(|number| id(&format!("s{number}"))).collect();
    let engine = start(1_700_000_000_000).await.unwrap();
    let turns = |engine: &RecoveryEngine, begun: Arc<std::sync::Mutex<Vec<tokio::time::Instant>>>, works: bool| {
        for id in &ids {
            let (engine, id, begun) = (engine.clone(), id.clone(), Arc::clone(&begun));
            tokio::spawn(async move {
                let turn = |_: backstop::Turn| {
                    begun.lock().unwrap().push(tokio::time::Instant::now());
                    let result = if works { Ok(()) } else { Err(Report::text("503 Service Unavailable")) };
                    std::future::ready(result)
                };
                let _ = engine.session(id).run_with(turn).await;
            });
        }
    };
    turns(&engine, Arc::default(), false);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(engine.shutdown().await.open_episodes, SESSIONS);

    // An hour later.
    let engine = start(1_700_003_600_000).await.unwrap();
    assert_eq!(engine.open_episodes().len(), SESSIONS);
    let (up, begun) = (tokio::time::Instant::now(), Arc::default());
    turns(&engine, Arc::clone(&begun), true);
    tokio::time::sleep(Duration::from_secs(60)).await;
    let begun: Vec<_> = begun.lock().unwrap().iter().map(|at| *at - up).collect();
    assert_eq!(begun.len(), SESSIONS, "each turn was redone once");
    let window = Duration::from_millis(10) * SESSIONS as u32;
    assert!(window < WAIT && begun.iter().all(|after| *after <= window), "{:?}", begun.iter().max());
    let in_tenth = |tenth: u128| {
        let tenth_of = |after: &Duration| after.as_millis() * 10 / window.as_millis();
        begun.iter().filter(|after| tenth_of(after) == tenth).count()
    };
    let most = (0..=10).map(in_tenth).max().unwrap();
    assert!(most <= 2 * SESSIONS / 10, "{most} of {SESSIONS} in a tenth of the time");
    engine.shutdown().await;
}
