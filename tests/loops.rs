//! What the three loops promise, through the public API.

#![allow(clippy::unwrap_used)]

use std::time::Duration;

use backstop::actors::TokioClock;
use backstop::{RecoveryEngine, Report, Runner, SessionId, Timestamp, Verdict};

fn id(name: &str) -> SessionId {
    SessionId::new(name).unwrap()
}

async fn engine() -> RecoveryEngine {
    let clock = TokioClock::starting_at(Timestamp::from_millis(1_700_000_000_000));
    RecoveryEngine::builder().in_memory().runner(Runner::Inline).clock(clock).seed(7).spawn().await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_fails_twice_is_redone_until_it_works() {
    let engine = engine().await;
    let mut tries = 0;
    let done = engine
        .session(id("s"))
        .run(async |turn| {
            tries += 1;
            match turn.redo {
                0 | 1 => Err(std::io::Error::other("503 Service Unavailable")),
                _ => Ok(turn.redo),
            }
        })
        .await
        .unwrap();
    assert_eq!((tries, done.value), (3, 2));
    let outcome = done.recovery.unwrap();
    assert_eq!(outcome.verdict, Verdict::Recovered(backstop::Proof::Verified));
    assert_eq!(outcome.executions, 2);
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_never_works_ends_with_the_chains_verdict() {
    let engine = engine().await;
    let stopped = engine
        .session(id("s"))
        .run(async |_| Err::<(), _>(std::io::Error::other("503 Service Unavailable")))
        .await
        .unwrap_err();
    assert!(matches!(stopped.verdict(), Some(Verdict::Aborted { .. })), "{stopped}");
    assert!(stopped.error.is_some());
}

#[tokio::test(start_paused = true)]
async fn the_deadline_covers_the_whole_run() {
    let engine = engine().await;
    let started = tokio::time::Instant::now();
    let stopped = engine
        .session(id("s"))
        .deadline(Duration::from_secs(3))
        .run(async |turn| match turn.redo {
            0 => Err::<(), _>(std::io::Error::other("503 Service Unavailable")),
            _ => std::future::pending().await,
        })
        .await
        .unwrap_err();
    assert!(matches!(stopped.verdict(), Some(Verdict::Exhausted { .. })), "{stopped}");
    assert_eq!(started.elapsed(), Duration::from_secs(3));
}

#[tokio::test(start_paused = true)]
async fn the_open_loop_answers_at_once_and_waiting_is_the_hosts() {
    let engine = engine().await;
    let directive = engine.report(&id("s"), Report::text("429 Too Many Requests")).await.unwrap();
    assert!(directive.is_redo(), "{directive:?}");
    let again = engine.report_redo(&id("s"), Report::text("429 Too Many Requests"), Some(directive.seq)).await.unwrap();
    assert!(again.is_redo() && again.seq > directive.seq);
    let end = engine.succeeded(&id("s"), again.seq).await.unwrap();
    assert_eq!(end.verdict(), Some(&Verdict::Recovered(backstop::Proof::Verified)));
}
