use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::failure::{RecoveryError, Timestamp};
use crate::policy::{Limits, RecoveryConfig};

/// What an episode keeps to: the configuration of its beginning, whatever is reloaded meanwhile.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Chains and limits.
    pub config: Arc<RecoveryConfig>,
    /// Names of the strategies that only compute: asking them twice is harmless (R10).
    pub computing: Arc<BTreeSet<Arc<str>>>,
}

impl Plan {
    /// Whether the strategy of this name only computes its answer.
    pub fn only_computes(&self, strategy: &str) -> bool {
        self.computing.contains(strategy)
    }

    /// The bounds.
    pub fn limits(&self) -> &Limits {
        self.config.limits()
    }
}

/// When something happens, and the randomness for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// The wall-clock time.
    pub now: Timestamp,
    /// A random seed.
    pub seed: u64,
}

/// Who can redo the session's turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Redoer {
    /// Nobody: a strategy's success is recovery, and `retry` runs the strategy again (R5, R6).
    Nobody,
    /// The caller of a closed loop, in its own task.
    Caller,
    /// The session's client.
    Client,
    /// The host of an open loop, by directive.
    Host,
}

/// The highest numbers that a session's episodes have given out. They are never given out again: a late
/// answer or timer of an earlier episode cannot be taken for one of the current (R8, R11).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Fence {
    /// The last attempt.
    pub seq: u64,
    /// The last epoch.
    pub epoch: u32,
}

/// What an episode begins with.
#[derive(Debug, Clone)]
pub struct Opening {
    /// Its number within the session.
    pub episode: u64,
    /// The failure.
    pub error: Arc<RecoveryError>,
    /// Who can redo the turn.
    pub redoer: Redoer,
    /// The host's number of the turn.
    pub turn: Option<u64>,
    /// When the episode has to be over.
    pub deadline: Option<Timestamp>,
    /// What the session's earlier episodes used up.
    pub after: Fence,
}
