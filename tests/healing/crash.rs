//! A loop goes on after its process died, from the last checkpoint, with what it had spent.

use std::path::Path;
use std::sync::{Arc, Mutex};

use backstop::healing::{Ended, Failure, LoopEvent, SelfHealingLoop, Step};
use backstop::policy::budget::Allowance;
use backstop::{RecoveryEngine, Runner};

use crate::fixture::{id, unavailable};

/// Where the process dies.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Dies {
    Step(u32),
    Verifier(u32),
    Redo(u32),
    Backoff(u32),
}

async fn engine(dir: &Path) -> RecoveryEngine {
    RecoveryEngine::builder().state_dir(dir).runner(Runner::Dedicated).seed(7).spawn().await.unwrap()
}

/// Runs until it dies: the process's memory is gone, its files are as they were at that moment.
async fn life_that_ends(dir: &Path, dies: Dies, seen: &Arc<Mutex<Vec<u32>>>) {
    let engine = engine(dir).await;
    let healing = SelfHealingLoop::new(&engine, id(), vec![]);
    let mut events = healing.events();
    let hang = || std::future::pending::<()>();
    let run = healing.run_verified(
        async |iteration, done: &mut Vec<u32>, turn| {
            seen.lock().unwrap().push(iteration);
            done.push(iteration);
            match dies {
                Dies::Step(at) if at == iteration => hang().await,
                Dies::Redo(at) if at == iteration && turn.redo > 0 => hang().await,
                Dies::Redo(at) | Dies::Backoff(at) if at == iteration => return Err(unavailable()),
                _ => {}
            }
            Ok::<Step<()>, Failure>(Step::Continue)
        },
        async |iteration, _| {
            if dies == Dies::Verifier(iteration) {
                hang().await;
            }
            Ok(())
        },
    );
    let dead = async {
        let mut reached = 0;
        while let Some(event) = events.next().await {
            match (dies, event) {
                (Dies::Step(at) | Dies::Verifier(at), LoopEvent::Iteration { iteration }) if iteration == at => {
                    reached = 1;
                }
                (Dies::Redo(_), LoopEvent::Redo { .. }) | (Dies::Backoff(_), LoopEvent::Failed { .. }) => reached = 1,
                _ => {}
            }
            if reached == 1 {
                // The write-ahead record of the try is on disk before its step runs; let that settle.
                while seen.lock().unwrap().is_empty() {
                    tokio::task::yield_now().await;
                }
                tokio::time::sleep(std::time::Duration::from_millis(300)).await;
                return;
            }
        }
    };
    let copy = dir.with_extension("at-death");
    tokio::select! {
        _ = run => panic!("it was to die"),
        () = dead => copy_dir(dir, &copy),
    }
    engine.shutdown().await;
    std::fs::remove_dir_all(dir).unwrap();
    std::fs::rename(&copy, dir).unwrap();
}

fn copy_dir(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_dir(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_in_any_phase_goes_on_from_the_last_checkpoint() {
    for dies in [Dies::Step(1), Dies::Step(5), Dies::Verifier(4), Dies::Redo(5), Dies::Backoff(5)] {
        let place = tempfile::tempdir().unwrap();
        let dir = place.path().join("state");
        let seen = Arc::default();
        life_that_ends(&dir, dies, &seen).await;
        let tries_before = seen.lock().unwrap().len() as u32;

        let engine = engine(&dir).await;
        let healing = SelfHealingLoop::new(&engine, id(), vec![]).budget(Allowance::attempts(tries_before + 2));
        let mut events = healing.events();
        let report = healing
            .run(async |iteration, done: &mut Vec<u32>, _| {
                done.push(iteration);
                Ok::<Step<()>, Failure>(Step::Continue)
            })
            .await
            .unwrap();
        let (begun, checkpoint) = match dies {
            Dies::Step(1) => (1, "iter_1"),
            Dies::Verifier(_) => (4, "iter_3"),
            _ => (5, "iter_3"),
        };
        assert_eq!(events.next().await, Some(LoopEvent::Started { begun, from: Some(checkpoint.into()) }), "{dies:?}");
        assert!(report.resumed);
        // Iterations are counted over the crash; the lost ones leave no trace in the state.
        let kept: Vec<u32> = if checkpoint == "iter_1" { vec![] } else { vec![1, 2] };
        assert_eq!(report.state, [kept, vec![begun + 1, begun + 2]].concat(), "{dies:?}");
        assert!(matches!(report.ended, Ended::Budget(_)), "{dies:?}: {}", report.ended);
        assert_eq!(report.tries, tries_before + 2, "{dies:?}: what was spent stays spent");
        engine.shutdown().await;
    }
}

#[tokio::test]
async fn a_loop_that_is_done_begins_anew_and_a_fresh_one_forgets() {
    let place = tempfile::tempdir().unwrap();
    let engine = engine(place.path()).await;
    let count = || SelfHealingLoop::new(&engine, id(), 0).max_iterations(2);
    let step = async |_: u32, sum: &mut u32, _: &backstop::Turn| {
        *sum += 1;
        Ok::<Step<()>, Failure>(Step::Continue)
    };
    assert_eq!(count().run(step).await.unwrap().state, 2);
    let again = count().run(step).await.unwrap();
    assert_eq!((again.state, again.iterations, again.ended), (2, 2, Ended::MaxIterations), "no restart refills it");
    let more = count().max_iterations(3).run(step).await.unwrap();
    assert_eq!((more.state, more.resumed), (3, true));
    assert_eq!(count().fresh().run(step).await.unwrap().state, 2);
    engine.shutdown().await;
}
