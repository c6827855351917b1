//! Lanes: bounded, fair, given back, and held as long as the server said (R4).

use std::time::Duration;

use backstop::actors::Refused;
use backstop::engine::Target;
use backstop::{LaneKey, Proof, RecoveryEngine, Report, Verdict};
use tokio::time::{Instant, sleep};

use crate::fixture::{Log, START, builder, error, id, secs};

const ONE_AT_A_TIME: &str = "lane_concurrency: 1\nlane_queue: 3\n";

fn lane() -> LaneKey {
    LaneKey::of("acme", "large", "team-a")
}

fn throttled(seconds: u64) -> Report {
    let message = serde_json::json!({
        "status": 429, "message": "Too Many Requests", "headers": {"retry-after": seconds.to_string()},
    });
    Report::new(message).with_lane(lane())
}

async fn engine(yaml: &str) -> RecoveryEngine {
    builder(yaml).spawn().await.unwrap()
}

/// Somebody who waits for the lane and leaves it at once.
fn waiting(engine: &RecoveryEngine) -> tokio::task::JoinHandle<Result<(), Refused>> {
    let engine = engine.clone();
    tokio::spawn(async move { engine.admit(&lane(), None).await.map(drop) })
}

fn pressure(engine: &RecoveryEngine) -> (usize, usize) {
    let all = engine.pressure().borrow().clone();
    all.iter().find(|one| one.lane == lane()).map_or((0, 0), |one| (one.free, one.queued))
}

