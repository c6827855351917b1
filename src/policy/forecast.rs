//! What recovery would do about a failure that comes back after every redo: the worst case.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use super::machine::{Carrier, Execute, Hands, Moment, NoteKind, Plan, RecoveryChainExecutor};
use super::{Answer, Chain, ChainKey, Choice, Origin, RecoveryConfig, Remedy, Step, Turn, Verdict};
use crate::failure::{RecoveryError, SessionId, TokenCounts};

/// The shortest and the longest a wait can be; they differ where it is jittered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Span {
    /// With the most helpful jitter.
    #[serde(rename = "shortest_ms", with = "super::machine::millis")]
    pub shortest: Duration,
    /// With the least helpful jitter.
    #[serde(rename = "longest_ms", with = "super::machine::millis")]
    pub longest: Duration,
}

/// Which end of a jittered wait a strategy is to answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Luck {
    /// The shortest.
    Best,
    /// The longest: the wait without jitter.
    Worst,
}

/// What would be done about a failure if every redo failed with it again, a stated wait included.
///
/// The real chain machine is run against strategies that are asked as they would be, so limits,
/// refused waits and passed-over steps come out as they would in earnest. The client carries every
/// remedy out, lanes are open, and token numbers are not stated again, so that no cut ends early.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Forecast {
    /// The chain that was chosen; `None` when none is run.
    pub chain: Option<ForecastChain>,
    /// Its steps.
    pub steps: Vec<ForecastStep>,
    /// How it would end.
    pub verdict: Verdict,
    /// Executions of strategies.
    pub executions: u32,
    /// Redos of the turn.
    pub redos: u32,
    /// All waits together. The redone turns themselves and own strategies take their time besides.
    pub waiting: Span,
    /// What limits said on the way.
    pub remarks: Vec<Arc<str>>,
    /// `false` when it was given up after [`Forecast::MAX_EXECUTIONS`]: times and counts go on.
    pub complete: bool,
}

/// A chosen chain.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ForecastChain {
    /// What it is for.
    pub key: ChainKey,
    /// The line that wrote it.
    pub origin: Origin,
    /// Which rule chose it.
    pub because: String,
}

/// One step of the chain.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ForecastStep {
    /// The strategy and its settings.
    #[serde(flatten)]
    pub step: Step,
    /// Why it is passed over (R17).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skipped_because: Option<Arc<str>>,
    /// What it would answer, attempt for attempt; empty if it is not reached.
    pub attempts: Vec<ForecastAttempt>,
    /// An own strategy: it answers for itself, and here counts as `next_strategy`.
    pub unknown: bool,
}

/// One attempt at a step.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ForecastAttempt {
    /// Its number within the step, from 1.
    pub attempt: u32,
    /// The answer's word.
    pub status: Arc<str>,
    /// The answer's message or reason.
    pub text: Arc<str>,
    /// The wait before the redo; zero where there is none.
    pub delay: Span,
    /// Where the wait comes from, or which bound forbids it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub because: Option<Arc<str>>,
    /// The wait would not be begun: next step (R4).
    pub refused: bool,
}

impl Forecast {
    /// The longest forecast; an episode with more executions is no longer told apart from endless.
    pub const MAX_EXECUTIONS: u32 = 1_000;

    /// Works the forecast out. `ask` answers for a strategy, `None` for one it does not know.
    ///
    /// The failure's own time counts as now, and `deadline` from there. For the built-in strategies
    /// use [`strategy::forecast`](crate::strategy::forecast).
    pub fn of(
        config: &RecoveryConfig,
        error: &RecoveryError,
        deadline: Option<Duration>,
        mut ask: impl FnMut(&Execute, &Arc<RecoveryError>, Luck) -> Option<Answer>,
    ) -> Self {
        let mut worst = run(config, error, deadline, Luck::Worst, &mut ask);
        let best = run(config, error, deadline, Luck::Best, &mut ask);
        for (step, lucky) in worst.steps.iter_mut().zip(&best.steps) {
            for (attempt, lucky) in step.attempts.iter_mut().zip(&lucky.attempts) {
                attempt.delay.shortest = lucky.delay.longest.min(attempt.delay.longest);
            }
        }
        let begun = || worst.steps.iter().flat_map(|step| &step.attempts).filter(|attempt| !attempt.refused);
        worst.waiting.shortest = begun().map(|attempt| attempt.delay.shortest).sum();
        worst.waiting.longest = begun().map(|attempt| attempt.delay.longest).sum();
        worst
    }

    fn without_chain(verdict: Verdict) -> Self {
        Self {
            chain: None,
            steps: vec![],
            verdict,
            executions: 0,
            redos: 0,
            waiting: Span::default(),
            remarks: vec![],
            complete: true,
        }
    }

