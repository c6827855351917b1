use std::sync::Arc;

use serde::Serialize;

use super::outcome::{Outcome, Told};
use crate::failure::{SessionId, Timestamp};
use crate::policy::machine::Note;
use crate::policy::{Injection, Remedy, Verdict};

/// What an open-loop host is to do.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Directive {
    /// The session.
    pub session: SessionId,
    /// The episode's number within the session; 0 when none was opened.
    pub episode: u64,
    /// The attempt: the host gives it back with the redo's result.
    pub seq: u64,
    /// Redo or stop.
    #[serde(flatten)]
    pub action: Action,
    /// Texts for the next turn's system prompt; those of a verdict are final (R12).
    pub injections: Vec<Injection>,
    /// The decisions that led here, oldest first (R15).
    pub explain: Vec<Note>,
}

/// Redo or stop.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum Action {
    /// Do the remedy, then redo the turn.
    Redo {
        /// What to do first; decline it if that cannot be done.
        #[serde(skip_serializing_if = "Option::is_none")]
        remedy: Option<Remedy>,
        /// Not before this time.
        not_before: Timestamp,
        /// How often the turn has been redone by then.
        redo: u32,
        /// The model to use instead of the usual one.
        #[serde(skip_serializing_if = "Option::is_none")]
        model: Option<Arc<str>>,
        /// The share to cut the request to.
        #[serde(skip_serializing_if = "Option::is_none")]
        truncate_to: Option<f64>,
        /// Use the host's alternative.
        degraded: bool,
        /// Leave the sub-task out.
        skip: bool,
    },
    /// The episode is over, or none was opened.
    Stop {
        /// How it ended.
        verdict: Verdict,
    },
}

impl Directive {
    /// Whether the turn is to be redone.
    pub fn is_redo(&self) -> bool {
        matches!(self.action, Action::Redo { .. })
    }

    /// The verdict, if it is time to stop.
    pub fn verdict(&self) -> Option<&Verdict> {
        match &self.action {
            Action::Stop { verdict } => Some(verdict),
            Action::Redo { .. } => None,
        }
    }

    /// The time before which the turn must not be redone.
    pub fn not_before(&self) -> Option<Timestamp> {
        match &self.action {
            Action::Redo { not_before, .. } => Some(*not_before),
            Action::Stop { .. } => None,
        }
    }

    pub(crate) fn of(told: Told) -> Self {
        match told {
            Told::Redo { episode, redo, notes } => {
                let turn = redo.turn.clone();
                Self {
                    session: turn.session,
                    episode,
                    seq: turn.seq,
                    action: Action::Redo {
                        remedy: redo.remedy.clone(),
                        not_before: redo.not_before,
                        redo: turn.redo,
                        model: turn.model,
                        truncate_to: turn.truncate_to,
                        degraded: turn.degraded,
                        skip: turn.skip,
                    },
                    injections: turn.injections,
                    explain: notes,
                }
            }
            Told::Stop(outcome) => Self::stop(&outcome),
        }
    }

    fn stop(outcome: &Outcome) -> Self {
        Self {
            session: outcome.session.clone(),
            episode: outcome.episode,
            seq: outcome.attempts.last().map_or(0, |attempt| attempt.seq),
            action: Action::Stop { verdict: outcome.verdict.clone() },
            injections: outcome.injections.clone(),
            explain: outcome.notes.clone(),
        }
    }
}
