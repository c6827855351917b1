//! A session that nothing happens to is put away and comes back with its memory.

use std::time::Duration;

use backstop::{Answer, Verdict};
use tokio::time::sleep;

use crate::fixture::{builder, failure, id, secs};

const OWN: &str = "known_strategies: [own]\nsession_error: [own, abort]\n";

#[tokio::test(start_paused = true)]
async fn an_idle_session_is_put_away_and_its_strikes_and_window_come_back() {
    let engine = builder("session_error: [abort]\n").spawn().await.unwrap();
    for strikes in 1..=3 {
        let told = engine.report(&id("s"), failure()).await.unwrap();
        assert!(matches!(told.verdict(), Some(Verdict::Aborted { .. })));
        assert_eq!(engine.live_sessions(), 1);
        sleep(secs(130)).await;
        assert_eq!(engine.live_sessions(), 0);
        let status = engine.status(&id("s")).await.unwrap();
        assert_eq!((status.strikes, status.recoveries_in_window), (strikes, strikes));
        assert!(matches!(status.kept.unwrap().verdict, Verdict::Aborted { .. }));
        sleep(secs(130)).await;
    }
    let told = engine.report(&id("s"), failure()).await.unwrap();
    assert!(matches!(told.verdict(), Some(Verdict::Escalated { .. })), "three strikes: {told:?}");
}

#[tokio::test(start_paused = true)]
async fn a_session_with_an_episode_stays_however_long_it_takes() {
    let engine = builder(OWN).strategy_fn("own", |_| async {
        sleep(secs(100)).await;
        Answer::retry(secs(290), "in a while")
    });
    let engine = engine.spawn().await.unwrap();
    let run = tokio::spawn(
        engine
            .session(id("s"))
            .run_with(|turn| async move { if turn.redo == 0 { Err(crate::fixture::error()) } else { Ok(()) } }),
    );
    sleep(secs(380)).await;
    assert_eq!(engine.live_sessions(), 1);
    assert!(run.await.unwrap().is_ok());
}

/// The reports come at the very moment at which the session is put away, and just before and after it.
#[tokio::test(start_paused = true)]
async fn a_report_that_races_with_the_putting_away_is_answered_and_remembered() {
    let engine = builder("session_error: [abort]\nmax_same_failure: 1000000\nmax_recoveries: 1000000\n");
    let engine = engine.spawn().await.unwrap();
    let mut met = std::collections::BTreeSet::new();
    for seed in 0..200_u64 {
        let session = id(&format!("s{seed}"));
        engine.report(&session, failure()).await.unwrap();
        sleep(secs(60) - Duration::from_millis(2)).await;
        // Tokio's timers have milliseconds: many tasks at one of them, in one order or the other.
        let reports: Vec<_> = (0..4)
            .map(|n| {
                let (engine, session) = (engine.clone(), session.clone());
                tokio::spawn(async move {
                    sleep(Duration::from_millis(seed % 4 + n % 2)).await;
                    for _ in 0..(seed + n) % 5 {
                        tokio::task::yield_now().await;
                    }
                    let live = engine.live_sessions();
                    engine.report(&session, failure()).await.map(|told| (live, told))
                })
            })
            .collect();
        for report in reports {
            let (live, told) = report.await.unwrap().unwrap();
            assert!(told.verdict().is_some());
            met.insert(live);
        }
        let episodes = engine.status(&session).await.unwrap().episodes;
        assert_eq!(episodes, 5, "seed {seed}: none is lost, none is counted twice");
        sleep(secs(200)).await;
        assert_eq!(engine.live_sessions(), 0);
    }
    assert_eq!(met.into_iter().collect::<Vec<_>>(), [0, 1], "some came before, some after");
}

/// Real threads, putting away as soon as may be.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_report_is_lost_while_sessions_come_and_go() {
    let yaml = "passivate_after_ms: 1\ndurability: behind\nsession_error: [abort]\nmax_same_failure: 1000000\n\
                max_recoveries: 1000000\n";
    let engine = builder(yaml).clock(backstop::actors::SystemClock).spawn().await.unwrap();
    let callers: Vec<_> = (0..4)
        .map(|n: u64| {
            let engine = engine.clone();
            tokio::spawn(async move {
                for round in 0..150 {
                    let told = engine.report(&id("s"), failure()).await.unwrap();
                    assert!(told.verdict().is_some());
                    sleep(Duration::from_micros((round * 37 + n * 411) % 2_500)).await;
                }
            })
        })
        .collect();
    for caller in callers {
        caller.await.unwrap();
    }
    assert_eq!(engine.status(&id("s")).await.unwrap().episodes, 600);
}
