//! Own strategies of a simulated user: they answer anything, panic, hang, come late, and inject.

use std::sync::Arc;
use std::time::Duration;

use super::dice::Dice;
use super::failures::CANARY;
use super::world::World;
use crate::policy::{Answer, Remedy};
use crate::strategy::{Attempt, Execution, RecoveryStrategy};

/// How an own strategy behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// Any answer, at once or a little later.
    Wild,
    Panics,
    Hangs,
    /// Often later than its time limit.
    Late,
    /// Texts, some with a secret in them.
    Injects,
    /// The same answer for ever.
    RetriesForEver,
}

/// The own strategies by name.
pub(super) const OWN: &[(&str, Way)] = &[
    ("own_wild", Way::Wild),
    ("own_panics", Way::Panics),
    ("own_hangs", Way::Hangs),
    ("own_late", Way::Late),
    ("own_injects", Way::Injects),
    ("own_retries", Way::RetriesForEver),
];

pub(super) struct Own {
    pub name: &'static str,
    pub way: Way,
    pub world: Arc<World>,
}

impl RecoveryStrategy for Own {
    fn name(&self) -> &str {
        self.name
    }

    fn execute<'a>(&'a self, attempt: &'a Attempt) -> Execution<'a> {
        Box::pin(async move {
            self.world.executed(attempt.session(), attempt.seq(), self.name);
            // Not the attempt's own seed alone: a second run of one attempt need not end alike.
            let mut dice = Dice::new(attempt.seed(), self.world.now().as_millis());
            match self.way {
                Way::Wild => {
                    if dice.chance(50) {
                        tokio::time::sleep(dice.millis(0, 3_000)).await;
                    }
                }
                Way::Panics if dice.chance(70) => panic!("{}", super::SCRIPTED_PANIC),
                Way::Hangs if dice.chance(70) => std::future::pending().await,
                Way::Late => tokio::time::sleep(dice.millis(0, 60_000)).await,
                Way::Injects => {
                    attempt.inject(format!("the failure was: {}", attempt.error().message));
                    attempt.inject("read the file again\u{202e} first");
                }
                Way::RetriesForEver => return Answer::retry(dice.millis(0, 500), "once more"),
                Way::Panics | Way::Hangs => {}
            }
            anything(&mut dice)
        })
    }
}

/// What nobody would answer, and what everybody would.
fn anything(dice: &mut Dice) -> Answer {
    let text = match dice.below(3) {
        0 => format!("with token sk-ant-api03-{CANARY}0123456789abcdef in it"),
        1 => "x".repeat(5_000),
        _ => "it seemed right".to_owned(),
    };
    let remedy = dice.chance(60).then(|| remedy(dice));
    match dice.below(10) {
        0..=2 => Answer::Success { message: text.into(), remedy },
        3..=5 => {
            let delay = *dice.pick(&[Duration::ZERO, Duration::from_secs(2), Duration::from_secs(90), Duration::MAX]);
            Answer::Retry { delay, reason: text.into(), remedy }
        }
        6..=7 => Answer::next_strategy(text),
        8 => Answer::abort(text),
        _ => Answer::escalate(text),
    }
}

fn remedy(dice: &mut Dice) -> Remedy {
    match dice.below(8) {
        0 => Remedy::Compact { preserve: vec![] },
        1 => {
            Remedy::Truncate { ratio: *dice.pick(&[0.5, 0.0, -1.0, f64::NAN, f64::INFINITY, 1.0]), min_output_size: 0 }
        }
        2 => Remedy::Summarize { model: None },
        3 => Remedy::SwitchModel { model: "acme/other".into() },
        4 => Remedy::SwitchModel { model: "".into() },
        5 => Remedy::Rollback { checkpoint: Some("last".into()) },
        6 => Remedy::Degrade,
        _ => Remedy::Skip,
    }
}
