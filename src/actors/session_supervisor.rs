//! Watches the sessions' actors: one that fails comes back with its state, within its intensity.

use std::sync::Arc;
use std::time::Duration;

use ractor::{Actor, ActorProcessingErr, ActorRef, SupervisionEvent};

use super::intensity::was_killed;
use super::shared::Shared;
use crate::failure::SessionId;

pub(crate) struct SessionSupervisor;

/// Windows last an hour and retention days, so ten minutes more do not matter.
const SWEEP_EVERY: Duration = Duration::from_secs(600);

pub(crate) enum SupervisorMsg {
    /// A session's actor ended before it was linked, so that no failure was seen.
    NotStarted { session: SessionId, incarnation: u64 },
    /// Time to let go of sessions that need not be remembered.
    Sweep,
    #[cfg(any(test, feature = "test-util"))]
    Panic,
}

impl Actor for SessionSupervisor {
    type Msg = SupervisorMsg;
    type State = Arc<Shared>;
    type Arguments = Arc<Shared>;

    async fn pre_start(
        &self,
        me: ActorRef<SupervisorMsg>,
        shared: Arc<Shared>,
    ) -> Result<Arc<Shared>, ActorProcessingErr> {
        shared.set_sessions(me.clone());
        me.send_interval(SWEEP_EVERY, || SupervisorMsg::Sweep);
        // A supervisor takes its children with it: those of the one before are brought back.
        for (id, entry) in shared.directory.all() {
            shared.bring_back(&id, &entry);
        }
        Ok(shared)
    }

    async fn handle(
        &self,
        _: ActorRef<SupervisorMsg>,
        message: SupervisorMsg,
        shared: &mut Arc<Shared>,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            SupervisorMsg::NotStarted { session, incarnation } => {
                if let Some(entry) = shared.directory.get(&session).filter(|entry| entry.incarnation == incarnation) {
                    shared.bring_back(&session, &entry);
                }
            }
            SupervisorMsg::Sweep => shared.sweep(),
            #[cfg(any(test, feature = "test-util"))]
            SupervisorMsg::Panic => panic!("asked to panic"),
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<SupervisorMsg>,
        event: SupervisionEvent,
        shared: &mut Arc<Shared>,
    ) -> Result<(), ActorProcessingErr> {
        let gone = match event {
            SupervisionEvent::ActorFailed(cell, error) => {
                let words = error.to_string();
                tracing::error!(error = &*crate::failure::mask(&words), "a session's actor failed");
                cell
            }
            // Those that end by themselves have left the directory before, and give their state back.
            SupervisionEvent::ActorTerminated(cell, state, reason)
                if state.is_none() || was_killed(reason.as_deref()) =>
            {
                cell
            }
            _ => return Ok(()),
        };
        if let Some((id, entry)) = shared.directory.session_of(&gone) {
            shared.revive(&id, &entry);
        }
        Ok(())
    }
}
