use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::ChainKey;
use crate::failure::{Category, Kind, Timestamp, TokenCounts};

/// What is remembered of one attempt: the original's fields, and ours beside them.
///
/// An attempt is identified for ever by (`episode`, `seq`), never by its time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RecoveryAttempt {
    /// The failure's category.
    pub category: Category,
    /// The failure's kind.
    pub error_type: Kind,
    /// When the strategy was asked.
    pub timestamp: Timestamp,
    /// The step's index in its chain, from 0.
    pub chain_position: usize,
    /// The strategy's name.
    pub strategy: Arc<str>,
    /// What it answered: `success`, `retry`, `next_strategy`, `abort`, `escalate`.
    pub result: Arc<str>,
    /// The answer's message or reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Arc<str>>,
    /// The episode's number within its session.
    #[serde(default)]
    pub episode: u64,
    /// The attempt's number, never used twice in a session.
    #[serde(default)]
    pub seq: u64,
    /// The chain that the step belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chain: Option<ChainKey>,
    /// The failure's token numbers.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub tokens: TokenCounts,
}

fn is_empty(tokens: &TokenCounts) -> bool {
    *tokens == TokenCounts::default()
}
