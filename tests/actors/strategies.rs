//! Own strategies that misbehave: they end neither chain nor process, and delay nobody (R9).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use backstop::actors::SystemClock;
use backstop::{Answer, Proof, RecoveryEngine, Runner, Verdict};
use tokio::time::{Instant, sleep};

use crate::fixture::{Log, builder, config, failure, id, secs};

const OWN: &str = "known_strategies: [own]\nsession_error: [own, {strategy: escalate, config: {message: help}}]\n";

fn result_of(outcome: &backstop::Outcome, nth: usize) -> (String, String) {
    let attempt = &outcome.attempts[nth];
    (attempt.strategy.to_string(), attempt.message.as_deref().unwrap_or_default().to_owned())
}

#[tokio::test(start_paused = true)]
async fn a_strategy_that_panics_is_a_step_that_did_not_help() {
    let engine = builder(OWN).strategy_fn("own", |_| async { panic!("no") }).spawn().await.unwrap();
    let stopped = engine.recover(&id("s"), failure(), None).await.unwrap_err();
    assert!(matches!(stopped.verdict(), Some(Verdict::Escalated { .. })), "{stopped}");
    assert_eq!(result_of(stopped.outcome().unwrap(), 0), ("own".into(), "`own` panicked".into()));
}

#[tokio::test(start_paused = true)]
async fn a_strategy_that_never_ends_is_dropped_at_its_limit() {
    for (timeout, limit) in [("", 120), ("timeout_ms: 5000", 5)] {
        let yaml =
            format!("known_strategies: [own]\nsession_error: [{{strategy: own, config: {{{timeout}}}}}, escalate]\n");
        let engine = builder(&yaml).strategy_fn("own", |_| std::future::pending()).spawn().await.unwrap();
        let started = Instant::now();
        let stopped = engine.recover(&id("s"), failure(), None).await.unwrap_err();
        assert_eq!(started.elapsed(), secs(limit));
        let (_, why) = result_of(stopped.outcome().unwrap(), 0);
        assert_eq!(why, "`own` did not answer within its time limit");
    }
}

/// Its name is the host's code as well.
struct Nameless;

impl backstop::RecoveryStrategy for Nameless {
    fn name(&self) -> &str {
        static REGISTERED: AtomicBool = AtomicBool::new(false);
        assert!(!REGISTERED.swap(true, Ordering::Relaxed), "asked once");
        "own"
    }

    fn execute<'a>(&'a self, _: &'a backstop::Attempt) -> backstop::strategy::Execution<'a> {
        Box::pin(async { Answer::success("done") })
    }
}

#[tokio::test(start_paused = true)]
async fn no_code_of_a_strategy_runs_inside_an_actor() {
    let engine = builder(OWN).strategy(Nameless).spawn().await.unwrap();
    assert!(engine.recover(&id("s"), failure(), None).await.is_ok());
}

