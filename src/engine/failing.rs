//! Deliberate failures of actors, for tests of systems that embed Backstop.

use ractor::ActorCell;

use super::RecoveryEngine;
use crate::actors::{DetectorMsg, LaneMsg, MetricsMsg, PersistenceMsg, RecoveryMsg, SessionMsg, SupervisorMsg};
use crate::failure::{LaneKey, SessionId};

/// The actor that is to fail.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Target {
    /// A session's, if it lives.
    Session(SessionId),
    /// The one writer.
    Persistence,
    /// The one that aggregates.
    Metrics,
    /// The one that owns the patterns.
    Detector,
    /// A lane's, if it is in use.
    Lane(LaneKey),
    /// The supervisor of the sessions' actors.
    Sessions,
    /// The root of the tree.
    Root,
}

impl RecoveryEngine {
    /// Makes an actor panic at its next message; tells whether it lived.
    pub fn test_panic(&self, target: &Target) -> bool {
        let shared = self.shared();
        match target {
            Target::Session(id) => {
                shared.directory.get(id).is_some_and(|entry| entry.actor.send_message(SessionMsg::Panic).is_ok())
            }
            Target::Persistence => sent(shared.persistence(), PersistenceMsg::Panic),
            Target::Metrics => sent(shared.metrics(), MetricsMsg::Panic),
            Target::Detector => sent(shared.detector(), DetectorMsg::Panic),
            Target::Lane(key) => sent(shared.lanes.actor(key), LaneMsg::Panic),
            Target::Sessions => sent(shared.sessions(), SupervisorMsg::Panic),
            Target::Root => self.root().send_message(RecoveryMsg::Panic).is_ok(),
        }
    }

    /// Kills an actor; tells whether it lived.
    pub fn test_kill(&self, target: &Target) -> bool {
        let shared = self.shared();
        let cell: Option<ActorCell> = match target {
            Target::Session(id) => shared.directory.get(id).map(|entry| entry.actor.get_cell()),
            Target::Persistence => shared.persistence().map(|actor| actor.get_cell()),
            Target::Metrics => shared.metrics().map(|actor| actor.get_cell()),
            Target::Detector => shared.detector().map(|actor| actor.get_cell()),
            Target::Lane(key) => shared.lanes.actor(key).map(|actor| actor.get_cell()),
            Target::Sessions => shared.sessions().map(|actor| actor.get_cell()),
            Target::Root => Some(self.root().get_cell()),
        };
        cell.is_some_and(|cell| {
            let lived = cell.get_status() < ractor::ActorStatus::Stopping;
            cell.kill();
            lived
        })
    }
}

fn sent<M: ractor::Message>(actor: Option<ractor::ActorRef<M>>, message: M) -> bool {
    actor.is_some_and(|actor| actor.send_message(message).is_ok())
}
