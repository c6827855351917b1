//! The messages of an embedder: what its own actors send to the root.

use std::sync::Arc;

use ractor::{ActorCell, ActorRef, ActorStatus, DerivedActorRef};
use tokio::sync::oneshot;

use super::admission::Permit;
use super::desk::{Incoming, Wants};
use super::directive::Directive;
use super::messages::{SessionMsg, SessionStatus};
use super::outcome::{EngineError, Told};
use super::shared::Shared;
use super::supervisor::RootState;
use crate::failure::{Report, SessionId};
use crate::policy::machine::Redoer;
use crate::policy::session::ReportKey;

/// What an embedder's actors send to the root of an engine's actors.
///
/// Mailboxes have no bound of their own, so each message carries a [`Permit`] of its session, which
/// `RecoveryEngine::permit` gives out while there is room. Every message with a `reply` is answered, at
/// the engine's end by an error.
#[derive(Debug)]
#[non_exhaustive]
pub enum RecoveryMsg {
    /// A turn failed; the directive goes to `reply`.
    Report {
        /// Room at the session.
        permit: Permit,
        /// The session.
        session: SessionId,
        /// The failure.
        report: Report,
        /// The attempt whose redo failed, if this is a redo's result (R8).
        seq: Option<u64>,
        /// Who gets the directive.
        reply: DerivedActorRef<RecoveryReply<Directive>>,
    },
    /// The redone turn of this attempt worked.
    Succeeded {
        /// Room at the session.
        permit: Permit,
        /// The session.
        session: SessionId,
        /// The attempt.
        seq: u64,
    },
    /// The remedy of this attempt cannot be done; the next directive goes to `reply`.
    Declined {
        /// Room at the session.
        permit: Permit,
        /// The session.
        session: SessionId,
        /// The attempt.
        seq: u64,
        /// Why.
        reason: Arc<str>,
        /// Who gets the directive.
        reply: DerivedActorRef<RecoveryReply<Directive>>,
    },
    /// Stop the session's episode.
    Cancel {
        /// Room at the session.
        permit: Permit,
        /// The session.
        session: SessionId,
    },
    /// Forget the session.
    Reset {
        /// Room at the session.
        permit: Permit,
        /// The session.
        session: SessionId,
    },
    /// What the session is doing goes to `reply`.
    Status {
        /// Room at the session.
        permit: Permit,
        /// The session.
        session: SessionId,
        /// Who gets the status.
        reply: DerivedActorRef<RecoveryReply<SessionStatus>>,
    },
    /// Cancel the session's episode when this actor ends.
    Watch {
        /// Room at the session.
        permit: Permit,
        /// The session.
        session: SessionId,
        /// The host's actor.
        cell: ActorCell,
    },
    #[cfg(any(test, feature = "test-util"))]
    #[doc(hidden)]
    Panic,
}

/// What an embedder's actor is answered.
#[derive(Debug, Clone)]
pub struct RecoveryReply<T> {
    /// The session that was asked.
    pub session: SessionId,
    /// The answer, or why there is none.
    pub result: Result<T, EngineError>,
}

impl RecoveryMsg {
    fn permit(&mut self) -> Option<&mut Permit> {
        match self {
            Self::Report { permit, .. }
            | Self::Succeeded { permit, .. }
            | Self::Declined { permit, .. }
            | Self::Cancel { permit, .. }
            | Self::Reset { permit, .. }
            | Self::Status { permit, .. }
            | Self::Watch { permit, .. } => Some(permit),
            #[cfg(any(test, feature = "test-util"))]
            Self::Panic => None,
        }
    }
}

