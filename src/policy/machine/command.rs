use serde::{Deserialize, Serialize};

use crate::failure::{LaneKey, Timestamp};
use crate::policy::{Remedy, Step, Turn, Verdict};

/// What the shell must do now, in this order.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// Make this record durable; [`Event::Persisted`](super::Event::Persisted) releases what waits for it.
    Persist {
        /// The attempt.
        seq: u64,
        /// Which record.
        record: Record,
    },
    /// Run this step's strategy.
    Execute(Execute),
    /// Come back at this time with [`Event::DelayElapsed`](super::Event::DelayElapsed) and this epoch.
    Wait {
        /// When.
        until: Timestamp,
        /// The wait's epoch.
        epoch: u32,
    },
    /// Ask whether a redo may go to this lane.
    AskLane {
        /// The lane.
        lane: LaneKey,
        /// The question's epoch.
        epoch: u32,
    },
    /// Carry the remedy out.
    Carry {
        /// The attempt.
        seq: u64,
        /// What to do.
        remedy: Remedy,
    },
    /// Have the turn redone.
    Redo(Box<Redo>),
    /// The episode is over.
    Finish(Verdict),
}

/// One attempt to be made.
#[derive(Debug, Clone, PartialEq)]
pub struct Execute {
    /// The attempt; never used twice in a session.
    pub seq: u64,
    /// The step's index in its chain, from 0.
    pub step: usize,
    /// The attempt within its step, from 1.
    pub attempt: u32,
    /// The strategy and its settings.
    pub plan: Step,
    /// The attempt's randomness: the same when it is asked again.
    pub seed: u64,
}

/// One redo to be made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Redo {
    /// The turn, with everything that recovery asks of it.
    pub turn: Turn,
    /// What the host must do before (open loop).
    pub remedy: Option<Remedy>,
    /// Not before this time (open loop).
    pub not_before: Timestamp,
}

/// Which record is to be made durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Record {
    /// An attempt, before its effect.
    Attempt,
    /// A redo, before it happens; includes an attempt that only computed.
    Redo,
    /// A verdict, before it is returned.
    Verdict,
}
