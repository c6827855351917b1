//! An iteration is whole or has not happened.

use std::time::Duration;

use backstop::healing::{Ended, Failure, LoopEvent, SelfHealingLoop, Step};
use backstop::{Kind, RecoveryEngine, Verdict};

use crate::fixture::{engine, failed, id, unavailable};

#[tokio::test(start_paused = true)]
async fn a_redo_starts_from_the_state_before_the_failed_iteration() {
    let engine = engine("").await;
    let mut tries = 0;
    let report = SelfHealingLoop::new(&engine, id(), vec![])
        .run(async |iteration, done: &mut Vec<u32>, _| {
            tries += 1;
            done.push(iteration);
            if iteration == 2 && tries < 4 {
                return Err(unavailable());
            }
            Ok(if iteration < 3 { Step::Continue } else { Step::Done(()) })
        })
        .await
        .unwrap();
    assert_eq!(report.state, [1, 2, 3], "nothing is there twice");
    assert_eq!((report.ended.clone(), report.iterations, report.tries), (Ended::Done, 3, 5));
    assert_eq!((report.failures(), report.failures_by_kind[&Kind::ServiceUnavailable]), (2, 2));
    let retry = report.recoveries.by_action["retry"];
    assert_eq!((retry.total, retry.successful, report.recoveries.rate()), (2, 1, 0.5));
}

#[tokio::test(start_paused = true)]
async fn a_step_may_ask_to_keep_what_it_did() {
    let engine = engine("").await;
    let report = SelfHealingLoop::new(&engine, id(), 0)
        .run(async |_, halves: &mut u32, _| {
            *halves += 1;
            if *halves == 1 { Err(unavailable().keeping_state()) } else { Ok(Step::Done(())) }
        })
        .await
        .unwrap();
    assert_eq!(report.state, 2);
}

#[tokio::test(start_paused = true)]
async fn what_a_failed_last_iteration_did_is_taken_back() {
    let engine = engine("").await;
    let report = SelfHealingLoop::new(&engine, id(), 0)
        .run(async |iteration, sum: &mut u32, _| {
            *sum += 1;
            if iteration == 2 { Err::<Step<()>, _>(failed("EACCES: permission denied")) } else { Ok(Step::Continue) }
        })
        .await
        .unwrap();
    assert!(matches!(report.ended.verdict(), Some(Verdict::Escalated { .. })), "{}", report.ended);
    assert_eq!((report.state, report.completed), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_verifiers_no_is_reminded_then_rolled_back_then_escalated() {
    let engine = engine("").await;
    let mut told = vec![];
    let report = SelfHealingLoop::new(&engine, id(), 0)
        .run_verified(
            async |_, sum: &mut u32, turn| {
                told.push(turn.injected_text());
                *sum += 1;
                Ok::<Step<()>, Failure>(Step::Continue)
            },
            async |iteration, _| match iteration {
                1..4 => Ok(()),
                _ => Err(Failure::said_no("2 of 9 tests failed: parse_empty")),
            },
        )
        .await
        .unwrap();
    assert!(matches!(report.ended.verdict(), Some(Verdict::Escalated { .. })), "{}", report.ended);
    assert_eq!(report.failures_by_domain[&backstop::failure::Domain::Verifier], 4);
    let actions: Vec<&str> = report.recoveries.by_action.keys().map(|name| &**name).collect();
    assert_eq!(actions, ["escalate", "remind_and_retry", "rollback"]);
    assert!(told.iter().any(|text| text.contains("taken back") && text.contains("parse_empty")), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn a_verifier_that_contradicts_itself_is_a_persons_business() {
    let engine = engine("").await;
    let report = SelfHealingLoop::new(&engine, id(), 0)
        .run_verified(
            async |_, _: &mut u32, _| Ok::<Step<()>, Failure>(Step::Continue),
            async |_, _| Err(Failure::said_no("the verifier contradicts itself: contradictory requirements")),
        )
        .await
        .unwrap();
    assert!(matches!(report.ended.verdict(), Some(Verdict::Escalated { .. })), "{}", report.ended);
    assert_eq!(report.tries, 1);
    assert_eq!(report.failures_by_kind.keys().collect::<Vec<_>>(), [&Kind::VerifierContradiction]);
}

#[tokio::test(start_paused = true)]
async fn a_loop_is_bounded_and_says_what_happens() {
    let engine = engine("").await;
    let healing = SelfHealingLoop::new(&engine, id(), 0).max_iterations(7);
    let mut events = healing.events();
    let report = healing.run(async |_, _: &mut u32, _| Ok::<Step<()>, Failure>(Step::Continue)).await.unwrap();
    assert_eq!((report.ended.clone(), report.iterations), (Ended::MaxIterations, 7));
    let (mut iterations, mut kept) = (0, vec![]);
    while let Some(event) = events.next().await {
        match event {
            LoopEvent::Iteration { .. } => iterations += 1,
            LoopEvent::Checkpoint { name } => kept.push(name.to_string()),
            _ => {}
        }
    }
    assert_eq!(iterations, 7);
    assert_eq!(kept, ["iter_1", "iter_3", "iter_6", "iter_7"], "before the first, every third, and where it stopped");
}

async fn waits(engine: &RecoveryEngine) -> Vec<u64> {
    let (mut at, start) = (vec![], tokio::time::Instant::now());
    let report = SelfHealingLoop::new(engine, id(), ())
        .run(async |_, (): &mut (), _| {
            at.push(start.elapsed().as_secs());
            Err::<Step<()>, _>(unavailable())
        })
        .await
        .unwrap();
    assert!(
        matches!(report.ended.verdict(), Some(Verdict::Escalated { .. })),
        "abort is read as escalate: {}",
        report.ended
    );
    at
}

#[tokio::test(start_paused = true)]
async fn retries_wait_two_four_and_eight_seconds() {
    let at = waits(&engine("").await).await;
    assert_eq!(at.len(), 4, "three redos");
    let gaps: Vec<u64> = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
    // Jitter takes up to half of each.
    assert!(gaps.iter().zip([2, 4, 8]).all(|(gap, most)| *gap <= most && *gap >= most / 2), "{gaps:?}");
}

#[tokio::test(start_paused = true)]
async fn a_step_out_of_time_is_a_time_out_and_leaves_nothing_behind() {
    let engine = engine("").await;
    let mut slow = true;
    let report = SelfHealingLoop::new(&engine, id(), 0)
        .step_time(Duration::from_secs(10))
        .run(async |_, sum: &mut u32, _| {
            *sum += 1;
            if std::mem::take(&mut slow) {
                tokio::time::sleep(Duration::from_secs(60)).await;
            }
            Ok::<_, Failure>(Step::Done(()))
        })
        .await
        .unwrap();
    assert_eq!((report.state, report.failures_by_kind[&Kind::Timeout]), (1, 1));
}
