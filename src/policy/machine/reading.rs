//! What can be read off an episode.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::command::Redo;
use super::episode::{Episode, Phase};
use super::plan::{Fence, Redoer};
use crate::failure::{RecoveryError, SessionId, Timestamp};
use crate::policy::{ChainKey, Injection, RecoveryAttempt, Verdict};

/// The phase's name, for status output and events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PhaseName {
    /// A strategy is being asked.
    Acting,
    /// A delay runs.
    Waiting,
    /// The lane was asked.
    Asking,
    /// The lane is closed.
    Parked,
    /// The turn is about to be redone, or is being redone.
    Redoing,
    /// The verdict is known.
    Finished,
}

impl Episode {
    /// Texts that no redo has delivered yet.
    pub fn injections(&self) -> &[Injection] {
        &self.injections
    }

    /// The session.
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// The episode's number within its session.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The current attempt's number, never used twice in a session; before the episode's first attempt,
    /// that of the session's last one (0 if it had none).
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// Executions so far, over all chains and restarts (R7).
    pub fn executions(&self) -> u32 {
        self.executions
    }

    /// Redos so far.
    pub fn redos(&self) -> u32 {
        self.redos
    }

    /// The turn as the host numbered it.
    pub fn turn(&self) -> Option<u64> {
        self.turn
    }

    /// Who can redo the turn.
    pub fn redoer(&self) -> Redoer {
        self.redoer
    }

    /// When the episode began.
    pub fn started(&self) -> Timestamp {
        self.started
    }

    /// When it has to be over.
    pub fn deadline(&self) -> Option<Timestamp> {
        self.deadline
    }

    /// The failure that opened the episode.
    pub fn first_error(&self) -> &Arc<RecoveryError> {
        &self.first
    }

    /// The failure that is being recovered from now.
    pub fn error(&self) -> &Arc<RecoveryError> {
        &self.error
    }

    /// The chain that runs now.
    pub fn chain(&self) -> &ChainKey {
        &self.chain
    }

    /// The attempts made, oldest first; bounded by [`Episode::ATTEMPTS_KEPT`].
    pub fn attempts(&self) -> &[RecoveryAttempt] {
        &self.attempts
    }

    /// The chains entered, each with the step and attempt that it stands at.
    pub fn places(&self) -> impl Iterator<Item = (&ChainKey, usize, u32)> {
        self.places.iter().map(|(key, place)| (key, place.step, place.attempt))
    }

    /// Whether a lane's thaw let the last redo go (R7).
    pub fn thawed(&self) -> bool {
        self.thawed
    }

    /// The verdict, once the episode has one.
    pub fn verdict(&self) -> Option<&Verdict> {
        match &self.phase {
            Phase::Closing { verdict } | Phase::Finished { verdict } => Some(verdict),
            _ => None,
        }
    }

    /// Whether the turn is being redone.
    pub fn is_redoing(&self) -> bool {
        matches!(self.phase, Phase::Redoing { .. })
    }

    /// The highest numbers given out so far, for the session's next episode.
    pub fn fence(&self) -> Fence {
        Fence { seq: self.seq, epoch: self.epoch }
    }

    /// What an open-loop host is to do now; `None` until the redo's record is durable, and for other loops.
    pub fn directive(&self) -> Option<&Redo> {
        match &self.phase {
            Phase::Redoing { directive, .. } if self.redoer == Redoer::Host => directive.as_deref(),
            _ => None,
        }
    }

    /// Whether a redo's record was written: the turn may have been redone.
    pub fn is_underway(&self) -> bool {
        matches!(self.phase, Phase::Saving { .. } | Phase::Carrying { .. } | Phase::Redoing { .. })
    }

    /// Whether the redo's record is being written: nothing of the redo has happened yet.
    pub fn is_saving(&self) -> bool {
        matches!(self.phase, Phase::Saving { .. })
    }

    /// The phase's name.
    pub fn phase(&self) -> PhaseName {
        match &self.phase {
            Phase::Acting { .. } => PhaseName::Acting,
            Phase::Waiting { .. } => PhaseName::Waiting,
            Phase::Asking { .. } => PhaseName::Asking,
            Phase::Parked { .. } => PhaseName::Parked,
            Phase::Saving { .. } | Phase::Carrying { .. } | Phase::Redoing { .. } => PhaseName::Redoing,
            Phase::Closing { .. } | Phase::Finished { .. } => PhaseName::Finished,
        }
    }

    /// Until when the episode waits or is parked.
    pub fn waits_until(&self) -> Option<Timestamp> {
        match &self.phase {
            Phase::Waiting { until, .. } | Phase::Parked { until, .. } => Some(*until),
            _ => None,
        }
    }
}