#[tokio::test(start_paused = true)]
async fn turns_at_once_are_bounded_and_those_who_wait_go_in_the_order_in_which_they_came() {
    let (engine, log) = (engine(ONE_AT_A_TIME).await, Log::default());
    let inside = engine.admit(&lane(), None).await.unwrap();
    let waiting: Vec<_> = (0..3)
        .map(|n| {
            let (engine, log) = (engine.clone(), log.clone());
            tokio::spawn(async move {
                let _permit = engine.admit(&lane(), None).await.unwrap();
                log.note(format!("{n}"));
                sleep(secs(1)).await;
            })
        })
        .collect();
    sleep(secs(1)).await;
    assert_eq!(pressure(&engine), (0, 3));
    assert!(matches!(engine.admit(&lane(), None).await, Err(Refused::QueueFull { .. })));
    assert_eq!(log.all(), [""; 0]);
    drop(inside);
    for one in waiting {
        one.await.unwrap();
    }
    assert_eq!(log.all(), ["0", "1", "2"]);
    sleep(secs(1)).await;
    assert_eq!(pressure(&engine), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn callers_that_leave_the_queue_give_their_places_back() {
    let engine = engine(ONE_AT_A_TIME).await;
    let inside = engine.admit(&lane(), None).await.unwrap();
    for _ in 0..10 {
        let left = tokio::time::timeout(secs(1), engine.admit(&lane(), None)).await;
        assert!(left.is_err(), "{left:?}");
        let late = engine.admit(&lane(), Some(secs(1))).await;
        assert!(matches!(late, Err(Refused::Closed { .. })), "{late:?}");
    }
    sleep(secs(1)).await;
    assert_eq!(pressure(&engine), (0, 0));
    drop(inside);
    assert!(engine.admit(&lane(), None).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_queue_of_none_lets_in_whoever_finds_room() {
    let engine = engine("lane_concurrency: 2\nlane_queue: 0\n").await;
    let _one = engine.admit(&lane(), None).await.unwrap();
    let other = engine.admit(&lane(), None).await.unwrap();
    assert!(matches!(engine.admit(&lane(), None).await, Err(Refused::QueueFull { .. })));
    drop(other);
    sleep(secs(1)).await;
    assert!(engine.admit(&lane(), None).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_stated_wait_holds_the_lane_for_all_its_sessions_until_it_ends() {
    let engine = engine("").await;
    let started = Instant::now();
    // Another session of the lane fails first; its own retry would be due within seconds.
    let other = {
        let session = engine.session(id("other")).lane(lane());
        tokio::spawn(
            session
                .run_with(move |turn| async move { if turn.redo == 0 { Err(error()) } else { Ok(started.elapsed()) } }),
        )
    };
    sleep(Duration::from_millis(100)).await;
    let directive = engine.report(&id("s"), throttled(60)).await.unwrap();
    assert_eq!(directive.not_before(), Some(START + Duration::from_millis(100) + secs(60)));
    let refused = engine.admit(&lane(), None).await.unwrap_err();
    assert_eq!(refused, Refused::Closed { not_before: directive.not_before().unwrap() });
    assert!(engine.admit(&LaneKey::new("another"), None).await.is_ok());
    let redone = other.await.unwrap().unwrap();
    assert_eq!(redone.value, secs(60) + Duration::from_millis(100));
    let outcome = redone.recovery.unwrap();
    assert_eq!(outcome.verdict, Verdict::Recovered(Proof::Verified));
    assert!(engine.admit(&lane(), None).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_redos_failure_holds_the_lane_as_well_and_an_absurd_wait_is_bounded() {
    let engine = engine("").await;
    let first = engine.report(&id("s"), Report::text("503 Service Unavailable").with_lane(lane())).await.unwrap();
    assert!(engine.admit(&lane(), None).await.is_ok());
    engine.report_redo(&id("s"), throttled(1_000_000), Some(first.seq)).await.unwrap();
    let refused = engine.admit(&lane(), None).await.unwrap_err();
    assert_eq!(refused, Refused::Closed { not_before: START + secs(1_800) });
    // A shorter wait does not open it early, and one that is out of date says nothing.
    engine.report(&id("other"), throttled(5)).await.unwrap();
    engine.report_redo(&id("s"), throttled(1_799), Some(first.seq)).await.unwrap();
    assert_eq!(engine.admit(&lane(), None).await.unwrap_err(), refused);
    sleep(secs(1_800)).await;
    assert!(engine.admit(&lane(), None).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_states_no_wait_closes_nothing() {
    let engine = engine("").await;
    engine.report(&id("a"), Report::text("429 Too Many Requests").with_lane(lane())).await.unwrap();
    assert!(engine.admit(&lane(), None).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_lane_whose_actor_fails_keeps_its_queue_its_permits_and_its_hold() {
    let engine = engine(ONE_AT_A_TIME).await;
    let inside = engine.admit(&lane(), None).await.unwrap();
    let waiting = waiting(&engine);
    sleep(secs(1)).await;
    assert!(engine.test_panic(&Target::Lane(lane())));
    sleep(secs(1)).await;
    assert_eq!(pressure(&engine), (0, 1));
    drop(inside);
    waiting.await.unwrap().unwrap();
    engine.report(&id("s"), throttled(60)).await.unwrap();
    assert!(engine.test_kill(&Target::Lane(lane())));
    sleep(secs(1)).await;
    assert!(matches!(engine.admit(&lane(), None).await, Err(Refused::Closed { .. })));
}

#[tokio::test(start_paused = true)]
async fn a_lane_that_nobody_uses_is_put_away() {
    let engine = engine("").await;
    for n in 0..100 {
        drop(engine.admit(&LaneKey::new(format!("lane-{n}")), None).await.unwrap());
    }
    let held = engine.admit(&lane(), None).await.unwrap();
    sleep(secs(300)).await;
    let lanes = engine.pressure().borrow().clone();
    assert_eq!(lanes.iter().map(|one| one.lane.clone()).collect::<Vec<_>>(), [lane()], "one is in use");
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn those_who_wait_at_a_lane_are_told_of_the_engines_end() {
    let engine = engine(ONE_AT_A_TIME).await;
    let inside = engine.admit(&lane(), None).await.unwrap();
    let waiting = waiting(&engine);
    sleep(secs(1)).await;
    engine.shutdown().await;
    assert!(matches!(waiting.await.unwrap(), Err(Refused::Engine(_))));
    drop(inside);
}
