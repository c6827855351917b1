use std::time::Duration;

use serde::Serialize;

use crate::failure::Timestamp;

/// How a lane stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Standing {
    /// Calls go.
    #[default]
    Open,
    /// The server stated a wait: nobody goes before it ends.
    Held,
    /// The circuit is open: nobody goes.
    Closed,
    /// Single calls go, to see whether the provider is back.
    Probing,
    /// Those who waited go one by one.
    Thawing,
}

impl Standing {
    /// The word used in output and as a metric's label.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Held => "held",
            Self::Closed => "closed",
            Self::Probing => "probing",
            Self::Thawing => "thawing",
        }
    }
}

/// One decision of a lane with its reason (R15).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LaneNote {
    /// When it was taken.
    pub at: Timestamp,
    /// The decision.
    #[serde(flatten)]
    pub what: LaneNoteKind,
}

/// What a lane decided.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "decision", rename_all = "snake_case")]
#[non_exhaustive]
pub enum LaneNoteKind {
    /// Failures of several sessions opened the circuit.
    Tripped {
        /// How many sessions failed.
        sessions: usize,
        /// When a probe goes.
        until: Timestamp,
    },
    /// A probe failed: the circuit stays open.
    ProbeFailed {
        /// How many failed in a row.
        strikes: u32,
        /// When the next one goes.
        until: Timestamp,
    },
    /// A probe may go.
    MayProbe,
    /// A wait is over: those who waited go one by one.
    Thaws {
        /// Calls per second to begin with.
        per_second: f64,
        /// What showed it.
        because: &'static str,
    },
    /// A failure slowed the ramp.
    BackedOff {
        /// Calls per second from now on.
        per_second: f64,
    },
    /// Nobody waits any more and nothing fails: the lane is open.
    Thawed,
    /// The server stated a wait.
    Held {
        /// Until when.
        until: Timestamp,
    },
    /// Throttling narrowed the lane.
    Narrowed {
        /// Calls at once from now on.
        window: usize,
    },
    /// The budget is used up: redos wait.
    OutOfBudget {
        /// How long the first of them waits.
        #[serde(rename = "wait_ms", with = "crate::policy::machine::millis")]
        wait: Duration,
    },
}

impl LaneNoteKind {
    /// The word used as a metric's label; the list is closed.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Tripped { .. } => "tripped",
            Self::ProbeFailed { .. } => "probe_failed",
            Self::MayProbe => "may_probe",
            Self::Thaws { .. } => "thaws",
            Self::BackedOff { .. } => "backed_off",
            Self::Thawed => "thawed",
            Self::Held { .. } => "held",
            Self::Narrowed { .. } => "narrowed",
            Self::OutOfBudget { .. } => "out_of_budget",
        }
    }
}
