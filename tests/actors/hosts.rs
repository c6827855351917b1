//! What hosts are told: injections once (R12), strikes (R16), escalations (R18).

use std::time::Duration;

use backstop::{Answer, Turn, Verdict};
use tokio::time::sleep;

use crate::fixture::{Log, builder, error, failure, id, secs};

#[tokio::test(start_paused = true)]
async fn an_injection_is_delivered_once_with_the_next_redo_and_the_last_ones_come_with_the_verdict() {
    let yaml = "known_strategies: [own]\nsession_error: [own, own, own]\n";
    let engine = builder(yaml).strategy_fn("own", |attempt: backstop::Attempt| async move {
        attempt.inject(format!("text {}", attempt.seq()));
        if attempt.seq() == 3 { Answer::escalate("enough") } else { Answer::success("try this") }
    });
    let engine = engine.spawn().await.unwrap();
    let mut heard = vec![];
    let stopped = engine
        .session(id("s"))
        .run(async |turn: &Turn| {
            heard.push(turn.injected_text());
            Err::<(), _>(error())
        })
        .await
        .unwrap_err();
    assert_eq!(heard, ["", "text 1", "text 2"]);
    let last: Vec<_> = stopped.outcome().unwrap().injections.iter().map(|one| one.as_str().to_owned()).collect();
    assert_eq!(last, ["text 3"]);
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_returns_after_it_recovered_is_a_strike_unless_a_turn_was_seen_to_work() {
    for (says_so, escalates) in [(false, true), (true, false)] {
        let engine = builder("").spawn().await.unwrap();
        let mut verdicts = vec![];
        for _ in 0..6 {
            let told = engine.report(&id("s"), failure()).await.unwrap();
            match told.verdict() {
                Some(verdict) => verdicts.push(verdict.name()),
                None => verdicts.push(engine.succeeded(&id("s"), told.seq).await.unwrap().verdict().unwrap().name()),
            }
            sleep(secs(60)).await;
            if says_so {
                engine.turn_worked(&id("s")).unwrap();
            }
        }
        assert_eq!(verdicts.contains(&"escalated"), escalates, "{verdicts:?}");
        assert_eq!(verdicts[..3], ["recovered"; 3]);
    }
}

#[tokio::test(start_paused = true)]
async fn the_host_is_called_once_per_streak_and_its_panic_is_harmless() {
    let log = Log::default();
    let hook = log.clone();
    let engine = builder("session_error: [abort]\n").on_escalate(move |outcome| {
        hook.note(outcome.verdict.name());
        panic!("a hook that panics");
    });
    let engine = engine.spawn().await.unwrap();
    for n in 1..=8 {
        let told = engine.report(&id("s"), failure()).await.unwrap();
        let expected = if n <= 3 { "aborted" } else { "escalated" };
        assert_eq!(told.verdict().map(Verdict::name), Some(expected), "report {n}");
    }
    sleep(secs(1)).await;
    assert_eq!(log.all(), ["escalated"]);
    engine.reset(&id("s")).await.unwrap();
    for _ in 0..5 {
        engine.report(&id("s"), failure()).await.unwrap();
    }
    sleep(secs(1)).await;
    assert_eq!(log.all(), ["escalated", "escalated"], "another streak");
    assert!(engine.classify(failure()).await.is_ok());
}

/// Real threads: a hook that blocks stops neither strategies nor other hooks.
#[tokio::test]
async fn a_hook_that_blocks_stops_nobody() {
    let (let_go, held) = std::sync::mpsc::channel::<()>();
    let held = std::sync::Mutex::new(held);
    let (called, mut calls) = tokio::sync::mpsc::unbounded_channel();
    let yaml = "known_strategies: [own]\nsession_error: [escalate]\nedit_error: [own]\n";
    let engine = builder(yaml)
        .runner(backstop::Runner::Dedicated)
        .clock(backstop::actors::SystemClock)
        .strategy_fn("own", |_| async {
            sleep(Duration::from_millis(1)).await;
            Answer::success("done")
        })
        .on_escalate(move |outcome| {
            called.send(outcome.session.clone()).unwrap();
            if outcome.session.as_str() == "blocks" {
                let _ = held.lock().unwrap().recv();
            }
        });
    let engine = engine.spawn().await.unwrap();
    engine.report(&id("blocks"), failure()).await.unwrap();
    assert_eq!(calls.recv().await, Some(id("blocks")));
    engine.report(&id("other"), failure()).await.unwrap();
    assert_eq!(calls.recv().await, Some(id("other")));
    let edit = backstop::Report::text("oldString not found in content").with_tool("edit");
    assert!(engine.recover(&id("edits"), edit, Some(backstop::Category::EditError)).await.is_ok());
    drop(let_go);
}

#[tokio::test(start_paused = true)]
async fn turns_that_work_without_a_failure_before_leave_no_state() {
    let shelf = crate::fixture::Shelf::default();
    let engine = builder("").store(shelf.clone()).spawn().await.unwrap();
    for n in 0..100 {
        engine.turn_worked(&id(&format!("s{n}"))).unwrap();
        engine.reset(&id(&format!("s{n}"))).await.unwrap();
        engine.report(&id(&format!("s{n}")), backstop::Report::text("all is well")).await.unwrap();
    }
    engine.shutdown().await;
    assert_eq!(shelf.log.count("append"), 0);
}
