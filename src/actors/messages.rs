use std::sync::Arc;
use std::time::Duration;

use ractor::ActorRef;
use serde::Serialize;
use tokio::sync::oneshot;

use super::admission::Permit;
use super::desk::{Incoming, ReplyTo, Wants};
use super::outcome::{EngineError, Outcome};
use super::shared::Shared;
use crate::failure::{Detection, ErrorPattern, Kind, Report, SessionId, Timestamp};
use crate::policy::machine::{Event, Looked, PhaseName, Record, Redoer};
use crate::policy::session::KeptVerdict;
use crate::policy::{ChainKey, RecoveryAttempt};
use crate::strategy::SessionClient;

/// What a session's actor is told. Outsiders' messages wait at the session's desk and the mailbox only
/// says that there are some, so that no panic loses them.
pub(crate) enum SessionMsg {
    /// A message waits at the desk.
    Wake,
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
        episode: u64,
        redoer: Redoer,
        looked: Looked,
    },
    Status {
        reply: oneshot::Sender<SessionStatus>,
    },
    /// Look whether nothing has happened for `passivate_after`.
    Idle,
    /// The engine shuts down: whoever waits is told, the episode stays open.
    Suspend,
    /// Panics, to prove that neighbours are unharmed.
    #[cfg(any(test, feature = "test-util"))]
    Panic,
}

impl SessionMsg {
    /// Where its answer is waited for, if it is one that a whole episode may follow from.
    pub fn into_reply(self) -> Option<ReplyTo> {
        match self {
            Self::Report(incoming) => Some(incoming.reply),
            Self::Worked { reply, .. } | Self::Declined { reply, .. } => reply.map(|(reply, _)| reply),
            Self::Await { reply, .. } => Some(reply),
            Self::Adopt(adoption) => Some(adoption.reply),
            _ => None,
        }
    }

    /// Whether it means something to whichever actor serves the session, and not to one episode's only.
    pub fn is_request(&self) -> bool {
        match self {
            Self::Report(_)
            | Self::Worked { .. }
            | Self::Await { .. }
            | Self::Declined { .. }
            | Self::TurnWorked { .. }
            | Self::Cancel { .. }
            | Self::Reset { .. }
            | Self::Adopt(_)
            | Self::Status { .. } => true,
            Self::Wake
            | Self::Event { .. }
            | Self::Saved { .. }
            | Self::Abandon { .. }
            | Self::Looked { .. }
            | Self::Idle
            | Self::Suspend => false,
            #[cfg(any(test, feature = "test-util"))]
            Self::Panic => false,
        }
    }
}

/// Who goes on with an open episode.
pub(crate) struct Adoption {
    pub redoer: Redoer,
    pub client: Option<Arc<dyn SessionClient>>,
    pub driver: Option<u64>,
    /// Replaces the episode's own deadline.
    pub deadline: Option<Timestamp>,
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

/// What becomes possible once a record is durable.
pub(crate) enum SaveAck {
    /// An episode goes on.
    Record { episode: u64, seq: u64, record: Record },
    /// The session is forgotten.
    Reset,
}

pub(crate) enum PersistenceMsg {
    /// The queue has something to be written.
    Wake,
    /// The queue has grown for long enough.
    Lingered,
    /// A batch was written, or not.
    Written,
    /// Try again what could not be written.
    Retry,
    /// Readable copies have been out of date for long enough.
    ViewsAreDue,
    /// The right to write is to be prolonged.
    Hold,
    /// Tell when everything sent before is durable, or cannot be.
    Flush { done: oneshot::Sender<bool> },
    #[cfg(any(test, feature = "test-util"))]
    Panic,
}

pub(crate) enum MetricsMsg {
    /// A failure was detected.
    Detected { kind: Kind },
    /// An episode ended, or a failure opened none; with the failure that began it, if that was not told
    /// before.
    Ended { detected: Option<Kind>, outcome: Arc<Outcome> },
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
    /// Take these of a configuration in place of the last one's, and publish.
    Reload { patterns: Vec<ErrorPattern>, text_cap: usize, done: oneshot::Sender<()> },
    #[cfg(any(test, feature = "test-util"))]
    Panic,
}

/// How long a call between actors may take: they answer at once or are gone.
const CALL_LIMIT: Duration = Duration::from_secs(30);
/// How often a call is made that an actor's failure swallowed.
const CALLS: u32 = 5;
/// How long a failed actor's restart is waited for before the next call.
const RESTART_PAUSE: Duration = Duration::from_millis(5);

/// Calls a shared actor and waits for its answer; one that fails meanwhile is asked again.
pub(crate) async fn ask<M, T>(
    shared: &Shared,
    actor: impl Fn(&Shared) -> Option<ActorRef<M>>,
    message: impl Fn(oneshot::Sender<T>) -> M,
) -> Result<T, EngineError>
where
    M: ractor::Message,
{
    for _ in 0..CALLS {
        let (reply, answer) = oneshot::channel();
        let sent = actor(shared).is_some_and(|actor| actor.send_message(message(reply)).is_ok());
        if sent {
            match tokio::time::timeout(CALL_LIMIT, answer).await {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(_)) => {}
                Err(_) => break,
            }
        }
        if shared.is_over() {
            break;
        }
        tokio::time::sleep(RESTART_PAUSE).await;
    }
    Err(EngineError::Stopped)
}
