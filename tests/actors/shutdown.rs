//! The engine's end: within its limit, nothing lost, and another engine goes on (R10).

use std::sync::Arc;
use std::time::Duration;

use backstop::actors::Action;
use backstop::engine::{EngineBuilder, StopCause};
use backstop::strategy::{ClientCall, ClientError};
use backstop::{Answer, EngineError, Proof, RecoveryEngine, Report, Runner, SessionClient, SessionId, Turn, Verdict};
use tokio::time::{Instant, sleep};

use crate::fixture::{Log, Shelf, builder, error, failure, id, secs};

const RETRIES: &str = "session_error: [{strategy: retry, config: {max_retries: 3, backoff_ms: 10000, \
                       backoff_factor: 1, jitter: false}}, abort]\n";
const OWN: &str = "known_strategies: [own]\nsession_error: [own, abort]\n";

async fn on(shelf: &Shelf, yaml: &str) -> RecoveryEngine {
    builder(yaml).store(shelf.clone()).spawn().await.unwrap()
}

/// The clocks of two engines in one test go on from one another, as the wall clock does.
fn later(builder: EngineBuilder, by: Duration) -> EngineBuilder {
    builder.clock(backstop::actors::TokioClock::starting_at(crate::fixture::START + by))
}

#[tokio::test(start_paused = true)]
async fn a_closed_loop_goes_on_in_the_next_engine_with_what_was_left_of_its_wait() {
    let shelf = Shelf::default();
    let first = on(&shelf, RETRIES).await;
    let session = first.session(id("s"));
    let run = tokio::spawn(session.run_with(|_| async { Err::<(), _>(error()) }));
    // One redo has failed at 10 s; the second is due at 20 s.
    sleep(secs(14)).await;
    let before = first.status(&id("s")).await.unwrap().episode.unwrap();
    assert_eq!(before.executions, 2);
    let ended = first.shutdown().await;
    assert!(ended.durable);
    assert_eq!(ended.open_episodes, 1);
    let stopped = run.await.unwrap().unwrap_err();
    assert!(matches!(stopped.cause, StopCause::Engine(EngineError::ShuttingDown)), "{stopped}");

    sleep(secs(2)).await;
    let second = later(builder(RETRIES).store(shelf.clone()), secs(16)).spawn().await.unwrap();
    assert_eq!(second.open_episodes(), [id("s")]);
    let found = second.status(&id("s")).await.unwrap().episode.unwrap();
    assert_eq!(found, before, "the same place, attempt and budget");
    let started = Instant::now();
    let mut turns = vec![];
    let done = second.session(id("s")).run(async |turn: &Turn| {
        turns.push((turn.redo, started.elapsed()));
        if turn.redo == 2 { Err(error()) } else { Ok(()) }
    });
    let outcome = done.await.unwrap().recovery.unwrap();
    assert_eq!(turns, [(2, secs(4)), (3, secs(14))], "four seconds were left");
    assert_eq!((outcome.episode, outcome.executions), (1, 3));
    assert_eq!(outcome.verdict, Verdict::Recovered(Proof::Verified));
    assert!(second.open_episodes().is_empty());
}

/// A client that redoes turns and tells how the last one ended.
struct Client {
    log: Log,
    last: fn() -> Result<(), ClientError>,
}

impl SessionClient for Client {
    fn can_redo(&self) -> bool {
        true
    }

    fn redo<'a>(&'a self, turn: &'a Turn) -> ClientCall<'a, ()> {
        self.log.note(format!("redo {}", turn.redo));
        let redo = turn.redo;
        Box::pin(async move {
            sleep(secs(100)).await;
            self.log.note(format!("redone {redo}"));
            Ok(())
        })
    }

    fn last_turn<'a>(&'a self, _: &'a SessionId) -> ClientCall<'a, ()> {
        self.log.note("looked");
        Box::pin(async {
            sleep(secs(1)).await;
            (self.last)()
        })
    }
}

