//! Actors that fail in mid-episode: nobody else is harmed, nothing is lost, nothing happens twice.

use std::sync::Arc;
use std::time::Duration;

use backstop::actors::EngineEvent;
use backstop::engine::{StopCause, Target};
use backstop::{Answer, EngineError, LaneKey, Outcome, Proof, RecoveryEngine, Runner, Verdict};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::fixture::{Log, Shelf, builder, error, failure, id, secs};

const CHAIN: &str = "known_strategies: [own]\nsession_error: [own, abort]\n";
const LANE: &str = "acme/large";

/// Acting from 0 to 10 s, waiting to 15 s, parked to 20 s, redoing to 30 s.
fn episode(engine: &RecoveryEngine, name: &str, log: &Log) -> JoinHandle<Arc<Outcome>> {
    let (session, log) = (engine.session(id(name)).lane(LANE.into()), log.clone());
    tokio::spawn(async move {
        let turn = session.run_with(|turn| {
            let log = log.clone();
            async move {
                log.note(format!("turn {}", turn.redo));
                if turn.redo == 0 {
                    return Err(error());
                }
                sleep(secs(10)).await;
                Ok(())
            }
        });
        turn.await.unwrap().recovery.unwrap()
    })
}

async fn engine(log: &Log) -> RecoveryEngine {
    let log = log.clone();
    let own = move |_| {
        let log = log.clone();
        async move {
            log.note("strategy");
            sleep(secs(10)).await;
            log.note("answered");
            Answer::retry(secs(5), "in a while")
        }
    };
    builder(CHAIN).strategy_fn("own", own).spawn().await.unwrap()
}

/// Closes the lane from 14 s to 20 s of an episode.
async fn close_the_lane(engine: &RecoveryEngine) {
    let throttled = serde_json::json!({"status": 429, "message": "Too Many Requests", "headers": {"retry-after": "6"}});
    let report = backstop::Report::new(throttled).with_lane(LANE.into());
    engine.report(&id("elsewhere"), report).await.unwrap();
    engine.reset(&id("elsewhere")).await.unwrap();
}

async fn an_episode_with_a_failure(target: &Target, kill: bool, at: u64) {
    let log = Log::default();
    let engine = engine(&log).await;
    let (mine, theirs) = (episode(&engine, "mine", &log), Log::default());
    let neighbour = episode(&engine, "neighbour", &theirs);
    for now in 1..=40 {
        sleep(secs(1)).await;
        if now == 14 {
            close_the_lane(&engine).await;
        }
        if now == at {
            let lived = if kill { engine.test_kill(target) } else { engine.test_panic(target) };
            assert!(lived, "{target:?} at {at} s");
        }
    }
    for (outcome, log) in [(mine.await.unwrap(), log), (neighbour.await.unwrap(), theirs)] {
        let told = format!("{target:?} killed: {kill} at {at} s: {:?} {outcome:#?}", log.all());
        assert_eq!(outcome.verdict, Verdict::Recovered(Proof::Verified), "{told}");
        assert_eq!((outcome.executions, outcome.redos), (1, 1), "{told}");
        let turns = ["turn 0", "turn 1"].map(|turn| log.count(turn));
        assert_eq!(turns, [1, 1], "{told}");
        assert!(outcome.notes.len() >= 4, "what was decided before the failure is told: {told}");
    }
}

const ACTING: u64 = 5;
const WAITING: u64 = 12;
const PARKED: u64 = 17;
const REDOING: u64 = 25;

