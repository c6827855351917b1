//! Saved, then done (R10); and what happens while the disk fails.

use std::sync::Arc;

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
    shelf.set_failing(false);
    sleep(secs(2)).await;
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
