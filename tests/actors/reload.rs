//! What another configuration changes at once, and what it leaves alone (R14).

use backstop::failure::{Category, ErrorPattern, Kind};
use backstop::{Answer, Proof, RecoveryConfig, Report, Verdict};
use tokio::time::{Instant, sleep};

use crate::fixture::{Shelf, builder, config, error, failure, id, secs};

fn kind_of(text: &str, engine: &backstop::RecoveryEngine) -> String {
    let detection = engine.pattern_registry().detect_first(&Report::text(text), crate::fixture::START);
    detection.into_failure().map(|error| error.kind.to_string()).unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn a_configurations_own_patterns_go_with_it_and_those_of_code_stay() {
    let pattern = |name: &str, kind: &str| {
        let kind = Kind::parse(kind);
        ErrorPattern::regex(name.to_owned(), Category::SessionError, kind, "the (tunnel|bridge) fell").unwrap()
    };
    let yaml = |name: &str, kind: &str| {
        let head = format!("patterns: [{{name: {name}, category: session_error, kind: {kind}, ");
        config(&(head + "priority: 5, regex: the tunnel fell}]\n"))
    };
    let engine = builder("").pattern(pattern("built", "from_builder")).config(yaml("own", "first"));
    let engine = engine.spawn().await.unwrap();
    assert_eq!(kind_of("the tunnel fell", &engine), "first");
    engine.reload(yaml("other", "second")).await.unwrap();
    assert_eq!(kind_of("the tunnel fell", &engine), "second");
    assert_eq!(engine.pattern_registry().own_patterns().len(), 2, "the first configuration's is gone");
    engine.reload(config("")).await.unwrap();
    assert_eq!(kind_of("the tunnel fell", &engine), "from_builder");

    engine.register_error_pattern(pattern("late", "from_code").with_priority(9)).await.unwrap();
    engine.reload(yaml("late", "shadows")).await.unwrap();
    assert_eq!(kind_of("the tunnel fell", &engine), "shadows");
    engine.test_panic(&backstop::engine::Target::Detector);
    engine.reload(config("")).await.unwrap();
    assert_eq!(kind_of("the bridge fell", &engine), "from_code");
    assert_eq!(engine.pattern_registry().own_patterns().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn lanes_in_use_keep_to_the_new_limits() {
    let engine = builder("lane_concurrency: 1\nlane_queue: 0\n").spawn().await.unwrap();
    let lane = "lane".into();
    let first = engine.admit(&lane, None).await.unwrap();
    sleep(secs(1)).await;
    engine.admit(&lane, Some(secs(1))).await.unwrap_err();
    engine.reload(config("lane_concurrency: 2\nlane_queue: 1\n")).await.unwrap();
    let second = engine.admit(&lane, Some(secs(1))).await.unwrap();
    engine.reload(config("lane_concurrency: 1\nlane_queue: 1\n")).await.unwrap();
    drop(first);
    assert!(engine.admit(&lane, Some(secs(1))).await.is_err(), "one is still inside");
    drop(second);
    engine.admit(&lane, Some(secs(1))).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_running_episode_keeps_its_plans_durability() {
    let chain = "known_strategies: [own]\nsession_error: [own, abort]\n";
    let shelf = Shelf::default();
    let own = |_| async {
        sleep(secs(10)).await;
        Answer::next_strategy("not mine")
    };
    let engine = builder(&format!("durability: ahead\n{chain}")).strategy_fn("own", own).store(shelf.clone());
    let engine = engine.spawn().await.unwrap();
    let report = |name: &'static str| {
        let engine = engine.clone();
        tokio::spawn(async move { engine.report(&id(name), failure()).await.unwrap() })
    };
    let running = report("ahead");
    sleep(secs(1)).await;
    engine.reload(config(&format!("durability: 'off'\n{chain}"))).await.unwrap();
    let next = report("off");
    sleep(secs(1)).await;
    engine.reload(config(&format!("durability: ahead\n{chain}"))).await.unwrap();
    assert!(matches!(running.await.unwrap().verdict(), Some(Verdict::Aborted { .. })));
    let kept = |name: &str| shelf.record(&id(name)).map(|record| record.read().unwrap().unwrap());
    assert!(kept("ahead").unwrap().kept().is_some(), "its verdict is durable");
    assert!(matches!(next.await.unwrap().verdict(), Some(Verdict::Aborted { .. })));
    assert!(kept("off").is_none(), "and nothing of what began without a disk");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_lost_and_every_episode_keeps_its_plan_while_configurations_come_and_go() {
    const SESSIONS: usize = 1_000;
    const RELOADS: usize = 1_000;
    let yaml = |retries: usize| {
        format!("session_error: [{{strategy: retry, config: {{max_retries: {retries}, backoff_ms: 5000}}}}, abort]\n")
    };
    let engine = builder(&yaml(2)).spawn().await.unwrap();
    let run = |number: usize| {
        let session = engine.session(id(&format!("s{number}")));
        tokio::spawn(session.run_with(move |turn| async move {
            // The odd ones never work; their plan says how often they are redone.
            if number % 2 == 1 || turn.redo == 0 { Err(error()) } else { Ok(turn.redo) }
        }))
    };
    let running: Vec<_> = (0..SESSIONS).map(run).collect();
    sleep(secs(1)).await;
    for reload in 0..RELOADS {
        // Two that hold in turn, and one between them that does not.
        let text = [yaml(3), yaml(1).replace("5000", ".nan"), yaml(1)][reload % 3].clone();
        match RecoveryConfig::parse("reload.yaml", &text) {
            Ok(loaded) => engine.reload(loaded.config).await.unwrap(),
            Err(problems) => assert!(reload % 3 == 1 && problems.to_string().contains("reload.yaml:1:"), "{problems}"),
        }
        sleep(std::time::Duration::from_millis(10)).await;
    }
    let begun = Instant::now();
    for (number, one) in running.into_iter().enumerate() {
        match one.await.unwrap() {
            Ok(done) => {
                assert_eq!((number % 2, done.value), (0, 1));
                assert_eq!(done.recovery.unwrap().verdict, Verdict::Recovered(Proof::Verified));
            }
            Err(stopped) => {
                let backstop::engine::StopCause::Verdict(outcome) = stopped.cause else { panic!("{number}") };
                assert_eq!((number % 2, outcome.redos), (1, 2), "two redos, as the old plan says");
                assert!(matches!(outcome.verdict, Verdict::Aborted { .. }));
            }
        }
    }
    assert!(begun.elapsed() < secs(60));
    engine.reload(RecoveryConfig::parse("last.yaml", &yaml(1)).unwrap().config).await.unwrap();
    let stopped = run(SESSIONS + 1).await.unwrap().unwrap_err();
    let backstop::engine::StopCause::Verdict(outcome) = stopped.cause else { panic!("no verdict") };
    assert_eq!(outcome.redos, 1, "what begins now keeps to the new one");
}
