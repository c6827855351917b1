//! Parked sessions outlive the lane's actor, their own, their supervisor and the process.

use std::sync::Arc;
use std::time::Duration;

use backstop::engine::Target;
use tokio::time::{Instant, sleep};

use crate::provider::{engine, id, lane, secs};

const CHAIN: &str = "session_error: [{strategy: retry, config: {max_retries: 8}}, abort]";

async fn survives(kill: impl Fn(&backstop::RecoveryEngine)) {
    let engine = engine(CHAIN, 1).await;
    let begun = Instant::now();
    let sessions: Vec<_> = (0..40)
        .map(|n| {
            let session = engine.session(id(n)).lane(lane());
            tokio::spawn(session.run_with(move |_| async move {
                sleep(Duration::from_millis(200)).await;
                match begun.elapsed() < secs(120) {
                    true => Err(std::io::Error::other("503 Service Unavailable")),
                    false => Ok(()),
                }
            }))
        })
        .collect();
    sleep(secs(60)).await;
    kill(&engine);
    for session in sessions {
        session.await.unwrap().unwrap();
    }
    assert!(begun.elapsed() < secs(180), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn killing_the_lanes_actor_loses_nobody() {
    survives(|engine| assert!(engine.test_kill(&Target::Lane(lane())))).await;
    survives(|engine| assert!(engine.test_panic(&Target::Lane(lane())))).await;
}

#[tokio::test(start_paused = true)]
async fn killing_parked_sessions_actors_loses_nobody() {
    survives(|engine| {
        for n in 0..40 {
            engine.test_kill(&Target::Session(id(n)));
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn killing_the_sessions_supervisor_loses_nobody() {
    survives(|engine| assert!(engine.test_kill(&Target::Sessions))).await;
}

#[tokio::test(start_paused = true)]
async fn a_parked_session_goes_on_in_the_next_process() {
    let place = tempfile::tempdir().unwrap();
    let open = || async {
        let config = backstop::RecoveryConfig::parse("test.yaml", CHAIN).unwrap().config;
        let builder = backstop::RecoveryEngine::builder().config(config).state_dir(place.path());
        builder
            .runner(backstop::Runner::Inline)
            .clock(backstop::actors::TokioClock::starting_at(crate::provider::START))
            .seed(1)
            .spawn()
            .await
            .unwrap()
    };
    let engine = open().await;
    let calls: Vec<_> = (0..20)
        .map(|n| {
            let session = engine.session(id(n)).lane(lane());
            tokio::spawn(
                session.run_with(move |_| async { Err::<(), _>(std::io::Error::other("503 Service Unavailable")) }),
            )
        })
        .collect();
    sleep(secs(20)).await;
    engine.shutdown().await;
    drop(calls);
    drop(engine);
    let engine = Arc::new(open().await);
    assert_eq!(engine.open_episodes().len(), 20);
    for n in 0..20 {
        engine.session(id(n)).lane(lane()).run_with(|_| async { Ok::<_, std::io::Error>(()) }).await.unwrap();
    }
    assert!(engine.open_episodes().is_empty());
}
