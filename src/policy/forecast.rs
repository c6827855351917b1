//! What recovery would do about a failure that comes back after every redo: the worst case.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use super::machine::{Carrier, Command, Episode, Event, Execute, Fence, Moment, NoteKind, Opening, Plan, Redoer};
use super::{Answer, Chain, ChainKey, Choice, Origin, RecoveryConfig, Step, Verdict};
use crate::failure::{RecoveryError, SessionId, Timestamp, TokenCounts};

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
    pub const MAX_EXECUTIONS: u32 = 10_000;

    /// Works the forecast out. `ask` answers for a strategy, `None` for one it does not know.
    ///
    /// The failure's own time counts as now, and `deadline` from there. For the built-in strategies
    /// use [`strategy::forecast`](crate::strategy::forecast).
    pub fn of(
        config: &RecoveryConfig,
        error: &RecoveryError,
        deadline: Option<Duration>,
        mut ask: impl FnMut(&Execute, &Episode, Luck) -> Option<Answer>,
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
        let step = |step: &Step| ForecastStep {
            step: step.clone(),
            skipped_because: None,
            attempts: vec![],
            unknown: false,
        };
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

fn run(
    config: &RecoveryConfig,
    error: &RecoveryError,
    deadline: Option<Duration>,
    luck: Luck,
    ask: &mut dyn FnMut(&Execute, &Episode, Luck) -> Option<Answer>,
) -> Forecast {
    let mut forecast = match config.choose(error) {
        Choice::Chain { chain, because } => Forecast::with_chain(&chain, because.to_string()),
        Choice::Escalate { reason } => return Forecast::without_chain(Verdict::Escalated { reason: reason.into() }),
        Choice::Unhandled(why) => return Forecast::without_chain(Verdict::Unhandled(why)),
    };
    let mut now = error.timestamp;
    // Every lane is open, so none is asked.
    let mut error = RecoveryError { lane: None, ..error.clone() };
    let plan = Plan { config: Arc::new(config.clone()), computing: Arc::default() };
    let opening = Opening {
        episode: 1,
        error: Arc::new(error.clone()),
        redoer: Redoer::Caller,
        turn: None,
        deadline: deadline.map(|span| now + span),
        after: Fence::default(),
    };
    let (mut episode, commands) = match Episode::start(nobody(), opening, &plan, Moment { now, seed: 0 }) {
        Ok(started) => started,
        Err(verdict) => return Forecast { verdict, ..forecast },
    };
    let mut due = VecDeque::from(commands);
    let mut asked = 0;
    loop {
        for note in episode.take_notes() {
            forecast.note(note.what, &mut asked);
        }
        let Some(command) = due.pop_front() else { break };
        if episode.executions() > Forecast::MAX_EXECUTIONS {
            forecast.complete = false;
            break;
        }
        let event = match command {
            Command::Persist { seq, record } => Event::Persisted { seq, record },
            Command::Execute(execute) => {
                let answer = ask(&execute, &episode, luck).unwrap_or_else(|| {
                    if let Some(step) = forecast.steps.get_mut(execute.step) {
                        step.unknown = true;
                    }
                    Answer::next_strategy("an own strategy, not asked")
                });
                Event::Answered { seq: execute.seq, answer, injections: vec![] }
            }
            Command::Wait { until, epoch } => {
                now = now.max(until);
                Event::DelayElapsed { epoch }
            }
            Command::AskLane { epoch, .. } => Event::LaneOpen { epoch },
            // On the turn, so that the redo says which model it uses.
            Command::Carry { seq, .. } => Event::Carried { seq, by: Carrier::Turn(None) },
            Command::Redo(redo) => {
                error.timestamp = now;
                error.details.tokens = TokenCounts::default();
                error.model = redo.turn.model.or(error.model);
                Event::Reported { seq: redo.turn.seq, error: Some(Arc::new(error.clone())) }
            }
            Command::Finish(verdict) => {
                forecast.verdict = verdict;
                break;
            }
        };
        due.extend(episode.on(event, &plan, now));
    }
    forecast.executions = episode.executions();
    forecast.redos = episode.redos();
    forecast
}

fn nobody() -> SessionId {
    SessionId::new("forecast").expect("the text is not empty")
}

#[cfg(test)]
#[path = "forecast_tests.rs"]
mod tests;
