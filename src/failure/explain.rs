use std::sync::Arc;

use serde::Serialize;

use super::RecoveryError;

/// What detection says about a report.
#[derive(Debug, Clone, PartialEq)]
pub enum Detection {
    /// The turn failed, in this way.
    Failure(Box<RecoveryError>),
    /// A person or the host stopped the turn; it is never recovered (R1).
    Cancelled,
    /// Ordinary output or a success: nothing to recover (R1).
    NotAFailure,
}

impl Detection {
    /// The failure, if there is one.
    pub fn failure(&self) -> Option<&RecoveryError> {
        match self {
            Self::Failure(error) => Some(error),
            Self::Cancelled | Self::NotAFailure => None,
        }
    }

    /// The failure by value, if there is one.
    pub fn into_failure(self) -> Option<RecoveryError> {
        match self {
            Self::Failure(error) => Some(*error),
            Self::Cancelled | Self::NotAFailure => None,
        }
    }
}

/// A pattern that matched as well and lost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunnerUp {
    /// The pattern's name.
    pub pattern: Arc<str>,
    /// Why another one won.
    pub reason: String,
}

/// Why detection decided as it did (R15): what it saw, what matched and what lost.
///
/// All text in it is bounded and masked.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Explanation {
    /// The name of the pattern that won, or of the rule that found no failure.
    pub winner: Arc<str>,
    /// What else matched, in the order of evaluation.
    pub runners_up: Vec<RunnerUp>,
    /// The facts and texts that were looked at.
    pub evidence: Vec<String>,
}
