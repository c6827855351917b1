//! What a report is, beside the episode that runs (R8), and what a reset fences (R11).

use backstop::actors::Action;
use backstop::{Answer, Cause, Directive, EngineError, Proof, RecoveryEngine, Verdict};
use tokio::time::sleep;

use crate::fixture::{Log, builder, failure, id, secs};

const RETRIES: &str = "session_error: [{strategy: retry, config: {max_retries: 5, jitter: false}}, abort]\n";
const OWN: &str = "known_strategies: [own]\nsession_error: [own, abort]\n";

fn redo(directive: &Directive) -> u32 {
    match &directive.action {
        Action::Redo { redo, .. } => *redo,
        Action::Stop { verdict } => panic!("stopped: {verdict}"),
    }
}

async fn open_loop() -> RecoveryEngine {
    builder(RETRIES).spawn().await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn the_current_seq_is_the_redos_result_and_any_other_is_out_of_date() {
    let engine = open_loop().await;
    let first = engine.report(&id("s"), failure()).await.unwrap();
    let second = engine.report_redo(&id("s"), failure(), Some(first.seq)).await.unwrap();
    assert_eq!((redo(&first), redo(&second)), (1, 2));
    for stale in [first.seq, 0, 99] {
        let told = engine.report_redo(&id("s"), failure(), Some(stale)).await.unwrap();
        assert_eq!((told.seq, redo(&told)), (second.seq, 2), "the current directive, for {stale}");
    }
    assert_eq!(engine.succeeded(&id("s"), first.seq).await.unwrap().seq, second.seq, "an old redo's success is none");
    let end = engine.succeeded(&id("s"), second.seq).await.unwrap();
    assert_eq!(end.verdict(), Some(&Verdict::Recovered(Proof::Verified)));
    let late = engine.report_redo(&id("s"), failure(), Some(first.seq)).await.unwrap();
    assert_eq!(late.verdict(), end.verdict(), "the last verdict");
    assert_eq!(engine.status(&id("s")).await.unwrap().episodes, 1);
}

#[tokio::test(start_paused = true)]
async fn an_equal_turn_joins_a_lower_one_is_ignored_and_a_higher_one_supersedes() {
    let engine = open_loop().await;
    let first = engine.report(&id("s"), failure().with_turn(5)).await.unwrap();
    for turn in [5, 4, 0] {
        let told = engine.report(&id("s"), failure().with_turn(turn)).await.unwrap();
        assert_eq!((told.seq, redo(&told)), (first.seq, 1), "turn {turn}");
    }
    let next = engine.report(&id("s"), failure().with_turn(6)).await.unwrap();
    assert_eq!((next.episode, redo(&next)), (2, 1));
    let told = engine.report_redo(&id("s"), failure(), Some(first.seq)).await.unwrap();
    assert_eq!(told.seq, next.seq, "the first episode's redo is out of date");
}

#[tokio::test(start_paused = true)]
async fn later_turns_wait_for_the_episode_and_then_have_their_own() {
    let engine = builder(OWN).strategy_fn("own", |_| async {
        sleep(secs(10)).await;
        Answer::success("done")
    });
    let engine = engine.spawn().await.unwrap();
    let recover = |turn: u64, what: &'static str| {
        let engine = engine.clone();
        tokio::spawn(async move {
            let report = backstop::Report::text(what).with_turn(turn);
            engine.recover(&id("s"), report, None).await
        })
    };
    let first = recover(1, "503 Service Unavailable");
    sleep(secs(1)).await;
    // None of these is a failure: each is answered without an episode, and the last one has its own.
    let none: Vec<_> = (2..6).map(|turn| recover(turn, "all is well")).collect();
    let last = recover(9, "503 Service Unavailable");
    assert!(first.await.unwrap().is_ok());
    for told in none {
        assert!(matches!(told.await.unwrap().unwrap_err().verdict(), Some(Verdict::Unhandled(_))));
    }
    assert_eq!(last.await.unwrap().unwrap().outcome.episode, 2);
}

