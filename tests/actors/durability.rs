//! Saved, then done (R10); and what happens while the disk fails.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use backstop::actors::EngineEvent;
use backstop::engine::EngineBuilder;
use backstop::{Answer, Proof, RecoveryEngine, Runner, Verdict};
use tokio::time::sleep;

use crate::fixture::{Log, Shelf, builder, error, failure, id, secs};

const OWN: &str = "known_strategies: [own]\nsession_error: [own, abort]\n";

fn with_own(durability: &str, shelf: &Shelf) -> EngineBuilder {
    let log = shelf.log.clone();
    let own = move |_| {
        log.note("strategy");
        async { Answer::success("done") }
    };
    builder(&format!("durability: {durability}\n{OWN}")).strategy_fn("own", own).store(shelf.clone())
}

/// One closed loop, its turns noted in the store's own log.
async fn run(engine: &RecoveryEngine, log: Log) -> Arc<backstop::Outcome> {
    run_as(engine, "s", log).await
}

async fn run_as(engine: &RecoveryEngine, name: &str, log: Log) -> Arc<backstop::Outcome> {
    let turn = |turn: backstop::Turn| {
        log.note(format!("turn {}", turn.redo));
        async move { if turn.redo == 0 { Err(error()) } else { Ok(()) } }
    };
    engine.session(id(name)).run_with(turn).await.unwrap().recovery.unwrap()
}

#[tokio::test(start_paused = true)]
async fn an_attempt_a_redo_and_a_verdict_are_durable_before_anybody_sees_them() {
    let shelf = Shelf::default();
    let engine = with_own("ahead", &shelf).spawn().await.unwrap();
    let outcome = run(&engine, shelf.log.clone()).await;
    shelf.log.note("told");
    assert!(outcome.durable);
    let order =
        ["turn 0", "append", "appended", "strategy", "append", "appended", "turn 1", "append", "appended", "told"];
    assert_eq!(shelf.log.all(), order);
}

/// What the limits count is part of what a verdict tells (R7, R16).
#[tokio::test(start_paused = true)]
async fn a_refusal_by_a_limit_is_durable_before_it_is_told() {
    let shelf = Shelf::default();
    let yaml = "durability: ahead\nsession_error: [abort]\nmax_same_failure: 1\n";
    let engine = builder(yaml).store(shelf.clone()).spawn().await.unwrap();
    engine.report(&id("s"), failure()).await.unwrap();
    shelf.log.clear();
    let told = engine.report(&id("s"), failure()).await.unwrap();
    shelf.log.note("told");
    assert!(matches!(told.verdict(), Some(Verdict::Escalated { .. })), "{told:?}");
    assert_eq!(shelf.log.all(), ["append", "appended", "told"]);
}

/// Real threads and files: those who go on reporting do not keep the readable copies from being written.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readable_copies_are_written_while_reports_go_on() {
    let dir = tempfile::tempdir().unwrap();
    let engine = builder("session_error: [abort]\n").clock(backstop::actors::SystemClock).state_dir(dir.path());
    let engine = engine.runner(Runner::Dedicated).spawn().await.unwrap();
    let is_written = || dir.path().join("recovery-first.json").exists();
    engine.report(&id("first"), failure()).await.unwrap();
    let began = std::time::Instant::now();
    let mut round = 0;
    while !is_written() {
        assert!(began.elapsed() < secs(60), "none after {round} rounds");
        let reports = (0..32).map(|n| {
            let (engine, session) = (engine.clone(), id(&format!("s{n}-{round}")));
            tokio::spawn(async move { engine.report(&session, failure()).await.map(drop) })
        });
        for report in reports.collect::<Vec<_>>() {
            report.await.unwrap().unwrap();
        }
        round += 1;
    }
    engine.shutdown().await;
}

/// Real threads, a store that is held back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_happens_while_its_record_is_held_back() {
    let shelf = Shelf::default();
    let engine = with_own("ahead", &shelf).runner(Runner::Dedicated).spawn().await.unwrap();
    shelf.set_held(true);
    let (turns, driven) = (shelf.log.clone(), engine.clone());
    let run = tokio::spawn(async move { run(&driven, turns).await });
    let waits = shelf.clone();
    tokio::task::spawn_blocking(move || waits.wait_for_an_append()).await.unwrap();
    // The session is at home, and so are the others.
    assert_eq!(engine.status(&id("s")).await.unwrap().episode.unwrap().executions, 1);
    assert!(engine.report(&id("other"), backstop::Report::text("all is well")).await.is_ok());
    assert_eq!(shelf.log.all(), ["turn 0", "append"]);
    shelf.set_held(false);
    assert_eq!(run.await.unwrap().verdict, Verdict::Recovered(Proof::Verified));
    let log = shelf.log.all();
    let place = |what: &str| log.iter().position(|noted| noted == what).unwrap();
    assert!(place("appended") < place("strategy") && place("strategy") < place("turn 1"), "{log:?}");
}

