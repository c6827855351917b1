//! Steps of chains that change how a loop goes on.

use backstop::healing::{Ended, Failure, OnSpiral, RecoveryExecutor, SelfHealingLoop, Step};
use backstop::policy::spiral::SpiralKind;
use backstop::{Report, SessionId, Verdict};

use crate::fixture::{builder, engine, failed, id, unavailable};

#[tokio::test(start_paused = true)]
async fn a_degraded_turn_is_refused_where_there_is_no_alternative() {
    let engine = engine("session_error: [degrade, escalate]").await;
    let mut degraded = 0;
    let report = SelfHealingLoop::new(&engine, id(), ())
        .run(async |_, (): &mut (), turn| {
            degraded += u32::from(turn.degraded);
            Err::<Step<()>, _>(unavailable())
        })
        .await
        .unwrap();
    assert_eq!(degraded, 0);
    assert!(matches!(report.ended.verdict(), Some(Verdict::Escalated { .. })), "{}", report.ended);
    assert_eq!(report.recoveries.successful, 0, "what was refused is no success");
}

#[tokio::test(start_paused = true)]
async fn degradations_are_capped() {
    let engine = engine("session_error: [degrade, escalate]\nmax_degrades: 2\nmax_same_failure: 99").await;
    let report = SelfHealingLoop::new(&engine, id(), 0)
        .with_alternative()
        .run(async |iteration, _: &mut u32, turn| match turn.degraded {
            true => Ok(Step::<()>::Continue),
            false => {
                Err(failed(&format!("503 Service Unavailable in part {}", "abcdef".split_at(iteration as usize).0)))
            }
        })
        .await
        .unwrap();
    assert_eq!(report.degraded.len(), 2);
    assert!(report.recoveries.fallback_used);
    assert!(matches!(report.ended.verdict(), Some(Verdict::Escalated { .. })), "{}", report.ended);
}

#[tokio::test(start_paused = true)]
async fn skips_mark_the_sub_task_and_are_capped() {
    let engine = engine("session_error: [skip, escalate]\nmax_skips: 2\nmax_same_failure: 99").await;
    let report = SelfHealingLoop::new(&engine, id(), vec![])
        .on_skip(|iteration, left_out: &mut Vec<u32>| left_out.push(iteration))
        .run(async |iteration, _, _| match iteration % 2 {
            0 => Err(unavailable()),
            _ => Ok(Step::<()>::Continue),
        })
        .await
        .unwrap();
    assert_eq!(report.state, [2, 4]);
    assert_eq!(report.skipped.iter().map(|left| left.iteration).collect::<Vec<_>>(), [2, 4]);
    assert!(matches!(report.ended.verdict(), Some(Verdict::Escalated { .. })), "{}", report.ended);
}

#[tokio::test(start_paused = true)]
async fn a_rollback_goes_to_the_named_checkpoint_and_is_really_applied() {
    let engine = engine("session_error: [{strategy: rollback, config: {checkpoint: safe}}, escalate]").await;
    let healing = SelfHealingLoop::new(&engine, id(), 0);
    let checkpoints = healing.checkpoints();
    let mut broke = false;
    let report = healing
        .run(async |iteration, sum: &mut u32, _| {
            if iteration == 2 {
                checkpoints.save("safe", sum).await?;
            }
            *sum += 10;
            if iteration == 5 && !std::mem::replace(&mut broke, true) {
                return Err(unavailable());
            }
            Ok(if iteration == 5 { Step::Done(()) } else { Step::Continue })
        })
        .await
        .unwrap();
    assert_eq!(report.state, 20, "10 from the checkpoint, and this iteration's");
    assert_eq!(report.recoveries.by_action["rollback"].successful, 1);
    let left: Vec<_> = checkpoints.list().await.unwrap().into_iter().map(|info| info.name.to_string()).collect();
    assert_eq!(left, ["safe"], "named ones stay when the work is done");
    assert_eq!(checkpoints.restore::<u32>("safe").await.unwrap(), 10);
}

