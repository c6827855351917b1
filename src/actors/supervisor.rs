//! The root of the actor tree; it also stands linked under an embedder's actor.

use std::sync::Arc;

use ractor::{Actor, ActorCell, ActorProcessingErr, ActorRef, SupervisionEvent};

use super::detector::DetectorActor;
use super::embed::RecoveryMsg;
use super::intensity::{Intensity, was_killed};
use super::messages::SessionMsg;
use super::metrics::{Collected, MetricsActor};
use super::persistence::{PersistenceActor, PersistenceArgs};
use super::session_supervisor::SessionSupervisor;
use super::shared::Shared;
use crate::failure::SessionId;

/// Restarts a shared actor that fails; one that fails too often stops the root, which the root's
/// parent sees.
pub(crate) struct Root;

pub(crate) struct RootArgs {
    pub shared: Arc<Shared>,
    pub collected: Collected,
    pub inline: bool,
}

pub(crate) struct RootState {
    args: RootArgs,
    children: Vec<Child>,
    /// Sessions whose episodes end with an actor of the host's.
    pub watched: Vec<(ActorCell, SessionId)>,
}

struct Child {
    cell: ActorCell,
    which: Which,
    intensity: Intensity,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Which {
    Detector,
    Persistence,
    Metrics,
    Sessions,
}

impl Actor for Root {
    type Msg = RecoveryMsg;
    type State = RootState;
    type Arguments = RootArgs;

    async fn pre_start(&self, me: ActorRef<RecoveryMsg>, args: RootArgs) -> Result<RootState, ActorProcessingErr> {
        args.shared.lanes.set_parent(me.get_cell());
        let mut state = RootState { args, children: vec![], watched: vec![] };
        for which in [Which::Detector, Which::Persistence, Which::Metrics, Which::Sessions] {
            let cell = state.spawn(which, me.get_cell()).await?;
            state.children.push(Child { cell, which, intensity: Intensity::default() });
        }
        Ok(state)
    }

    async fn handle(
        &self,
        me: ActorRef<RecoveryMsg>,
        message: RecoveryMsg,
        state: &mut RootState,
    ) -> Result<(), ActorProcessingErr> {
        let shared = Arc::clone(&state.args.shared);
        super::embed::handle(&me, message, &shared, state);
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        me: ActorRef<RecoveryMsg>,
        event: SupervisionEvent,
        state: &mut RootState,
    ) -> Result<(), ActorProcessingErr> {
        match event {
            SupervisionEvent::ActorFailed(cell, _) => state.ended(&me, &cell, true).await,
            // One that ends by itself gives its state back: a lane out of use, or somebody else's actor.
            SupervisionEvent::ActorTerminated(cell, left, reason) => {
                state.ended(&me, &cell, left.is_none() || was_killed(reason.as_deref())).await
            }
            _ => Ok(()),
        }
    }
}

impl RootState {
    async fn spawn(&self, which: Which, me: ActorCell) -> Result<ActorCell, ractor::SpawnErr> {
        let RootArgs { shared, collected, inline } = &self.args;
        let shared = Arc::clone(shared);
        Ok(match which {
            Which::Detector => {
                let (actor, _) = Actor::spawn_linked(None, DetectorActor, Arc::clone(&shared), me).await?;
                shared.set_detector(actor.clone());
                actor.get_cell()
            }
            Which::Persistence => {
                let writer = Arc::clone(&shared.writer);
                let args = PersistenceArgs { shared: Arc::clone(&shared), writer, inline: *inline };
                let (actor, _) = Actor::spawn_linked(None, PersistenceActor, args, me).await?;
                actor.get_cell()
            }
            Which::Metrics => {
                let (actor, _) = Actor::spawn_linked(None, MetricsActor, collected.clone(), me).await?;
                shared.set_metrics(actor.clone());
                actor.get_cell()
            }
            Which::Sessions => {
                let (actor, _) = Actor::spawn_linked(None, SessionSupervisor, shared, me).await?;
                actor.get_cell()
            }
        })
    }

    async fn ended(
        &mut self,
        me: &ActorRef<RecoveryMsg>,
        cell: &ActorCell,
        failed: bool,
    ) -> Result<(), ActorProcessingErr> {
        let shared = Arc::clone(&self.args.shared);
        for (_, session) in self.watched.extract_if(.., |(watched, _)| watched.get_id() == cell.get_id()) {
            shared.send_if_any(&session, SessionMsg::Cancel { done: None });
        }
        let Some(index) = self.children.iter().position(|child| child.cell.get_id() == cell.get_id()) else {
            return match failed && !shared.lanes.revive(cell) {
                true => Err("a lane's actor failed too often".into()),
                false => Ok(()),
            };
        };
        let (config, now) = (shared.config(), shared.now());
        let limits = config.limits();
        let which = self.children[index].which;
        if !self.children[index].intensity.restart(limits.restart_intensity, limits.restart_window, now) {
            return Err(format!("the {which:?} actor failed too often").into());
        }
        tracing::error!(actor = ?which, "a shared actor failed and is restarted");
        self.children[index].cell = self.spawn(which, me.get_cell()).await?;
        Ok(())
    }
}

impl Drop for RootState {
    fn drop(&mut self) {
        // However the root ends, nobody waits for an answer that will not come.
        self.args.shared.stop();
    }
}
