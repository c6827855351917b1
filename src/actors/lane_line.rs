//! Who waits at a lane's desk, and what they are told.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::lane::{LanePermit, Refused};
use crate::failure::Timestamp;
use crate::policy::lane::LaneNote;

/// How an admission gets back.
pub(super) type Admission = oneshot::Sender<Result<LanePermit, Refused>>;
/// Told until when the lane is closed, if it is; and again, once the lane lets the redo go.
pub(super) type AskReply = Arc<dyn Fn(Option<Timestamp>) + Send + Sync>;

/// Somebody who wants to start a turn.
pub(super) struct Caller {
    /// The session's number, where it is known.
    pub session: Option<u64>,
    /// Whether it may have been let go before, by [`LaneState::ask`].
    pub is_redo: bool,
    /// Waits while the lane is closed, but not past this; `None` is refused instead.
    pub patience: Option<Option<Timestamp>>,
    pub reply: Admission,
}

/// A session's question whether its redo may go.
pub(super) struct Question {
    pub session: u64,
    /// An open-loop host waits by itself and comes back with an admission: it is answered once.
    pub is_hosts: bool,
    pub reply: AskReply,
}

/// Who is to be told what, once the lane's lock is free: a permit that nobody takes comes back at once.
#[derive(Default)]
pub(super) struct Answers {
    pub admitted: Vec<(Caller, u32)>,
    pub refused: Vec<(Admission, Timestamp)>,
    pub asked: Vec<(AskReply, Option<Timestamp>)>,
    pub notes: Vec<LaneNote>,
    /// When to look again, if nothing happens before.
    pub later: Option<Timestamp>,
}

impl Answers {
    /// The lane is to be looked at again at this time, or earlier.
    pub fn look_at(&mut self, at: Option<Timestamp>) {
        self.later = match (self.later, at) {
            (Some(known), Some(at)) => Some(known.min(at)),
            (known, at) => known.or(at),
        };
    }
}
