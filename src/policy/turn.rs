use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Injection;
use crate::failure::SessionId;

/// One unit of work to be done or redone, with everything that recovery asks of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// The session.
    pub session: SessionId,
    /// How often this turn has been redone: 0 is the first try.
    pub redo: u32,
    /// The attempt that asked for this redo; 0 for the first try (R8).
    pub seq: u64,
    /// The model to use instead of the usual one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Arc<str>>,
    /// Cut the request to this share of its size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncate_to: Option<f64>,
    /// Use the host's alternative.
    #[serde(default)]
    pub degraded: bool,
    /// Leave the sub-task out.
    #[serde(default)]
    pub skip: bool,
    /// Texts for the system prompt, each delivered once (R12).
    #[serde(default)]
    pub injections: Vec<Injection>,
}

impl Turn {
    /// The first try of a turn.
    pub fn first(session: SessionId) -> Self {
        Self {
            session,
            redo: 0,
            seq: 0,
            model: None,
            truncate_to: None,
            degraded: false,
            skip: false,
            injections: vec![],
        }
    }

    /// The injections as one text, an empty line between two.
    pub fn injected_text(&self) -> String {
        self.injections.iter().map(Injection::as_str).collect::<Vec<_>>().join("\n\n")
    }
}