async fn whatever_the_phase(target: Target) {
    for at in [ACTING, WAITING, PARKED, REDOING] {
        for kill in [false, true] {
            an_episode_with_a_failure(&target, kill, at).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_episode_outlives_the_failure_of_its_own_actor() {
    whatever_the_phase(Target::Session(id("mine"))).await;
}

#[tokio::test(start_paused = true)]
async fn an_episode_outlives_the_failure_of_the_sessions_supervisor() {
    whatever_the_phase(Target::Sessions).await;
}

#[tokio::test(start_paused = true)]
async fn an_episode_outlives_the_failure_of_the_writer() {
    whatever_the_phase(Target::Persistence).await;
}

#[tokio::test(start_paused = true)]
async fn an_episode_outlives_the_failure_of_the_aggregator_and_the_detector() {
    for target in [Target::Metrics, Target::Detector] {
        an_episode_with_a_failure(&target, false, ACTING).await;
        an_episode_with_a_failure(&target, true, REDOING).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_episode_outlives_the_failure_of_its_lane() {
    for at in [15, PARKED, REDOING] {
        an_episode_with_a_failure(&Target::Lane(LaneKey::new(LANE)), at == PARKED, at).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_strategy_that_runs_is_waited_for_and_not_run_again() {
    let log = Log::default();
    let engine = engine(&log).await;
    let mine = episode(&engine, "mine", &log);
    sleep(secs(ACTING)).await;
    engine.test_panic(&Target::Session(id("mine")));
    mine.await.unwrap();
    assert_eq!(log.all(), ["turn 0", "strategy", "answered", "turn 1"]);
}

/// Real threads: what is being written when its actor fails is written once, and then followed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_being_written_when_an_actor_fails_is_followed_once() {
    for target in [Target::Session(id("s")), Target::Persistence, Target::Sessions] {
        let (shelf, log) = (Shelf::default(), Log::default());
        let own = {
            let log = log.clone();
            move |_| {
                log.note("strategy");
                async { Answer::success("done") }
            }
        };
        let engine = builder(CHAIN).strategy_fn("own", own).runner(Runner::Dedicated).store(shelf.clone());
        let engine = engine.spawn().await.unwrap();
        shelf.set_held(true);
        let (session, turns) = (engine.session(id("s")), log.clone());
        let run = tokio::spawn(session.run_with(move |turn| {
            turns.note(format!("turn {}", turn.redo));
            async move { if turn.redo == 0 { Err(error()) } else { Ok(()) } }
        }));
        let waits = shelf.clone();
        tokio::task::spawn_blocking(move || waits.wait_for_an_append()).await.unwrap();
        assert!(engine.test_panic(&target), "{target:?}");
        // Answered only after the failure: the restart is over.
        while engine.status(&id("s")).await.is_err() {
            tokio::task::yield_now().await;
        }
        assert_eq!(log.all(), ["turn 0"], "nothing happens before it is written: {target:?}");
        shelf.set_held(false);
        let outcome = run.await.unwrap().unwrap().recovery.unwrap();
        assert_eq!(outcome.verdict, Verdict::Recovered(Proof::Verified));
        assert_eq!(log.all(), ["turn 0", "strategy", "turn 1"], "{target:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_that_fails_too_often_is_escalated_and_its_neighbours_go_on() {
    let log = Log::default();
    let (called, own_log) = (Log::default(), log.clone());
    let hook = called.clone();
    let own = move |_| {
        own_log.note("strategy");
        std::future::pending()
    };
    let engine = builder(CHAIN).strategy_fn("own", own).on_escalate(move |outcome| hook.note(outcome.session.as_str()));
    let engine = engine.spawn().await.unwrap();
    let mut events = engine.events();
    let reported = |name: &'static str| {
        let engine = engine.clone();
        tokio::spawn(async move { engine.recover(&id(name), failure(), None).await })
    };
    let (mine, joined, neighbour) = (reported("mine"), reported("mine"), reported("neighbour"));
    let later = {
        let engine = engine.clone();
        tokio::spawn(async move { engine.recover(&id("mine"), failure().with_turn(9), None).await })
    };
    sleep(secs(1)).await;
    for _ in 0..6 {
        engine.test_panic(&Target::Session(id("mine")));
        sleep(Duration::from_millis(10)).await;
    }
    for waiter in [mine, joined] {
        let stopped = waiter.await.unwrap().unwrap_err();
        assert!(matches!(stopped.verdict(), Some(Verdict::Escalated { .. })), "{stopped}");
        assert_eq!(stopped.outcome().unwrap().episode, 1);
        assert!(stopped.error.is_some());
    }
    sleep(Duration::from_millis(10)).await;
    assert_eq!(called.all(), ["mine"]);
    let status = engine.status(&id("mine")).await.unwrap();
    assert!(matches!(status.kept.unwrap().verdict, Verdict::Escalated { .. }));
    while let Some(event) = events.next().await {
        if let EngineEvent::Ended(outcome) = event {
            assert_eq!(outcome.session, id("mine"));
            break;
        }
    }
    // What ran out of time is a step that did not help: the chain goes on and aborts.
    let stopped = neighbour.await.unwrap().unwrap_err();
    assert!(matches!(stopped.verdict(), Some(Verdict::Aborted { .. })), "{stopped}");
    // A joiner of the same turn or a later one is answered in any case.
    assert!(later.await.unwrap().is_err());
}

#[tokio::test(start_paused = true)]
async fn a_shared_actor_that_fails_too_often_ends_the_engine_and_everybody_is_told() {
    for target in [Target::Persistence, Target::Metrics, Target::Detector, Target::Sessions] {
        let engine = builder(CHAIN).strategy_fn("own", |_| std::future::pending()).spawn().await.unwrap();
        let mut events = engine.events();
        let waiting = {
            let engine = engine.clone();
            tokio::spawn(async move { engine.recover(&id("s"), failure(), None).await })
        };
        sleep(secs(1)).await;
        for _ in 0..6 {
            engine.test_panic(&target);
            sleep(Duration::from_millis(10)).await;
        }
        let stopped = waiting.await.unwrap().unwrap_err();
        assert!(matches!(stopped.cause, StopCause::Engine(EngineError::Stopped)), "{target:?}: {stopped}");
        assert_eq!(engine.report(&id("s"), failure()).await.unwrap_err(), EngineError::Stopped);
        assert_eq!(engine.cancel(&id("s")).await.unwrap_err(), EngineError::Stopped);
        assert_eq!(engine.classify(failure()).await.unwrap_err(), EngineError::Stopped);
        assert!(engine.admit(&LANE.into(), None).await.is_err());
        while events.next().await.is_some() {}
        engine.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn calls_outlive_the_failure_of_the_actor_that_they_ask() {
    let engine = builder("").spawn().await.unwrap();
    for target in [Target::Detector, Target::Sessions] {
        engine.test_panic(&target);
        assert!(engine.classify(failure()).await.is_ok(), "{target:?}");
        assert!(engine.report(&id("s"), failure()).await.is_ok(), "{target:?}");
        assert!(engine.status(&id("s")).await.is_ok(), "{target:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_reset_and_a_cancel_outlive_the_failure_of_the_session() {
    let engine = builder(CHAIN).strategy_fn("own", |_| std::future::pending()).spawn().await.unwrap();
    for round in 0..3 {
        let waiting = {
            let engine = engine.clone();
            tokio::spawn(async move { engine.recover(&id("s"), failure(), None).await })
        };
        sleep(secs(10)).await;
        engine.test_panic(&Target::Session(id("s")));
        if round == 0 {
            assert!(engine.cancel(&id("s")).await.unwrap());
        } else {
            engine.reset(&id("s")).await.unwrap();
        }
        let stopped = waiting.await.unwrap().unwrap_err();
        assert_eq!(stopped.verdict(), Some(&Verdict::Cancelled), "round {round}");
    }
}
