use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What is to be done before the turn is redone.
///
/// Strategies only name it; the client, the host or the next turn carries it out (DESIGN §2).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Remedy {
    /// Compact the conversation's history.
    Compact {
        /// What the compaction must keep, in the client's own words.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        preserve: Vec<Arc<str>>,
    },
    /// Cut the request to this share of its size.
    Truncate {
        /// The share to keep, above 0 and at most 1.
        ratio: f64,
        /// The smallest size of the output that still makes sense, in characters.
        min_output_size: u64,
    },
    /// Replace the history by a summary.
    Summarize {
        /// The model that writes it; the session's own when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<Arc<str>>,
    },
    /// Use another model, written `provider/name` or `name`.
    SwitchModel {
        /// The model to use.
        model: Arc<str>,
    },
    /// Go back to a checkpoint.
    Rollback {
        /// Its name; the last good one when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        checkpoint: Option<Arc<str>>,
    },
    /// Use the host's alternative.
    Degrade,
    /// Leave the sub-task out.
    Skip,
}

impl Remedy {
    /// The name used in output and records.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Compact { .. } => "compact",
            Self::Truncate { .. } => "truncate",
            Self::Summarize { .. } => "summarize",
            Self::SwitchModel { .. } => "switch_model",
            Self::Rollback { .. } => "rollback",
            Self::Degrade => "degrade",
            Self::Skip => "skip",
        }
    }

    /// Whether it can ride on the next turn when nobody carries it out beforehand.
    ///
    /// A model, a target size and a degraded mode are properties of the turn; compaction, summaries
    /// and rollbacks change the session and need a client or a host that takes directives.
    pub const fn rides_on_turn(&self) -> bool {
        matches!(self, Self::Truncate { .. } | Self::SwitchModel { .. } | Self::Degrade | Self::Skip)
    }
}

/// What a strategy answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Answer {
    /// The strategy did or named what can be done; the redo tells whether it helped.
    Success {
        /// What it did, for people.
        message: Arc<str>,
        /// What is to be done before the redo.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        remedy: Option<Remedy>,
    },
    /// Redo the turn after this delay; another attempt of the same step follows if it fails.
    Retry {
        /// How long to wait before the redo.
        delay: Duration,
        /// Why, for people.
        reason: Arc<str>,
        /// What is to be done before the redo.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        remedy: Option<Remedy>,
    },
    /// The strategy cannot help; the chain goes on.
    NextStrategy {
        /// Why, for people.
        reason: Arc<str>,
    },
    /// Give up.
    Abort {
        /// Why, for people.
        reason: Arc<str>,
    },
    /// Hand over to a person.
    Escalate {
        /// Why, for people.
        reason: Arc<str>,
    },
}

impl Answer {
    /// A success without a remedy.
    pub fn success(message: impl Into<Arc<str>>) -> Self {
        Self::Success { message: message.into(), remedy: None }
    }

    /// A success whose remedy is still to be carried out.
    pub fn success_with(message: impl Into<Arc<str>>, remedy: Remedy) -> Self {
        Self::Success { message: message.into(), remedy: Some(remedy) }
    }

    /// A redo after `delay`.
    pub fn retry(delay: Duration, reason: impl Into<Arc<str>>) -> Self {
        Self::Retry { delay, reason: reason.into(), remedy: None }
    }

    /// A redo after `delay`, the remedy first.
    pub fn retry_with(delay: Duration, reason: impl Into<Arc<str>>, remedy: Remedy) -> Self {
        Self::Retry { delay, reason: reason.into(), remedy: Some(remedy) }
    }

    /// The chain goes on.
    pub fn next_strategy(reason: impl Into<Arc<str>>) -> Self {
        Self::NextStrategy { reason: reason.into() }
    }

    /// Give up.
    pub fn abort(reason: impl Into<Arc<str>>) -> Self {
        Self::Abort { reason: reason.into() }
    }

    /// Hand over to a person.
    pub fn escalate(reason: impl Into<Arc<str>>) -> Self {
        Self::Escalate { reason: reason.into() }
    }

    /// The status word: `success`, `retry`, `next_strategy`, `abort` or `escalate`.
    pub const fn status(&self) -> &'static str {
        match self {
            Self::Success { .. } => "success",
            Self::Retry { .. } => "retry",
            Self::NextStrategy { .. } => "next_strategy",
            Self::Abort { .. } => "abort",
            Self::Escalate { .. } => "escalate",
        }
    }

    /// The message or reason.
    pub fn text(&self) -> &Arc<str> {
        match self {
            Self::Success { message: text, .. }
            | Self::Retry { reason: text, .. }
            | Self::NextStrategy { reason: text }
            | Self::Abort { reason: text }
            | Self::Escalate { reason: text } => text,
        }
    }
}
