//! The messages of an embedder: what its own actors send to the root.

use std::sync::Arc;

use ractor::{ActorCell, ActorRef, DerivedActorRef};
use tokio::sync::oneshot;

use super::admission::Permit;
use super::desk::{Incoming, Wants};
use super::directive::Directive;
use super::messages::{SessionMsg, SessionStatus};
use super::outcome::EngineError;
use super::shared::Shared;
use super::supervisor::RootState;
use crate::failure::{Report, SessionId};
use crate::policy::machine::Redoer;
use crate::policy::session::ReportKey;

/// What an embedder's actors send to the root of an engine's actors.
///
/// Mailboxes have no bound of their own, so each message carries a [`Permit`] of its session, which
/// `RecoveryEngine::permit` gives out while there is room.
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
        reply: DerivedActorRef<Directive>,
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
        reply: DerivedActorRef<Directive>,
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
        reply: DerivedActorRef<SessionStatus>,
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
}

pub(crate) fn handle(me: &ActorRef<RecoveryMsg>, message: RecoveryMsg, shared: &Arc<Shared>, root: &mut RootState) {
    match message {
        RecoveryMsg::Report { permit, session, report, seq, reply } => {
            let (incoming, answer) = incoming(shared, report, seq, permit);
            if shared.send(&session, SessionMsg::Report(Box::new(incoming))).is_ok() {
                forward(answer, reply);
            }
        }
        RecoveryMsg::Succeeded { permit: _permit, session, seq } => {
            let _ = shared.send(&session, SessionMsg::Worked { seq, reply: None });
        }
        RecoveryMsg::Declined { permit, session, seq, reason, reply } => {
            let (sender, answer) = oneshot::channel();
            let listen = SessionMsg::Declined { seq, reason, reply: Some((sender, permit)) };
            if shared.send(&session, listen).is_ok() {
                forward(answer, reply);
            }
        }
        RecoveryMsg::Cancel { permit: _permit, session } => {
            let _ = shared.send(&session, SessionMsg::Cancel { done: None });
        }
        RecoveryMsg::Reset { permit: _permit, session } => {
            let _ = shared.send(&session, SessionMsg::Reset { done: oneshot::channel().0 });
        }
        RecoveryMsg::Status { permit: _permit, session, reply } => {
            let (sender, answer) = oneshot::channel();
            if shared.send(&session, SessionMsg::Status { reply: sender }).is_ok() {
                tokio::spawn(async move {
                    if let Ok(status) = answer.await {
                        let _ = reply.send_message(status);
                    }
                });
            }
        }
        RecoveryMsg::Watch { permit: _permit, session, cell } => {
            me.get_cell().monitor(cell.clone());
            root.watched.push((cell, session));
        }
    }
}

/// A report of an open loop on its way, classified on the detector's snapshot.
pub(crate) fn incoming(
    shared: &Shared,
    report: Report,
    seq: Option<u64>,
    permit: Permit,
) -> (Incoming, oneshot::Receiver<Result<super::outcome::Told, EngineError>>) {
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

fn forward(answer: oneshot::Receiver<Result<super::outcome::Told, EngineError>>, reply: DerivedActorRef<Directive>) {
    tokio::spawn(async move {
        if let Ok(Ok(told)) = answer.await {
            let _ = reply.send_message(Directive::of(told));
        }
    });
}