#[tokio::test(start_paused = true)]
async fn a_rollback_to_nowhere_is_no_success() {
    let engine = engine("session_error: [{strategy: rollback, config: {checkpoint: never}}, escalate]").await;
    let report = SelfHealingLoop::new(&engine, id(), ())
        .run(async |_, (): &mut (), _| Err::<Step<()>, _>(unavailable()))
        .await
        .unwrap();
    assert_eq!((report.tries, report.recoveries.successful), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn names_of_checkpoints_are_data_and_those_of_the_loop_its_own() {
    let engine = engine("").await;
    let checkpoints = engine.checkpoints(&SessionId::new("../x").unwrap());
    for name in ["", " ", "iter_3", "backstop:progress", &"x".repeat(201)] {
        assert!(checkpoints.save(name, &1).await.is_err(), "{name}");
    }
    for number in 0..40 {
        checkpoints.save(&format!("../{number}"), &number).await.unwrap();
    }
    assert_eq!(checkpoints.list().await.unwrap().len(), 32, "the newest");
    assert!(checkpoints.restore::<u32>("../39").await.is_ok() && checkpoints.restore::<u32>("../1").await.is_err());
}

#[tokio::test(start_paused = true)]
async fn the_suggested_action_is_followed() {
    let engine = engine("session_error: [suggested]").await;
    let mut tries = 0;
    let report = SelfHealingLoop::new(&engine, id(), ())
        .run(async |_, (): &mut (), _| {
            tries += 1;
            if tries == 1 { Err(unavailable()) } else { Ok(Step::Done(())) }
        })
        .await
        .unwrap();
    assert!(report.is_done());
    assert_eq!(report.recoveries.by_action["suggested"].successful, 1);
}

/// Two failures take turns, each of a kind of its own.
fn in_turns(tries: u32) -> Failure {
    let words = ["the edit failed: oldString not found", "Unexpected token } in JSON at position 3"];
    Report::text(words[tries as usize % 2]).into()
}

const PATIENT: &str = "edit_error: [{strategy: remind_and_retry, config: {max_retries: 50}}]\n\
                       json_error: [{strategy: remind_and_retry, config: {max_retries: 50}}]\n\
                       max_total_attempts: 100";

#[tokio::test(start_paused = true)]
async fn a_spiral_stops_the_loop_and_the_host_is_called() {
    let (told, mut escalations) = tokio::sync::mpsc::unbounded_channel();
    let engine = builder(PATIENT).on_escalate(move |outcome| told.send(outcome).unwrap()).spawn().await.unwrap();
    let mut tries = 0;
    let report = SelfHealingLoop::new(&engine, id(), ())
        .run(async |_, (): &mut (), _| {
            tries += 1;
            Err::<Step<()>, _>(in_turns(tries))
        })
        .await
        .unwrap();
    let Ended::Spiral(spiral) = &report.ended else { panic!("{}", report.ended) };
    assert_eq!((spiral.kind, report.tries), (SpiralKind::Alternation, 5));
    let outcome = escalations.recv().await.unwrap();
    assert!(matches!(outcome.verdict, Verdict::Escalated { .. }));
}

#[tokio::test(start_paused = true)]
async fn a_host_can_bring_its_agent_back_on_course() {
    let engine = engine(PATIENT).await;
    let (mut tries, mut told) = (0, vec![]);
    let report = SelfHealingLoop::new(&engine, id(), ())
        .on_spiral(|_, ()| OnSpiral::Reanchor("Read the plan again.".into()))
        .run(async |_, (): &mut (), turn| {
            tries += 1;
            told.push(turn.injected_text());
            if turn.injected_text().contains("Read the plan again.") {
                return Ok(Step::Done(()));
            }
            Err(in_turns(tries))
        })
        .await
        .unwrap();
    assert!(report.is_done(), "{}: {told:?}", report.ended);
    assert_eq!((report.spirals.len(), report.tries), (1, 6));
}

#[tokio::test(start_paused = true)]
async fn single_recoveries_are_summed_up_by_action() {
    let engine = engine("session_error: [{strategy: retry, config: {max_retries: 1}}, suggested]").await;
    let mut executor = RecoveryExecutor::new(&engine);
    // Nobody redoes anything here: the strategies' word is all there is, and `retry` alone is none.
    let result = executor.execute(&id(), Report::text("503 Service Unavailable")).await;
    assert_eq!(result.success, matches!(&*result.message, "recovered (assumed)"), "{result:?}");
    assert!(result.attempts > 0 && !result.fallback_used);
    let refused = executor.execute(&id(), Report::text("No space left on device")).await;
    assert!(!refused.success);
    let summary = executor.summary();
    assert!(summary.total >= 1 && summary.by_action.contains_key("retry"), "{summary:?}");
    assert!((0.0..=1.0).contains(&summary.rate()));
}