async fn client_loop(shelf: &Shelf, log: &Log, last: fn() -> Result<(), ClientError>) -> RecoveryEngine {
    let log = log.clone();
    let client = move |_: &SessionId| Some(Arc::new(Client { log: log.clone(), last }) as Arc<dyn SessionClient>);
    builder(RETRIES).store(shelf.clone()).clients(client).spawn().await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_client_loop_resumes_by_looking_at_how_the_turn_ended() {
    type Last = fn() -> Result<(), ClientError>;
    let failed: Last = || Err(ClientError::TurnFailed(Box::new(failure())));
    let ways: [(Last, &[&str]); 3] = [
        (|| Ok(()), &["redo 1", "looked"]),
        (failed, &["redo 1", "looked", "redo 2", "redone 2"]),
        (|| Err(ClientError::Unsupported), &["redo 1", "looked", "redo 2", "redone 2"]),
    ];
    for (last, calls) in ways {
        let (shelf, log) = (Shelf::default(), Log::default());
        let first = client_loop(&shelf, &log, last).await;
        let asked = first.clone();
        let waiting = tokio::spawn(async move { asked.recover(&id("s"), failure(), None).await });
        sleep(secs(50)).await;
        first.shutdown().await;
        assert!(matches!(waiting.await.unwrap().unwrap_err().cause, StopCause::Engine(EngineError::ShuttingDown)));

        let second = client_loop(&shelf, &log, last).await;
        assert_eq!(second.open_episodes(), [id("s")]);
        let outcome = second.resume(&id("s")).await.unwrap();
        assert_eq!(outcome.verdict, Verdict::Recovered(Proof::Verified));
        assert_eq!(log.all(), calls, "a redo that was going on is dropped, none is made twice");
        assert_eq!(second.resume(&id("s")).await.unwrap_err(), EngineError::NothingOpen);
    }
}

#[tokio::test(start_paused = true)]
async fn an_open_loop_goes_on_with_the_next_report_or_success() {
    for succeeds in [false, true] {
        let shelf = Shelf::default();
        let first = on(&shelf, RETRIES).await;
        let told = first.report(&id("s"), failure()).await.unwrap();
        let told = first.report_redo(&id("s"), failure(), Some(told.seq)).await.unwrap();
        first.shutdown().await;
        let second = on(&shelf, RETRIES).await;
        if succeeds {
            let end = second.succeeded(&id("s"), told.seq).await.unwrap();
            assert_eq!(end.verdict(), Some(&Verdict::Recovered(Proof::Verified)));
            continue;
        }
        let again = second.report_redo(&id("s"), failure(), Some(told.seq)).await.unwrap();
        assert!(matches!(again.action, Action::Redo { redo: 3, .. }), "{again:?}");
        assert_eq!((again.episode, again.seq), (1, told.seq + 1));
        let end = second.report_redo(&id("s"), failure(), Some(again.seq)).await.unwrap();
        assert!(matches!(end.verdict(), Some(Verdict::Aborted { .. })), "the budget was not refilled: {end:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_episode_found_on_disk_can_be_cancelled_reset_and_joined() {
    for way in 0..4 {
        let shelf = Shelf::default();
        let first = on(&shelf, RETRIES).await;
        first.report(&id("s"), failure()).await.unwrap();
        first.shutdown().await;
        let second = on(&shelf, RETRIES).await;
        match way {
            0 => assert!(second.cancel(&id("s")).await.unwrap()),
            1 => second.reset(&id("s")).await.unwrap(),
            2 => {
                let told = second.report(&id("s"), Report::cancelled()).await.unwrap();
                assert_eq!(told.verdict(), Some(&Verdict::Cancelled));
            }
            _ => {
                // Nobody can redo any more: the strategy alone goes on.
                let end = second.recover(&id("s"), failure(), None).await.unwrap_err();
                assert!(matches!(end.verdict(), Some(Verdict::Aborted { .. })), "{end}");
            }
        }
        sleep(secs(1)).await;
        assert!(second.open_episodes().is_empty(), "way {way}");
        second.shutdown().await;
        let kept = shelf.record(&id("s")).unwrap().read().unwrap().unwrap();
        assert!(kept.open_episode().is_none(), "way {way}");
    }
}

#[tokio::test(start_paused = true)]
async fn files_are_gone_on_with_as_memory_is() {
    let dir = tempfile::tempdir().unwrap();
    let first = builder(RETRIES).state_dir(dir.path()).spawn().await.unwrap();
    let told = first.report(&id("s"), failure()).await.unwrap();
    let before = first.status(&id("s")).await.unwrap().episode.unwrap();
    assert!(first.shutdown().await.durable);
    let second = builder(RETRIES).state_dir(dir.path()).spawn().await.unwrap();
    assert_eq!(second.open_episodes(), [id("s")]);
    let found = second.status(&id("s")).await.unwrap().episode.unwrap();
    assert_eq!((found.seq, found.executions, found.attempts), (before.seq, before.executions, before.attempts));
    let again = second.report_redo(&id("s"), failure(), Some(told.seq)).await.unwrap();
    assert!(matches!(again.action, Action::Redo { redo: 2, .. }));
    second.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn dropping_a_run_cancels_and_after_the_shutdown_began_it_does_not() {
    for (shuts_down, at) in [(false, 5), (false, 15), (true, 5), (true, 15)] {
        let shelf = Shelf::default();
        let engine = on(&shelf, RETRIES).await;
        let session = engine.session(id("s"));
        let run = tokio::spawn(session.run_with(|turn| async move {
            if turn.redo > 0 {
                sleep(secs(10)).await;
            }
            Err::<(), _>(error())
        }));
        // Waiting at 5 s, redoing at 15 s.
        sleep(secs(at)).await;
        if shuts_down {
            engine.shutdown().await;
            run.abort();
        } else {
            run.abort();
            sleep(secs(1)).await;
            assert_eq!(engine.status(&id("s")).await.unwrap().kept.unwrap().verdict, Verdict::Cancelled);
            engine.shutdown().await;
        }
        sleep(secs(1)).await;
        let memory = shelf.record(&id("s")).unwrap().read().unwrap().unwrap();
        assert_eq!(memory.open_episode().is_some(), shuts_down, "{shuts_down} at {at} s");
    }
}

/// Real threads: a strategy that spins and a store that stands still hold nobody up. That this test ends
/// is what it asserts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shutdown_keeps_its_limit_whatever_strategies_and_the_store_do() {
    let shelf = Shelf::default();
    let (let_go, held) = std::sync::mpsc::channel::<()>();
    let held = Arc::new(std::sync::Mutex::new(held));
    let own = move |_| {
        let held = Arc::clone(&held);
        async move {
            let _ = held.lock().unwrap().recv();
            Answer::success("at last")
        }
    };
    let yaml = format!("shutdown_timeout_ms: 200\n{OWN}");
    let engine = builder(&yaml).strategy_fn("own", own).store(shelf.clone()).runner(Runner::Dedicated);
    let engine = engine.clock(backstop::actors::SystemClock).spawn().await.unwrap();
    let waiting: Vec<_> = ["one", "two"]
        .map(|name| {
            let engine = engine.clone();
            tokio::spawn(async move { engine.recover(&id(name), failure(), None).await })
        })
        .into();
    while engine.status(&id("one")).await.unwrap().episode.is_none_or(|episode| episode.executions == 0) {
        tokio::task::yield_now().await;
    }
    shelf.set_held(true);
    let stuck = engine.clone();
    let stuck = tokio::spawn(async move { stuck.recover(&id("three"), failure(), None).await });
    let waits = shelf.clone();
    tokio::task::spawn_blocking(move || waits.wait_for_an_append()).await.unwrap();
    let (first, second) = tokio::join!(engine.shutdown(), engine.shutdown());
    assert_eq!(first, second);
    assert!(!first.durable);
    for one in waiting.into_iter().chain([stuck]) {
        let stopped = one.await.unwrap().unwrap_err();
        assert!(matches!(stopped.cause, StopCause::Engine(EngineError::ShuttingDown)), "{stopped}");
    }
    assert_eq!(engine.shutdown().await, first);
    assert_eq!(engine.report(&id("s"), failure()).await.unwrap_err(), EngineError::ShuttingDown);
    shelf.set_held(false);
    drop(let_go);
}

#[tokio::test(start_paused = true)]
async fn after_a_shutdown_no_strategy_goes_on() {
    let (shelf, log) = (Shelf::default(), Log::default());
    let noted = log.clone();
    let own = move |_| {
        let log = noted.clone();
        async move {
            log.note("begun");
            sleep(secs(10)).await;
            log.note("acted");
            Answer::success("done")
        }
    };
    let engine = builder(OWN).strategy_fn("own", own.clone()).store(shelf.clone()).spawn().await.unwrap();
    let session = engine.session(id("s"));
    let run = tokio::spawn(session.run_with(|_| async { Err::<(), _>(error()) }));
    sleep(secs(1)).await;
    engine.shutdown().await;
    assert!(run.await.unwrap().is_err());
    sleep(secs(60)).await;
    assert_eq!(log.all(), ["begun"]);

    // Nobody knows whether it acted: it counts as a success, and the redo tells the truth.
    let second = builder(OWN).strategy_fn("own", own).store(shelf.clone()).spawn().await.unwrap();
    let done = second.session(id("s")).run(async |turn: &Turn| Ok::<_, std::io::Error>(turn.redo)).await.unwrap();
    assert_eq!((done.value, done.recovery.unwrap().executions), (1, 1));
    assert_eq!(log.all(), ["begun"]);
}
