use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// How an episode ended, or why none began.
///
/// ```
/// use backstop::{Proof, Verdict};
///
/// assert!(Verdict::Recovered(Proof::Verified).is_recovered());
/// assert_eq!(Verdict::Cancelled.name(), "cancelled");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The turn works again.
    Recovered(Proof),
    /// A strategy gave up.
    Aborted {
        /// The strategy's words.
        reason: Arc<str>,
    },
    /// Nothing is left to try.
    Exhausted {
        /// What ran out.
        cause: Cause,
    },
    /// A person must decide.
    Escalated {
        /// Why.
        reason: Arc<str>,
    },
    /// A person or the host stopped it.
    Cancelled,
    /// No episode began.
    Unhandled(Unhandled),
}

/// How far a recovery is known to be one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Proof {
    /// The redone turn was seen to work.
    Verified,
    /// Nobody could look: a strategy said so, or no failure came for long enough.
    Assumed,
}

/// What ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The chain's steps.
    Chain,
    /// `max_total_attempts`.
    Attempts,
    /// The time until the deadline.
    Deadline,
}

/// Why no episode began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unhandled {
    /// The value is no failure that any pattern knows.
    NotDetected,
    /// The failure's category has no chain.
    NoChain,
    /// Recovery, or this chain, is switched off.
    Disabled,
}

impl Verdict {
    /// Whether the session goes on.
    pub const fn is_recovered(&self) -> bool {
        matches!(self, Self::Recovered(_))
    }

    /// The verdict's word in output, state files and metrics.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Recovered(_) => "recovered",
            Self::Aborted { .. } => "aborted",
            Self::Exhausted { .. } => "exhausted",
            Self::Escalated { .. } => "escalated",
            Self::Cancelled => "cancelled",
            Self::Unhandled(_) => "unhandled",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Recovered(Proof::Verified) => f.write_str("recovered (verified)"),
            Self::Recovered(Proof::Assumed) => f.write_str("recovered (assumed)"),
            Self::Aborted { reason } => write!(f, "aborted: {reason}"),
            Self::Exhausted { cause: Cause::Chain } => f.write_str("exhausted: every step was tried"),
            Self::Exhausted { cause: Cause::Attempts } => f.write_str("exhausted: the limit of attempts is reached"),
            Self::Exhausted { cause: Cause::Deadline } => f.write_str("exhausted: the deadline passed"),
            Self::Escalated { reason } => write!(f, "escalated: {reason}"),
            Self::Cancelled => f.write_str("cancelled"),
            Self::Unhandled(Unhandled::NotDetected) => f.write_str("unhandled: not a known failure"),
            Self::Unhandled(Unhandled::NoChain) => f.write_str("unhandled: no chain for this failure"),
            Self::Unhandled(Unhandled::Disabled) => {
                f.write_str("unhandled: the configuration switches recovery off for it")
            }
        }
    }
}