/// Real threads: reports that come while a verdict is being written, and say nothing of what they belong to.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reports_that_come_while_a_verdict_is_written_share_the_next_episode() {
    let shelf = Shelf::default();
    let yaml = "session_error: [{strategy: retry, config: {max_retries: 1, backoff_ms: 0}}, abort]\n";
    let engine = builder(yaml).store(shelf.clone()).spawn().await.unwrap();
    let s = id("s");
    let first = engine.report(&s, failure()).await.unwrap();
    shelf.set_held(true);
    let report = |seq| {
        let engine = engine.clone();
        tokio::spawn(async move { engine.report_redo(&id("s"), failure(), seq).await.unwrap() })
    };
    let end = report(Some(first.seq));
    let waits = shelf.clone();
    tokio::task::spawn_blocking(move || waits.wait_for_an_append()).await.unwrap();
    let mut next: Vec<_> = (0..3).map(|_| Box::pin(engine.report(&s, failure()))).collect();
    for one in &mut next {
        // Polled once: it is in the session's mail.
        assert!(poll_fn(|context| Poll::Ready(one.as_mut().poll(context).is_pending())).await);
    }
    assert!(engine.status(&s).await.unwrap().episode.is_none(), "they were looked at, as this is");
    shelf.set_held(false);
    assert!(matches!(end.await.unwrap().verdict(), Some(Verdict::Aborted { .. })));
    for one in next {
        let told = tokio::time::timeout(secs(60), one).await.unwrap().unwrap();
        assert!(told.verdict().is_none() && told.episode == 2, "{told:?}");
    }
}

/// Real threads: a store that is held back for ever keeps nobody waiting.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn behind_and_off_do_not_wait_for_the_disk() {
    for durability in ["behind", "off"] {
        let shelf = Shelf::default();
        let engine = with_own(durability, &shelf).runner(Runner::Dedicated).spawn().await.unwrap();
        shelf.set_held(true);
        let outcome = run(&engine, shelf.log.clone()).await;
        assert_eq!(outcome.verdict, Verdict::Recovered(Proof::Verified));
        assert!(outcome.durable, "as the configuration asks");
        engine.reset(&id("s")).await.unwrap();
        assert!(!shelf.log.all().contains(&"appended".to_owned()), "{durability}");
        if durability == "off" {
            assert_eq!(shelf.log.count("append"), 0);
        }
        shelf.set_held(false);
        engine.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn while_the_disk_fails_memory_counts_aloud_and_it_is_written_once_it_heals() {
    let shelf = Shelf::default();
    let engine = with_own("ahead", &shelf).spawn().await.unwrap();
    let mut events = engine.events();
    shelf.set_failing(true);
    let outcome = run(&engine, Log::default()).await;
    assert_eq!(outcome.verdict, Verdict::Recovered(Proof::Verified));
    assert!(!outcome.durable);
    let told = engine.report(&id("kept"), failure()).await.unwrap();
    assert!(told.is_redo());
    sleep(secs(500)).await;
    let tries = shelf.log.count("append");
    assert!((500..=520).contains(&tries), "one try a second, however many batches failed: {tries}");
    assert!(shelf.record(&id("kept")).is_none());
    let outage = engine.last_outage().unwrap();
    assert_eq!((outage.until, outage.not_durable), (None, [id("kept"), id("s")].into()));
    assert_eq!(engine.metrics().sessions_not_durable, 2);
    shelf.set_failing(false);
    sleep(secs(2)).await;
    let outage = engine.last_outage().unwrap();
    assert!(outage.until.is_some_and(|until| until >= outage.since + secs(500)), "{outage:?}");
    assert_eq!((outage.not_durable.len(), outage.sessions), (0, [id("kept"), id("s")].into()));
    assert_eq!(engine.metrics().sessions_not_durable, 0);
    assert!(shelf.record(&id("kept")).unwrap().read().unwrap().unwrap().open_episode().is_some());
    assert!(shelf.record(&id("s")).is_some());
    let after = run(&engine, Log::default()).await;
    assert!(after.durable);
    engine.shutdown().await;
    let mut trouble = vec![];
    while let Some(event) = events.next().await {
        match event {
            EngineEvent::NotDurable { .. } => trouble.push("not durable"),
            EngineEvent::DurableAgain => trouble.push("durable again"),
            _ => {}
        }
    }
    assert_eq!(trouble, ["not durable", "durable again"]);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_panics_is_a_disk_that_fails() {
    let shelf = Shelf::default();
    let engine = with_own("ahead", &shelf).spawn().await.unwrap();
    shelf.set_panicking(true);
    for n in 0..10 {
        assert!(!run_as(&engine, &format!("s{n}"), Log::default()).await.durable);
    }
    shelf.set_panicking(false);
    assert!(run(&engine, Log::default()).await.durable);
}

#[tokio::test(start_paused = true)]
async fn a_record_that_cannot_be_saved_keeps_no_other_back_and_is_forgiven_once_a_newer_one_is() {
    for healed in [false, true] {
        let shelf = Shelf::default();
        let engine = builder("session_error: [abort]\n").store(shelf.clone()).spawn().await.unwrap();
        let mut events = engine.events();
        shelf.set_too_large(Some(id("large")));
        let (large, small) = (id("large"), id("small"));
        let (large, small) = tokio::join!(engine.report(&large, failure()), engine.report(&small, failure()));
        assert!(large.unwrap().verdict().is_some() && small.unwrap().verdict().is_some());
        assert!(shelf.record(&id("small")).is_some() && shelf.record(&id("large")).is_none());
        assert_eq!(engine.last_outage().unwrap().not_durable, [id("large")].into());
        assert!(engine.settled_metrics().await.unwrap().refused_writes > 0);
        if healed {
            shelf.set_too_large(None);
            engine.report(&id("large"), failure()).await.unwrap();
        }
        assert_eq!(engine.shutdown().await.durable, healed);
        let mut told = false;
        while let Some(event) = events.next().await {
            told |= matches!(event, EngineEvent::NotDurable { .. });
        }
        assert!(told);
    }
}
