//! No loop spends more than it and everything around it may.

use std::time::Duration;

use backstop::healing::{Budget, Ended, Failure, SelfHealingLoop, Step};
use backstop::policy::budget::{Allowance, Refusal};
use backstop::{Cause, SessionId, Verdict};

use crate::fixture::{engine, id, unavailable};

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[tokio::test(start_paused = true)]
async fn tries_are_spent_by_redos_too() {
    let engine = engine("").await;
    let report = SelfHealingLoop::new(&engine, id(), ())
        .budget(Allowance::attempts(3))
        .run(async |_, (): &mut (), turn| if turn.redo == 0 { Err(unavailable()) } else { Ok(Step::<()>::Continue) })
        .await
        .unwrap();
    assert_eq!(report.ended, Ended::Budget(Refusal::Attempts { budget: "session".into(), allowed: 3 }));
    assert_eq!((report.tries, report.completed), (3, 1));
}

#[tokio::test(start_paused = true)]
async fn a_step_that_cannot_finish_is_not_begun_and_the_report_says_why() {
    let engine = engine("").await;
    let report = SelfHealingLoop::new(&engine, id(), ())
        .budget(Allowance::time(secs(100)))
        .step_time(secs(40))
        .run(async |_, (): &mut (), _| {
            tokio::time::sleep(secs(35)).await;
            Ok::<Step<()>, Failure>(Step::Continue)
        })
        .await
        .unwrap();
    assert_eq!(report.completed, 2);
    assert_eq!(report.ended.to_string(), "stopped: the step needs 40s and the session budget has 30s left");
}

#[tokio::test(start_paused = true)]
async fn the_deadline_is_handed_down_to_recovery() {
    let engine = engine("").await;
    let started = tokio::time::Instant::now();
    let report = SelfHealingLoop::new(&engine, id(), 0)
        .iteration_budget(Allowance::time(secs(5)))
        .run(async |_, sum: &mut u32, _| {
            *sum += 1;
            tokio::time::sleep(secs(60)).await;
            Ok::<Step<()>, Failure>(Step::Continue)
        })
        .await
        .unwrap();
    assert_eq!(report.ended.verdict(), Some(&Verdict::Exhausted { cause: Cause::Deadline }));
    assert_eq!((started.elapsed(), report.state), (secs(5), 0), "what was half done is taken back");
}

#[tokio::test(start_paused = true)]
async fn children_at_once_never_spend_more_than_their_parent_may() {
    let engine = engine("max_same_failure: 999").await;
    let parent = Budget::of(&engine, "parent", Allowance::attempts(25).within(secs(600)));
    let local = tokio::task::LocalSet::new();
    let children = (0..8).map(|child| {
        let healing = SelfHealingLoop::new(&engine, SessionId::new(format!("child-{child}")).unwrap(), ())
            .budget(Allowance::attempts(10))
            .inside(&parent);
        local.spawn_local(async move {
            let run = healing.run(async |iteration, (): &mut (), turn| {
                tokio::time::sleep(Duration::from_millis(u64::from(iteration * 7 + turn.redo))).await;
                if turn.redo == 0 && iteration % 3 == 0 { Err(unavailable()) } else { Ok(Step::<()>::Continue) }
            });
            run.await.unwrap()
        })
    });
    let children: Vec<_> = children.collect();
    local.await;
    let mut tries = 0;
    for child in children {
        let report = child.await.unwrap();
        assert!(matches!(report.ended, Ended::Budget(_)), "{}", report.ended);
        assert!(report.tries <= 10);
        tries += report.tries;
    }
    assert_eq!((tries, parent.spent().attempts), (25, 25));
}
