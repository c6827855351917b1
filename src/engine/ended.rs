use std::fmt;
use std::sync::Arc;

use crate::actors::{EngineError, Outcome};
use crate::policy::{Proof, Verdict};

/// A turn that worked, at once or after recovery.
#[derive(Debug, Clone)]
pub struct Done<T> {
    /// What the turn returned.
    pub value: T,
    /// The episode, if the turn failed first.
    pub recovery: Option<Arc<Outcome>>,
}

/// A recovery without a turn of the caller's own.
#[derive(Debug, Clone)]
pub struct Recovered {
    /// How far it is known to be one.
    pub proof: Proof,
    /// The episode.
    pub outcome: Arc<Outcome>,
}

/// Why recovery stopped without the turn having worked.
#[derive(Debug, Clone)]
pub struct Stopped<E> {
    /// The turn's last error, if it has one.
    pub error: Option<E>,
    /// What stopped it.
    pub cause: StopCause,
}

/// What stopped a recovery.
#[derive(Debug, Clone)]
pub enum StopCause {
    /// An episode's verdict, or the reason why none was opened.
    Verdict(Arc<Outcome>),
    /// The engine took no request; no episode changed.
    Engine(EngineError),
}

impl<E> Stopped<E> {
    /// The verdict, unless the engine itself refused.
    pub fn verdict(&self) -> Option<&Verdict> {
        self.outcome().map(|outcome| &outcome.verdict)
    }

    /// The episode with everything that explains it, unless the engine itself refused.
    pub fn outcome(&self) -> Option<&Arc<Outcome>> {
        match &self.cause {
            StopCause::Verdict(outcome) => Some(outcome),
            StopCause::Engine(_) => None,
        }
    }
}

impl From<Arc<Outcome>> for StopCause {
    fn from(outcome: Arc<Outcome>) -> Self {
        Self::Verdict(outcome)
    }
}

impl From<EngineError> for StopCause {
    fn from(error: EngineError) -> Self {
        Self::Engine(error)
    }
}

impl<E> fmt::Display for Stopped<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cause {
            StopCause::Verdict(outcome) => write!(f, "recovery ended: {}", outcome.verdict),
            StopCause::Engine(error) => write!(f, "recovery was refused: {error}"),
        }
    }
}

impl<E: std::error::Error + 'static> std::error::Error for Stopped<E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match (&self.error, &self.cause) {
            (Some(error), _) => Some(error),
            (None, StopCause::Engine(error)) => Some(error),
            (None, StopCause::Verdict(_)) => None,
        }
    }
}
