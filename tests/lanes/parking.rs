//! What a session does at a lane that is closed.

use std::time::Duration;

use backstop::actors::Refused;
use backstop::engine::StopCause;
use backstop::policy::lane::Standing;
use backstop::{Cause, RecoveryEngine, Report, Verdict};
use tokio::time::{Instant, sleep};

use crate::provider::{START, engine, id, lane, secs, standing};

fn down() -> Report {
    Report::text("503 Service Unavailable").with_lane(lane())
}

/// Opens the circuit: five hosts report, and the probes that are let go keep failing.
async fn trip(engine: &RecoveryEngine) {
    for n in 0..6 {
        engine.report(&id(format!("host-{n}")), down()).await.unwrap();
    }
    sleep(Duration::from_millis(1)).await;
    assert_eq!(standing(engine), Standing::Closed);
}

#[tokio::test(start_paused = true)]
async fn failures_of_several_sessions_close_it_for_all_and_one_sessions_own_do_not() {
    let engine = engine("", 1).await;
    for n in 0..20 {
        engine
            .report(&id(format!("own-{n}")), Report::text("401 Unauthorized: invalid api key").with_lane(lane()))
            .await
            .unwrap();
        engine.report(&id("lone"), down()).await.unwrap();
    }
    assert_eq!(standing(&engine), Standing::Open);
    trip(&engine).await;
    let Err(Refused::Closed { not_before }) = engine.admit(&lane(), None).await else { panic!("it is closed") };
    assert!(not_before > START && not_before <= START + secs(6), "{not_before}");
    assert!(engine.admit(&"another".into(), None).await.is_ok());
    // The time that it names is true: then a probe may go, and only one.
    sleep(engine_wait(not_before)).await;
    let probe = engine.admit(&lane(), None).await.unwrap();
    assert!(matches!(engine.admit(&lane(), None).await, Err(Refused::Closed { .. })));
    probe.worked();
    sleep(Duration::from_millis(1)).await;
    assert_eq!(standing(&engine), Standing::Thawing);
}

fn engine_wait(until: backstop::Timestamp) -> Duration {
    // The tests' clock began at START, and reads whole milliseconds.
    until.since(START)
}

#[tokio::test(start_paused = true)]
async fn a_parked_session_spends_no_attempts_and_goes_on_when_the_provider_is_back() {
    let engine = engine("lane_probe_ms: 1000", 1).await;
    let begun = Instant::now();
    let sessions: Vec<_> = (0..100)
        .map(|n| {
            let session = engine.session(id(n)).lane(lane());
            tokio::spawn(session.run_with(move |_| async move {
                match begun.elapsed() < secs(300) {
                    true => Err(std::io::Error::other("503 Service Unavailable")),
                    false => Ok(()),
                }
            }))
        })
        .collect();
    let mut spent = 0;
    for session in sessions {
        let done = session.await.unwrap().unwrap();
        spent += done.recovery.map_or(0, |outcome| outcome.executions);
    }
    assert!(begun.elapsed() < secs(330), "{:?}", begun.elapsed());
    // Without a lane each would have used up its chain within seconds.
    assert!(spent <= 100 * 3, "{spent}");
}

#[tokio::test(start_paused = true)]
async fn a_parked_sessions_deadline_runs() {
    let engine = engine("lane_probe_max_ms: 600000\nlane_probe_ms: 600000", 1).await;
    trip(&engine).await;
    let begun = Instant::now();
    let session = engine.session(id("s")).lane(lane()).deadline(secs(60));
    let stopped = session.run_with(|_| async { Err::<(), _>(std::io::Error::other("503")) }).await.unwrap_err();
    assert_eq!(begun.elapsed(), secs(60));
    let StopCause::Verdict(outcome) = stopped.cause else { panic!("{:?}", stopped.cause) };
    assert_eq!(outcome.verdict, Verdict::Exhausted { cause: Cause::Deadline });
}

#[tokio::test(start_paused = true)]
async fn switched_off_a_lane_learns_nothing() {
    let engine = engine("lane_guard: 0", 1).await;
    for n in 0..50 {
        engine.report(&id(n), down()).await.unwrap();
    }
    assert!(engine.admit(&lane(), None).await.is_ok());
    assert_eq!(standing(&engine), Standing::Open);
}

#[tokio::test(start_paused = true)]
async fn by_configuration_a_chain_goes_to_another_lane_instead_of_waiting() {
    let yaml = "lane_fallback_after_ms: 2000\nlane_probe_ms: 60000\nlane_probe_max_ms: 60000\n\
                session_error: [{strategy: retry}, {strategy: fallback_model, config: {model: acme/small}}, abort]";
    let engine = engine(yaml, 1).await;
    let begun = Instant::now();
    let session = engine.session(id("s")).lane(lane());
    let hosts = engine.clone();
    let done = session
        .run_with(move |turn| {
            let hosts = hosts.clone();
            async move {
                if turn.redo == 0 {
                    trip(&hosts).await;
                }
                match turn.model.as_deref() {
                    Some("acme/small") => Ok(()),
                    _ => Err(std::io::Error::other("503 Service Unavailable")),
                }
            }
        })
        .await
        .unwrap();
    assert!(done.recovery.unwrap().verdict.is_recovered());
    assert!(begun.elapsed() < secs(10), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn the_time_after_which_an_idle_lane_is_put_away_follows_a_reload() {
    let engine = engine("passivate_after_ms: 3600000", 1).await;
    drop(engine.admit(&lane(), None).await.unwrap());
    sleep(secs(60)).await;
    let config = backstop::RecoveryConfig::parse("new.yaml", "passivate_after_ms: 1000").unwrap().config;
    engine.reload(config).await.unwrap();
    sleep(secs(10)).await;
    assert!(engine.pressure().borrow().is_empty());
}
