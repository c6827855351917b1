//! Two engines in one process, and configurations that change while episodes run.

use backstop::{Answer, Proof, Verdict};
use tokio::time::sleep;

use crate::fixture::{builder, config, error, failure, id, secs};

#[tokio::test(start_paused = true)]
async fn two_engines_in_one_process_do_not_see_each_other() {
    let one = builder("session_error: [abort]\n").spawn().await.unwrap();
    let other = builder("session_error: [escalate]\n").spawn().await.unwrap();
    let (aborted, escalated) = (one.report(&id("s"), failure()).await, other.report(&id("s"), failure()).await);
    assert!(matches!(aborted.unwrap().verdict(), Some(Verdict::Aborted { .. })));
    assert!(matches!(escalated.unwrap().verdict(), Some(Verdict::Escalated { .. })));
    let permit = one.admit(&"lane".into(), None).await.unwrap();
    assert!(other.pressure().borrow().is_empty());
    one.shutdown().await;
    drop(permit);
    assert!(other.report(&id("s"), failure()).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_running_episode_keeps_its_plan_and_the_next_one_has_the_new() {
    let old = "known_strategies: [own]\nsession_error: [own, {strategy: retry, config: {max_retries: 1}}]\n";
    let engine = builder(old).strategy_fn("own", |_| async {
        sleep(secs(10)).await;
        Answer::next_strategy("not mine")
    });
    let engine = engine.spawn().await.unwrap();
    let run = |name: &str| {
        tokio::spawn(
            engine.session(id(name)).run_with(|turn| async move { if turn.redo == 0 { Err(error()) } else { Ok(()) } }),
        )
    };
    let running = run("s");
    sleep(secs(1)).await;
    for _ in 0..100 {
        engine.reload(config("session_error: [abort]\n")).await.unwrap();
    }
    let stopped = run("next").await.unwrap().unwrap_err();
    assert!(matches!(stopped.verdict(), Some(Verdict::Aborted { .. })), "{stopped}");
    let outcome = running.await.unwrap().unwrap().recovery.unwrap();
    assert_eq!(outcome.verdict, Verdict::Recovered(Proof::Verified));
    assert_eq!(outcome.executions, 2);
}

#[tokio::test(start_paused = true)]
async fn a_configurations_own_patterns_are_in_force_after_a_reload_and_a_failure_of_the_detector() {
    let engine = builder("").spawn().await.unwrap();
    let yaml = "patterns:\n  - name: tunnel\n    category: session_error\n    kind: tunnel_down\n    regex: the tunnel fell\n\
                session_error: [escalate]\n";
    engine.reload(config(yaml)).await.unwrap();
    engine.test_panic(&backstop::engine::Target::Detector);
    let report = backstop::Report::text("the tunnel fell");
    let told = engine.report(&id("s"), report.clone()).await.unwrap();
    assert!(matches!(told.verdict(), Some(Verdict::Escalated { .. })), "{told:?}");
    let detection = engine.classify(report).await.unwrap();
    assert_eq!(detection.into_failure().unwrap().kind.to_string(), "tunnel_down");
}
