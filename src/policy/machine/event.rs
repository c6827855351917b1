use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Record;
use crate::failure::{RecoveryError, Timestamp};
use crate::policy::{Answer, Injection};

/// What happened. An event whose `seq` or `epoch` is not the current one is ignored.
///
/// Both numbers go on from episode to episode of a session, so that a late event of an earlier episode
/// is none of the current one's. `Superseded`, `DeadlinePassed` and `Cancelled` carry no number: the
/// shell sends them to the episode that they were meant for, by
/// [`SessionMemory::on_episode`](crate::policy::session::SessionMemory::on_episode).
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The strategy answered.
    Answered {
        /// The attempt.
        seq: u64,
        /// Its answer.
        answer: Answer,
        /// The texts it injected.
        injections: Vec<Injection>,
    },
    /// The runner had no room for the strategy.
    RunnerBusy {
        /// The attempt.
        seq: u64,
    },
    /// The record is as durable as the configuration asks for.
    Persisted {
        /// The attempt.
        seq: u64,
        /// Which record.
        record: Record,
    },
    /// The time of a `Wait` has come.
    DelayElapsed {
        /// The wait's epoch.
        epoch: u32,
    },
    /// The lane lets the redo through.
    LaneOpen {
        /// The question's epoch.
        epoch: u32,
    },
    /// The lane is closed.
    LaneClosed {
        /// The question's epoch.
        epoch: u32,
        /// When to ask again.
        until: Timestamp,
    },
    /// The remedy was carried out, or rides on the turn.
    Carried {
        /// The attempt.
        seq: u64,
        /// By whom.
        by: Carrier,
    },
    /// The remedy was declined, is unsupported, or failed.
    RemedyFailed {
        /// The attempt.
        seq: u64,
        /// Why.
        reason: Arc<str>,
    },
    /// The redone turn worked.
    TurnWorked {
        /// The attempt that asked for the redo.
        seq: u64,
    },
    /// The redone turn failed again: the failure, or `None` if no pattern knows it as one.
    Reported {
        /// The attempt that asked for the redo.
        seq: u64,
        /// The failure.
        error: Option<Arc<RecoveryError>>,
    },
    /// A later turn's report showed that an open-loop host went on: its redo worked, as far as anybody
    /// knows (R8).
    Superseded,
    /// The episode's deadline passed.
    DeadlinePassed,
    /// A person or the host stopped it.
    Cancelled,
    /// The shell cannot go on: a person must look.
    GivenUp {
        /// Why.
        reason: Arc<str>,
    },
}

/// Who carried a remedy out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Carrier {
    /// The session's client did; nothing is left to do.
    Client,
    /// It rides on the next turn, with this instruction besides where nobody may heed the turn's wish.
    Turn(Option<Injection>),
}