#[tokio::test(start_paused = true)]
async fn those_who_wait_are_bounded_and_the_excess_is_busy() {
    let yaml = format!("waiting_reports: 4\n{OWN}");
    let engine = builder(&yaml).strategy_fn("own", |_| async {
        sleep(secs(10)).await;
        Answer::success("done")
    });
    let engine = engine.spawn().await.unwrap();
    let reports: Vec<_> = (1..=20)
        .map(|turn| {
            let engine = engine.clone();
            tokio::spawn(async move { engine.report(&id("s"), failure().with_turn(turn)).await })
        })
        .collect();
    sleep(secs(1)).await;
    // A session that is flooded can be seen and stopped all the same.
    assert_eq!(engine.status(&id("s")).await.unwrap().episode.unwrap().executions, 1);
    assert!(engine.cancel(&id("s")).await.unwrap());
    let (mut accepted, mut busy) = (0, 0);
    for report in reports {
        match report.await.unwrap() {
            Ok(_) => accepted += 1,
            Err(EngineError::Busy) => busy += 1,
            Err(other) => panic!("{other}"),
        }
    }
    assert_eq!((accepted, busy), (5, 15));
}

#[tokio::test(start_paused = true)]
async fn callers_that_left_make_room() {
    let yaml = format!("waiting_reports: 2\n{OWN}");
    let engine = builder(&yaml).strategy_fn("own", |_| std::future::pending()).spawn().await.unwrap();
    for _ in 0..20 {
        let left = tokio::time::timeout(secs(1), engine.report(&id("s"), failure())).await;
        assert!(left.is_err(), "nobody is turned away: {left:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn joiners_get_the_running_episodes_verdict() {
    let log = Log::default();
    let noted = log.clone();
    let engine = builder(OWN).strategy_fn("own", move |_| {
        noted.note("strategy");
        async {
            sleep(secs(10)).await;
            Answer::escalate("a person must look")
        }
    });
    let engine = engine.spawn().await.unwrap();
    let callers: Vec<_> = (0..8)
        .map(|_| {
            let engine = engine.clone();
            tokio::spawn(async move { engine.recover(&id("s"), failure(), None).await })
        })
        .collect();
    for caller in callers {
        let stopped = caller.await.unwrap().unwrap_err();
        assert!(matches!(stopped.verdict(), Some(Verdict::Escalated { .. })));
    }
    assert_eq!(log.all(), ["strategy"]);
}

#[tokio::test(start_paused = true)]
async fn reports_that_come_while_a_verdict_is_told_are_not_mixed_up() {
    let engine = builder(OWN).strategy_fn("own", |_| async { Answer::success("done") }).spawn().await.unwrap();
    let s = id("s");
    for _ in 0..50 {
        let (one, other) = tokio::join!(
            engine.recover(&s, failure().with_turn(1), None),
            engine.recover(&s, failure().with_turn(2), None)
        );
        let (one, other) = (one.unwrap().outcome.episode, other.unwrap().outcome.episode);
        assert_ne!(one, other, "each turn has its own episode");
        engine.reset(&id("s")).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_reset_ends_the_episode_and_fences_late_answers() {
    let log = Log::default();
    let noted = log.clone();
    let engine = builder(OWN).strategy_fn("own", move |_| {
        let log = noted.clone();
        async move {
            log.note("begun");
            sleep(secs(10)).await;
            log.note("ended");
            Answer::escalate("late")
        }
    });
    let engine = engine.spawn().await.unwrap();
    let waiting = {
        let engine = engine.clone();
        tokio::spawn(async move { engine.recover(&id("s"), failure(), None).await })
    };
    sleep(secs(1)).await;
    engine.reset(&id("s")).await.unwrap();
    let stopped = waiting.await.unwrap().unwrap_err();
    assert_eq!(stopped.verdict(), Some(&Verdict::Cancelled));
    let status = engine.status(&id("s")).await.unwrap();
    assert_eq!((status.kept, status.recoveries_in_window, status.strikes), (None, 0, 0));
    // The next episode is its own; what the first one's strategy was about to do is dropped.
    let next = engine.recover(&id("s"), failure(), None).await.unwrap_err();
    assert_eq!(next.outcome().unwrap().executions, 1);
    assert_eq!(log.all(), ["begun", "begun", "ended"]);

    let directive = {
        let retries = builder(RETRIES).spawn().await.unwrap();
        let directive = retries.report(&id("s"), failure()).await.unwrap();
        retries.reset(&id("s")).await.unwrap();
        retries.succeeded(&id("s"), directive.seq).await.unwrap()
    };
    assert_eq!(directive.verdict(), Some(&Verdict::Cancelled), "a redo of a forgotten episode");
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_turn_ends_its_own_episode_only() {
    let engine = open_loop().await;
    let mut stopped = backstop::Report::cancelled().with_turn(2);
    let first = engine.report(&id("s"), failure().with_turn(5)).await.unwrap();
    let told = engine.report(&id("s"), stopped.clone()).await.unwrap();
    assert_eq!(told.seq, first.seq, "an earlier turn's: out of date");
    stopped.turn = Some(5);
    let told = engine.report_redo(&id("s"), stopped, Some(first.seq)).await.unwrap();
    assert_eq!(told.verdict(), Some(&Verdict::Cancelled));
    assert_eq!(engine.status(&id("s")).await.unwrap().episode, None);
}

#[tokio::test(start_paused = true)]
async fn what_the_host_declines_is_followed_by_the_next_step() {
    let engine = builder("session_error: [compact, {strategy: retry, config: {max_retries: 1}}, abort]\n");
    let engine = engine.spawn().await.unwrap();
    let first = engine.report(&id("s"), failure()).await.unwrap();
    assert!(matches!(&first.action, Action::Redo { remedy: Some(remedy), .. } if remedy.name() == "compact"));
    let second = engine.declined(&id("s"), first.seq, "no compaction here").await.unwrap();
    assert!(matches!(&second.action, Action::Redo { remedy: None, .. }));
    let stale = engine.declined(&id("s"), first.seq, "once more").await.unwrap();
    assert_eq!(stale.seq, second.seq);
}

#[tokio::test(start_paused = true)]
async fn a_driver_is_heard_however_many_others_report() {
    let yaml = format!("waiting_reports: 2\n{RETRIES}");
    let engine = builder(&yaml).spawn().await.unwrap();
    let run = engine.session(id("s")).run_with(|turn| async move {
        sleep(secs(5)).await;
        if turn.redo < 3 { Err(crate::fixture::error()) } else { Ok(()) }
    });
    let run = tokio::spawn(run);
    sleep(secs(6)).await;
    let crowd: Vec<_> = (0..10)
        .map(|_| {
            let engine = engine.clone();
            tokio::spawn(async move { engine.recover(&id("s"), failure(), None).await })
        })
        .collect();
    let outcome = run.await.unwrap().unwrap().recovery.unwrap();
    assert_eq!((outcome.verdict.clone(), outcome.redos), (Verdict::Recovered(Proof::Verified), 3));
    let mut answered = 0;
    for one in crowd {
        answered += usize::from(one.await.unwrap().is_ok());
    }
    assert_eq!(answered, 2, "those who had room beside the driver are told the verdict");
}

#[tokio::test(start_paused = true)]
async fn the_deadline_ends_an_episode_that_is_parked_waiting_or_acting() {
    let engine = builder(OWN).strategy_fn("own", |_| std::future::pending()).spawn().await.unwrap();
    let started = tokio::time::Instant::now();
    let stopped = engine.session(id("s")).deadline(secs(3)).recover(failure(), None).await.unwrap_err();
    assert_eq!(stopped.verdict(), Some(&Verdict::Exhausted { cause: Cause::Deadline }));
    assert_eq!(started.elapsed(), secs(3));
}
