use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::actors::{EngineError, Outcome};
use crate::failure::{Domain, Kind, SessionId};
use crate::policy::Verdict;
use crate::policy::budget::Refusal;
use crate::policy::spiral::Spiral;

/// How a self-healing loop ended.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Ended {
    /// The step said that the work is done.
    Done,
    /// `max_iterations` were begun.
    MaxIterations,
    /// Recovery ended with a verdict: mostly a person must decide.
    Verdict(Arc<Outcome>),
    /// The loop went round without getting on; it is escalated.
    Spiral(Spiral),
    /// A budget has too little left for another try.
    Budget(Refusal),
    /// The engine took no request, at its own end.
    Engine(EngineError),
}

impl Ended {
    /// The verdict, where recovery ended the loop.
    pub fn verdict(&self) -> Option<&Verdict> {
        match self {
            Self::Verdict(outcome) => Some(&outcome.verdict),
            _ => None,
        }
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done => f.write_str("done"),
            Self::MaxIterations => f.write_str("stopped: the limit of iterations is reached"),
            Self::Verdict(outcome) => write!(f, "{}", outcome.verdict),
            Self::Spiral(spiral) => write!(f, "escalated: {spiral}"),
            Self::Budget(refusal) => write!(f, "stopped: {refusal}"),
            Self::Engine(error) => write!(f, "stopped: {error}"),
        }
    }
}

/// Recoveries by what was done.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RecoverySummary {
    /// Attempts that did something.
    pub total: u32,
    /// Those after which the turn worked.
    pub successful: u32,
    /// The same by strategy.
    pub by_action: BTreeMap<Arc<str>, ActionTally>,
    /// A degraded way or an omission was used.
    pub fallback_used: bool,
}

/// How often something was tried and helped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ActionTally {
    /// Attempts.
    pub total: u32,
    /// Those after which the turn worked.
    pub successful: u32,
}

impl ActionTally {
    /// The share that helped, from 0 to 1; 0 without attempts.
    pub fn rate(self) -> f64 {
        rate(self.successful, self.total)
    }
}

fn rate(successful: u32, total: u32) -> f64 {
    if total == 0 { 0.0 } else { f64::from(successful) / f64::from(total) }
}

impl RecoverySummary {
    /// The share of attempts after which the turn worked, from 0 to 1; 0 without attempts.
    pub fn rate(&self) -> f64 {
        rate(self.successful, self.total)
    }

    /// Counts one attempt.
    pub fn count(&mut self, action: &str, helped: bool) {
        let tally = self.by_action.entry(action.into()).or_default();
        for (total, successful) in [(&mut self.total, &mut self.successful), (&mut tally.total, &mut tally.successful)]
        {
            *total += 1;
            *successful += u32::from(helped);
        }
        self.fallback_used |= helped && matches!(action, "degrade" | "skip" | "fallback_model");
    }

    /// Counts an episode's attempts: the last one helped, if the turn then worked.
    pub(super) fn count_all(&mut self, outcome: &Outcome) {
        let did: Vec<_> = outcome.attempts.iter().filter(|attempt| &*attempt.result != "next_strategy").collect();
        for (place, attempt) in did.iter().enumerate() {
            let helped = outcome.verdict.is_recovered() && place + 1 == did.len();
            self.count(&attempt.strategy, helped);
        }
    }
}

/// Work that was done in the host's alternative way, or not at all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// The iteration.
    pub iteration: u32,
    /// The failure that led to it.
    pub kind: Option<Kind>,
}

/// Everything that a self-healing loop came to.
#[derive(Debug, Clone)]
pub struct LoopReport<S, O> {
    /// The loop.
    pub session: SessionId,
    /// How it ended.
    pub ended: Ended,
    /// What the last step returned, if it was done.
    pub output: Option<O>,
    /// The state as the last whole iteration left it, or a failed one that asked to keep it.
    pub state: S,
    /// Iterations begun, over restarts.
    pub iterations: u32,
    /// Iterations that worked, degraded ones included, over restarts.
    pub completed: u32,
    /// Tries of steps, over restarts.
    pub tries: u32,
    /// Failures by who was at fault.
    pub failures_by_domain: BTreeMap<Domain, u32>,
    /// Failures by kind.
    pub failures_by_kind: BTreeMap<Kind, u32>,
    /// Recoveries by action.
    pub recoveries: RecoverySummary,
    /// What was left out.
    pub skipped: Vec<LeftOut>,
    /// What was done in the host's alternative way.
    pub degraded: Vec<LeftOut>,
    /// Spirals that were seen; the last one may have ended the loop.
    pub spirals: Vec<Spiral>,
    /// It went on from a checkpoint of a process that ended.
    pub resumed: bool,
    /// Whether all progress and checkpoints reached their store.
    pub durable: bool,
}

impl<S, O> LoopReport<S, O> {
    /// Whether the work is done.
    pub fn is_done(&self) -> bool {
        self.ended == Ended::Done
    }

    /// Failures, all together.
    pub fn failures(&self) -> u32 {
        self.failures_by_kind.values().sum()
    }
}
