use std::sync::Arc;

use serde::Serialize;
use tokio::sync::oneshot;

use super::admission::Permit;
use super::desk::{Incoming, ReplyTo, Wants};
use super::outcome::{EngineError, Outcome};
use crate::failure::{Detection, ErrorPattern, Kind, Report, SessionId, Timestamp};
use crate::policy::machine::{Event, PhaseName, Record, Redoer};
use crate::policy::session::KeptVerdict;
use crate::policy::{ChainKey, RecoveryAttempt};
use crate::strategy::SessionClient;

/// What a session's actor is told.
pub(crate) enum SessionMsg {
    /// A turn failed.
    Report(Box<Incoming>),
    /// Something happened to this episode.
    Event {
        episode: u64,
        event: Event,
    },
    /// A record was written; not `durable`: the disk fails and memory counts (R10).
    Saved {
        ack: SaveAck,
        durable: bool,
    },
    /// The redone turn of this attempt worked.
    Worked {
        seq: u64,
        reply: Option<(ReplyTo, Permit)>,
    },
    /// Tell the verdict of this episode, or the last one.
    Await {
        episode: u64,
        reply: ReplyTo,
        permit: Permit,
    },
    /// The host cannot do the remedy of this attempt.
    Declined {
        seq: u64,
        reason: Arc<str>,
        reply: Option<(ReplyTo, Permit)>,
    },
    /// A turn worked outside episodes.
    TurnWorked {
        permit: Permit,
    },
    /// Stop the episode; tells whether there was one.
    Cancel {
        done: Option<oneshot::Sender<bool>>,
    },
    /// The caller that drives the episode is gone: its future was dropped.
    Abandon {
        driver: u64,
    },
    /// Forget the session.
    Reset {
        done: oneshot::Sender<()>,
    },
    /// Go on with an open episode after a restart.
    Adopt(Box<Adoption>),
    /// How the client says that the last turn ended, for an episode being adopted.
    Looked {
        redoer: Redoer,
        looked: crate::policy::machine::Looked,
    },
    Status {
        reply: oneshot::Sender<SessionStatus>,
    },
    /// Nothing happened for `passivate_after` since this many messages.
    Idle {
        since: u64,
    },
    /// The engine shuts down: whoever waits is told, the episode stays open.
    Suspend,
    /// Panics, to prove that neighbours are unharmed.
    #[cfg(any(test, feature = "test-util"))]
    Panic,
}

/// Who goes on with an open episode.
pub(crate) struct Adoption {
    pub redoer: Redoer,
    pub client: Option<Arc<dyn SessionClient>>,
    pub driver: Option<u64>,
    pub wants: Wants,
    /// Gets `EngineError::NothingOpen` if no episode waits to be adopted.
    pub reply: ReplyTo,
    pub permit: Permit,
}

/// What a session is doing.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SessionStatus {
    /// The session.
    pub session: SessionId,
    /// Its running episode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub episode: Option<EpisodeStatus>,
    /// The last verdict, if it is one that is kept until a reset (R11).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<KeptVerdict>,
    /// Episodes so far.
    pub episodes: u64,
    /// Episodes that count against the recovery window (R7).
    pub recoveries_in_window: usize,
    /// Strikes in a row of one failure (R16).
    pub strikes: usize,
}

/// Where a running episode is.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EpisodeStatus {
    /// Its number within the session.
    pub episode: u64,
    /// The current attempt.
    pub seq: u64,
    /// The phase.
    pub phase: PhaseName,
    /// The chain that runs.
    pub chain: ChainKey,
    /// The failure's kind.
    pub kind: Kind,
    /// Executions so far.
    pub executions: u32,
    /// When a wait ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_until: Option<Timestamp>,
    /// When it began.
    pub started: Timestamp,
    /// The attempts, oldest first.
    pub attempts: Vec<RecoveryAttempt>,
}

/// Whom to tell once a record is durable.
pub(crate) struct SaveAck {
    pub episode: u64,
    pub seq: u64,
    pub record: Record,
}

pub(crate) enum PersistenceMsg {
    /// The queue has something to be written.
    Wake,
    /// A batch was written, or not.
    Written,
    /// Try again what could not be written.
    Retry,
    /// Tell when everything sent before is durable, or cannot be.
    Flush { done: oneshot::Sender<bool> },
    #[cfg(any(test, feature = "test-util"))]
    Panic,
}

pub(crate) enum MetricsMsg {
    /// A failure was detected.
    Detected { kind: Kind },
    /// An episode ended, or a failure opened none.
    Ended(Arc<Outcome>),
    /// Disk trouble began.
    NotDurable,
    /// Tell when everything sent before is counted.
    Flush { done: oneshot::Sender<()> },
    #[cfg(any(test, feature = "test-util"))]
    Panic,
}

pub(crate) enum DetectorMsg {
    /// Classify a report.
    Classify { report: Box<Report>, reply: oneshot::Sender<Detection> },
    /// Add patterns and publish.
    Register { patterns: Vec<ErrorPattern>, done: oneshot::Sender<()> },
    #[cfg(any(test, feature = "test-util"))]
    Panic,
}

/// How long a call between actors may take: they answer at once or are gone.
const CALL_LIMIT: std::time::Duration = std::time::Duration::from_secs(30);

/// Calls an actor and waits for its answer.
pub(crate) async fn ask<M, T>(
    actor: Option<ractor::ActorRef<M>>,
    message: impl FnOnce(oneshot::Sender<T>) -> M,
) -> Result<T, EngineError>
where
    M: ractor::Message,
{
    let (reply, answer) = oneshot::channel();
    actor.ok_or(EngineError::Stopped)?.send_message(message(reply)).map_err(|_| EngineError::Stopped)?;
    match tokio::time::timeout(CALL_LIMIT, answer).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(_)) | Err(_) => Err(EngineError::Stopped),
    }
}