    fn with_chain(chain: &Chain, because: String) -> Self {
        let step =
            |step: &Step| ForecastStep { step: step.clone(), skipped_because: None, attempts: vec![], unknown: false };
        Self {
            chain: Some(ForecastChain { key: chain.key.clone(), origin: chain.origin.clone(), because }),
            steps: chain.steps.iter().map(step).collect(),
            ..Self::without_chain(Verdict::Cancelled)
        }
    }

    /// Notes what the machine decided; `step` is the one that was asked last.
    fn note(&mut self, what: NoteKind, asked: &mut usize) {
        match what {
            NoteKind::StepSkipped { step, reason, .. } => {
                if let Some(step) = self.steps.get_mut(step) {
                    step.skipped_because = Some(reason);
                }
            }
            NoteKind::Answered { step, attempt, status, text, .. } => {
                *asked = step;
                if let Some(step) = self.steps.get_mut(step) {
                    let delay = Span::default();
                    step.attempts.push(ForecastAttempt { attempt, status, text, delay, because: None, refused: false });
                }
            }
            NoteKind::Waits { delay, because } => self.waits(*asked, delay, because, false),
            NoteKind::WaitRefused { delay, because } => self.waits(*asked, delay, because, true),
            NoteKind::Remark { text } => self.remarks.push(text),
            _ => {}
        }
    }

    fn waits(&mut self, step: usize, delay: Duration, because: Arc<str>, refused: bool) {
        if let Some(attempt) = self.steps.get_mut(step).and_then(|step| step.attempts.last_mut()) {
            attempt.delay = Span { shortest: delay, longest: delay };
            (attempt.because, attempt.refused) = (Some(because), refused);
        }
    }
}

/// Answers for a strategy, or does not know it.
type Ask<'a> = dyn FnMut(&Execute, &Arc<RecoveryError>, Luck) -> Option<Answer> + 'a;

/// Hands that do nothing in the world: every remedy is carried out, and every redo fails again.
struct Unlucky<'a, 'b> {
    ask: &'a mut Ask<'b>,
    luck: Luck,
    error: RecoveryError,
    redos: u32,
    unknown: BTreeSet<usize>,
}

impl Hands for Unlucky<'_, '_> {
    fn execute(&mut self, attempt: &Execute, error: &RecoveryError) -> Answer {
        (self.ask)(attempt, &Arc::new(error.clone()), self.luck).unwrap_or_else(|| {
            self.unknown.insert(attempt.step);
            Answer::next_strategy("an own strategy, not asked")
        })
    }

    fn sleep(&mut self, delay: Duration) {
        self.error.timestamp = self.error.timestamp + delay;
    }

    fn carry(&mut self, _: &Remedy) -> Result<Carrier, Arc<str>> {
        // On the turn, so that the redo says which model it uses.
        Ok(Carrier::Turn(None))
    }

    fn can_redo(&self) -> bool {
        true
    }

    fn redo(&mut self, turn: &Turn) -> Result<(), Option<Arc<RecoveryError>>> {
        self.redos += 1;
        self.error.details.tokens = TokenCounts::default();
        self.error.model = turn.model.clone().or(self.error.model.take());
        Err(Some(Arc::new(self.error.clone())))
    }
}

fn run(
    config: &RecoveryConfig,
    error: &RecoveryError,
    deadline: Option<Duration>,
    luck: Luck,
    ask: &mut Ask<'_>,
) -> Forecast {
    let mut forecast = match config.choose(error) {
        Choice::Chain { chain, because } => Forecast::with_chain(&chain, because.to_string()),
        Choice::Escalate { reason } => return Forecast::without_chain(Verdict::Escalated { reason: reason.into() }),
        Choice::Unhandled(why) => return Forecast::without_chain(Verdict::Unhandled(why)),
    };
    let now = error.timestamp;
    let mut hands = Unlucky { ask, luck, error: error.clone(), redos: 0, unknown: BTreeSet::new() };
    let mut bounded = config.clone();
    bounded.limits.max_total_attempts = config.limits().max_total_attempts.min(Forecast::MAX_EXECUTIONS);
    let plan = Plan { config: Arc::new(bounded), computing: Arc::default() };
    let mut executor = RecoveryChainExecutor::new(plan);
    if let Some(span) = deadline {
        executor = executor.with_deadline(now + span);
    }
    let session = SessionId::new("forecast").expect("the text is not empty");
    let outcome = executor.run(session, Arc::new(error.clone()), Moment { now, seed: 0 }, &mut hands);
    let mut asked = 0;
    for note in outcome.notes {
        forecast.note(note.what, &mut asked);
    }
    for step in hands.unknown {
        if let Some(step) = forecast.steps.get_mut(step) {
            step.unknown = true;
        }
    }
    forecast.complete =
        outcome.executions < Forecast::MAX_EXECUTIONS.min(config.limits().max_total_attempts.saturating_add(1));
    (forecast.verdict, forecast.executions, forecast.redos) = (outcome.verdict, outcome.executions, hands.redos);
    forecast
}