/// Real threads: strategies that spin until they are let go.
#[tokio::test]
async fn strategies_that_spin_delay_no_other_session() {
    let free = Arc::new(AtomicBool::new(false));
    let (log, until) = (Log::default(), Arc::clone(&free));
    let own = {
        let log = log.clone();
        move |attempt: backstop::Attempt| {
            let (until, log) = (Arc::clone(&until), log.clone());
            async move {
                if attempt.session().as_str().starts_with("spins") {
                    while !until.load(Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                    log.note("spun");
                }
                sleep(Duration::from_millis(1)).await;
                Answer::success("done")
            }
        }
    };
    // A current-thread runtime: had a strategy run on it, nothing below would.
    let engine = builder(OWN).strategy_fn("own", own).runner(Runner::Dedicated).clock(SystemClock);
    let engine = engine.spawn().await.unwrap();
    let spinning: Vec<_> = (0..3)
        .map(|n| {
            let engine = engine.clone();
            tokio::spawn(async move { engine.recover(&id(&format!("spins-{n}")), failure(), None).await })
        })
        .collect();
    for n in 0..20 {
        let recovered = engine.recover(&id(&format!("quick-{n}")), failure(), None).await.unwrap();
        assert_eq!(recovered.proof, Proof::Assumed);
    }
    assert_eq!(log.all(), [""; 0], "they spin still");
    free.store(true, Ordering::Relaxed);
    for one in spinning {
        assert!(one.await.unwrap().is_ok());
    }
}

/// Real threads, blocked until they are let go.
#[tokio::test]
async fn threads_that_are_stuck_are_capped_and_then_the_chain_goes_on_without_the_strategy() {
    let (let_go, held) = std::sync::mpsc::channel::<()>();
    let held = Arc::new(std::sync::Mutex::new(held));
    let own = move |_| {
        let held = Arc::clone(&held);
        async move {
            let _ = held.lock().unwrap_or_else(std::sync::PoisonError::into_inner).recv();
            Answer::success("late")
        }
    };
    // Time enough for a thread to begin on any machine: one that has not is let go, and is not stuck.
    let yaml = "stuck_threads: 2\nstrategy_timeout_ms: 1000\nknown_strategies: [own]\nsession_error: [own, escalate]\n";
    let engine = builder(yaml).strategy_fn("own", own).runner(Runner::Dedicated).clock(SystemClock);
    let engine = engine.spawn().await.unwrap();
    let mut reasons = vec![];
    for n in 0..4 {
        let stopped = engine.recover(&id(&format!("s-{n}")), failure(), None).await.unwrap_err();
        assert!(matches!(stopped.verdict(), Some(Verdict::Escalated { .. })), "{stopped}");
        reasons.push(result_of(stopped.outcome().unwrap(), 0).1);
    }
    let late = "`own` did not answer within its time limit";
    assert_eq!(reasons, [late, late, "the runner is busy", "the runner is busy"]);
    assert_eq!(engine.stuck_threads(), 2);
    drop(let_go);
    while engine.stuck_threads() > 0 {
        sleep(Duration::from_millis(1)).await;
    }
    // What they answered late is nobody's.
    assert_eq!(engine.status(&id("s-0")).await.unwrap().episode, None);
    // With time enough for any machine.
    engine.reload(config(OWN)).await.unwrap();
    assert!(engine.recover(&id("after"), failure(), None).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_late_answer_of_a_cancelled_episode_is_nobodys() {
    let log = Log::default();
    let noted = log.clone();
    let own = move |_| {
        let log = noted.clone();
        async move {
            sleep(secs(10)).await;
            log.note("answered");
            Answer::escalate("late")
        }
    };
    let engine = builder(OWN).strategy_fn("own", own).spawn().await.unwrap();
    let first = {
        let engine = engine.clone();
        tokio::spawn(async move { engine.recover(&id("s"), failure(), None).await })
    };
    sleep(secs(9)).await;
    assert!(engine.cancel(&id("s")).await.unwrap());
    assert_eq!(first.await.unwrap().unwrap_err().verdict(), Some(&Verdict::Cancelled));
    let second = {
        let engine = engine.clone();
        tokio::spawn(async move { engine.recover(&id("s"), failure(), None).await })
    };
    sleep(secs(5)).await;
    assert!(engine.status(&id("s")).await.unwrap().episode.is_some());
    assert!(second.await.unwrap().is_err());
    assert_eq!(log.all(), ["answered"], "the cancelled one was dropped");
}

#[tokio::test(start_paused = true)]
async fn a_strategy_registered_at_run_time_is_known_to_the_next_configuration() {
    let engine = builder("").spawn().await.unwrap();
    engine.register_strategy_fn("own", |_| async { Answer::success("done") }).unwrap();
    assert!(engine.strategy_registry().known("own"));
    engine.reload(config(OWN)).await.unwrap();
    let outcome = engine.recover(&id("s"), failure(), None).await.unwrap().outcome;
    assert_eq!(&*outcome.attempts[0].strategy, "own");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_panics_or_hangs_is_a_remedy_that_failed() {
    use backstop::strategy::ClientCall;
    struct Bad(bool);
    impl backstop::SessionClient for Bad {
        fn compact<'a>(&'a self, _: &'a backstop::SessionId, _: &'a [Arc<str>]) -> ClientCall<'a, ()> {
            assert!(self.0, "a client that panics");
            Box::pin(std::future::pending())
        }
    }
    for hangs in [false, true] {
        let engine = builder("session_error: [compact, escalate]\n").spawn().await.unwrap();
        let session = engine.session(id("s")).client(Arc::new(Bad(hangs)));
        let stopped = session.recover(failure(), None).await.unwrap_err();
        assert!(matches!(stopped.verdict(), Some(Verdict::Escalated { .. })), "{stopped}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_of_a_client_that_takes_too_long_is_dropped() {
    use backstop::strategy::ClientCall;
    struct Slow(Log);
    impl backstop::SessionClient for Slow {
        fn can_redo(&self) -> bool {
            true
        }
        fn redo<'a>(&'a self, turn: &'a backstop::Turn) -> ClientCall<'a, ()> {
            let redo = turn.redo;
            Box::pin(async move {
                sleep(secs(if redo == 1 { 100 } else { 1 })).await;
                self.0.note(format!("redone {redo}"));
                Ok(())
            })
        }
    }
    let log = Log::default();
    let yaml = "turn_timeout_ms: 30000\nsession_error: [{strategy: retry, config: {max_retries: 3}}]\n";
    let engine: RecoveryEngine = builder(yaml).spawn().await.unwrap();
    let session = engine.session(id("s")).client(Arc::new(Slow(log.clone())));
    let outcome = session.recover(failure(), None).await.unwrap().outcome;
    assert_eq!((outcome.redos, outcome.verdict.clone()), (2, Verdict::Recovered(Proof::Verified)));
    sleep(secs(200)).await;
    assert_eq!(log.all(), ["redone 2"], "no turn goes on behind the next one");
}
