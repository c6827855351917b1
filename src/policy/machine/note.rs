use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::failure::{Kind, LaneKey, Timestamp};
use crate::policy::{ChainKey, Verdict};

/// One decision with its inputs and its reason (R15).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// When it was taken.
    pub at: Timestamp,
    /// The attempt it belongs to; 0 before the first.
    pub seq: u64,
    /// The decision.
    #[serde(flatten)]
    pub what: NoteKind,
}

/// What was decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "decision", rename_all = "snake_case")]
#[non_exhaustive]
pub enum NoteKind {
    /// A failure chose its chain.
    ChainChosen {
        /// The failure's kind.
        kind: Kind,
        /// The pattern that recognised it.
        pattern: Arc<str>,
        /// The chain.
        chain: ChainKey,
        /// Which rule chose it.
        because: Arc<str>,
        /// The configuration's line.
        origin: Arc<str>,
    },
    /// A failure has no chain.
    NoChain {
        /// The failure's kind.
        kind: Kind,
        /// Why.
        reason: Arc<str>,
    },
    /// A step was passed over.
    StepSkipped {
        /// Its index, from 0.
        step: usize,
        /// Its strategy.
        strategy: Arc<str>,
        /// Why.
        reason: Arc<str>,
    },
    /// A strategy answered.
    Answered {
        /// The step's index, from 0.
        step: usize,
        /// Its strategy.
        strategy: Arc<str>,
        /// The attempt within the step, from 1.
        attempt: u32,
        /// The status word.
        status: Arc<str>,
        /// The message or reason.
        text: Arc<str>,
    },
    /// A wait began.
    Waits {
        /// How long.
        #[serde(rename = "delay_ms", with = "crate::policy::machine::note::millis")]
        delay: Duration,
        /// Where the length comes from.
        because: Arc<str>,
    },
    /// A wait was not begun.
    WaitRefused {
        /// How long it would have been.
        #[serde(rename = "delay_ms", with = "crate::policy::machine::note::millis")]
        delay: Duration,
        /// Which bound forbids it.
        because: Arc<str>,
    },
    /// The lane was closed.
    Parked {
        /// The lane.
        lane: LaneKey,
        /// Until when.
        until: Timestamp,
    },
    /// A remedy was not carried out.
    RemedyFailed {
        /// Why.
        reason: Arc<str>,
    },
    /// The turn is redone.
    Redone {
        /// The how-manieth redo of the episode, from 1.
        redo: u32,
    },
    /// The redone turn failed again.
    FailedAgain {
        /// The new failure's kind.
        kind: Kind,
    },
    /// Something outside decided: a limit, a restart, a person.
    Remark {
        /// What.
        text: Arc<str>,
    },
    /// The episode ended.
    Ended {
        /// How.
        verdict: Verdict,
    },
}

pub(crate) mod millis {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(span: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(u64::try_from(span.as_millis()).unwrap_or(u64::MAX))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        u64::deserialize(from).map(Duration::from_millis)
    }
}