pub(crate) fn handle(me: &ActorRef<RecoveryMsg>, mut message: RecoveryMsg, shared: &Arc<Shared>, root: &mut RootState) {
    if let Some(permit) = message.permit() {
        permit.leave_root();
    }
    match message {
        RecoveryMsg::Report { permit, session, report, seq, reply } => {
            let shared = Arc::clone(shared);
            // Detection takes its time over a long text: not the root's.
            tokio::spawn(async move {
                let (incoming, answer) = incoming(&shared, report, seq, permit);
                let sent = shared.send(&session, SessionMsg::Report(Box::new(incoming)));
                forward(&shared, session, sent, answer, reply, Directive::of).await;
            });
        }
        RecoveryMsg::Succeeded { permit, session, seq } => {
            let (sender, _) = oneshot::channel();
            let _ = shared.send(&session, SessionMsg::Worked { seq, reply: Some((sender, permit)) });
        }
        RecoveryMsg::Declined { permit, session, seq, reason, reply } => {
            let (sender, answer) = oneshot::channel();
            let listen = SessionMsg::Declined { seq, reason, reply: Some((sender, permit)) };
            let sent = shared.send(&session, listen);
            let shared = Arc::clone(shared);
            tokio::spawn(async move { forward(&shared, session, sent, answer, reply, Directive::of).await });
        }
        RecoveryMsg::Cancel { permit: _permit, session } => {
            let _ = shared.send(&session, SessionMsg::Cancel { done: None });
        }
        RecoveryMsg::Reset { permit: _permit, session } => {
            let _ = shared.send(&session, SessionMsg::Reset { done: oneshot::channel().0 });
        }
        RecoveryMsg::Status { permit, session, reply } => {
            let (sender, answer) = oneshot::channel();
            let sent = shared.send(&session, SessionMsg::Status { reply: sender });
            let shared = Arc::clone(shared);
            tokio::spawn(async move {
                let _permit = permit;
                let result = match sent {
                    Ok(()) => answer.await.map_err(|_| shared.lost()),
                    Err(end) => Err(end),
                };
                let _ = reply.send_message(RecoveryReply { session, result });
            });
        }
        RecoveryMsg::Watch { permit: _permit, session, cell } => watch(me, shared, root, session, cell),
        #[cfg(any(test, feature = "test-util"))]
        RecoveryMsg::Panic => panic!("asked to panic"),
    }
}

fn watch(me: &ActorRef<RecoveryMsg>, shared: &Arc<Shared>, root: &mut RootState, session: SessionId, cell: ActorCell) {
    me.get_cell().monitor(cell.clone());
    if cell.get_status() >= ActorStatus::Stopping {
        // It ended before anybody watched.
        shared.send_if_any(&session, SessionMsg::Cancel { done: None });
    } else if !root.watched.iter().any(|(known, of)| known.get_id() == cell.get_id() && *of == session) {
        root.watched.push((cell, session));
    }
}

/// A report of an open loop on its way, classified on the detector's snapshot.
pub(crate) fn incoming(
    shared: &Shared,
    report: Report,
    seq: Option<u64>,
    permit: Permit,
) -> (Incoming, oneshot::Receiver<Result<Told, EngineError>>) {
    let (reply, answer) = oneshot::channel();
    let detection = shared.patterns().detect_first(&report, shared.now());
    let incoming = Incoming {
        detection,
        key: ReportKey { seq, turn: report.turn },
        redoer: Redoer::Host,
        client: None,
        deadline: None,
        wants: Wants::Redo,
        driver: None,
        reply,
        permit,
    };
    (incoming, answer)
}

async fn forward<T: ractor::Message>(
    shared: &Shared,
    session: SessionId,
    sent: Result<(), EngineError>,
    answer: oneshot::Receiver<Result<Told, EngineError>>,
    reply: DerivedActorRef<RecoveryReply<T>>,
    of: impl FnOnce(Told) -> T,
) where
    RecoveryReply<T>: ractor::Message,
{
    let result = match sent {
        Ok(()) => answer.await.unwrap_or_else(|_| Err(shared.lost())),
        Err(end) => Err(end),
    };
    // An error means that the asker is gone.
    let _ = reply.send_message(RecoveryReply { session, result: result.map(of) });
}
