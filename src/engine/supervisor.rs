use ractor::ActorCell;

use super::{EngineBuilder, RecoveryEngine, StartError};
use crate::policy::RecoveryConfig;

/// The root of an engine's actors as a host's own actor sees it: spawned linked under it.
///
/// The host's actor sees the root end when a shared actor fails too often, and the engine ends with the
/// host's actor. A host reports the failures of its own children where it sees them, in
/// `handle_supervisor_evt`, and restarts a child when the directive says so:
///
/// ```
/// use backstop::actors::{RecoveryMsg, RecoveryReply};
/// use backstop::engine::RecoverySupervisor;
/// use backstop::{Directive, RecoveryEngine, Report, SessionId};
/// use ractor::{Actor, ActorProcessingErr, ActorRef, SupervisionEvent};
/// # use tokio::sync::mpsc::UnboundedSender;
///
/// /// A sub-agent: it fails until somebody has restarted it.
/// struct Worker;
/// # impl Actor for Worker {
/// #     type Msg = ();
/// #     type State = u32;
/// #     type Arguments = u32;
/// #     async fn pre_start(&self, me: ActorRef<()>, redo: u32) -> Result<u32, ActorProcessingErr> {
/// #         me.send_message(())?;
/// #         Ok(redo)
/// #     }
/// #     async fn handle(&self, me: ActorRef<()>, _: (), redo: &mut u32) -> Result<(), ActorProcessingErr> {
/// #         if *redo == 0 { return Err("503 Service Unavailable".into()) }
/// #         me.stop(None);
/// #         Ok(())
/// #     }
/// # }
///
/// /// What the fleet's supervisor is told.
/// enum FleetMsg {
///     Recovery(RecoveryReply<Directive>),
/// }
/// # impl From<RecoveryReply<Directive>> for FleetMsg {
/// #     fn from(reply: RecoveryReply<Directive>) -> Self { Self::Recovery(reply) }
/// # }
/// # impl TryFrom<FleetMsg> for RecoveryReply<Directive> {
/// #     type Error = std::convert::Infallible;
/// #     fn try_from(FleetMsg::Recovery(reply): FleetMsg) -> Result<Self, Self::Error> { Ok(reply) }
/// # }
///
/// struct Fleet;
///
/// struct FleetState {
///     engine: RecoveryEngine,
///     session: SessionId,
///     seq: Option<u64>,
/// #     done: UnboundedSender<u64>,
/// }
///
/// impl Actor for Fleet {
///     type Msg = FleetMsg;
///     type State = FleetState;
/// #     type Arguments = UnboundedSender<u64>;
/// #     /*
///     type Arguments = ();
/// #     */
///
/// #     async fn pre_start(&self, me: ActorRef<FleetMsg>, done: UnboundedSender<u64>) -> Result<FleetState, ActorProcessingErr> {
/// #     /*
///     async fn pre_start(&self, me: ActorRef<FleetMsg>, (): ()) -> Result<FleetState, ActorProcessingErr> {
/// #     */
///         let builder = RecoveryEngine::builder().in_memory();
///         let engine = RecoverySupervisor::spawn_linked(builder, me.get_cell()).await?;
///         Actor::spawn_linked(None, Worker, 0, me.get_cell()).await?;
///         Ok(FleetState { engine, session: SessionId::new("worker-1")?, seq: None /* … */ , done })
///     }
///
///     async fn handle_supervisor_evt(
///         &self,
///         me: ActorRef<FleetMsg>,
///         event: SupervisionEvent,
///         state: &mut FleetState,
///     ) -> Result<(), ActorProcessingErr> {
///         let session = state.session.clone();
///         match event {
///             SupervisionEvent::ActorFailed(_, error) => {
///                 // `Busy` while the session has no room: nothing is queued without bound.
///                 let permit = state.engine.permit(&session)?;
///                 let report = Report::text(error.to_string());
///                 let reply = me.get_derived();
///                 let message = RecoveryMsg::Report { permit, session, report, seq: state.seq, reply };
///                 state.engine.supervisor().send_message(message)?;
///             }
///             SupervisionEvent::ActorTerminated(..) => {
///                 // The restarted worker has done its turn.
///                 if let Some(seq) = state.seq.take() {
///                     let permit = state.engine.permit(&session)?;
///                     state.engine.supervisor().send_message(RecoveryMsg::Succeeded { permit, session, seq })?;
/// #                     state.done.send(seq)?;
///                 }
///             }
///             _ => {}
///         }
///         Ok(())
///     }
///
///     async fn handle(
///         &self,
///         me: ActorRef<FleetMsg>,
///         FleetMsg::Recovery(reply): FleetMsg,
///         state: &mut FleetState,
///     ) -> Result<(), ActorProcessingErr> {
///         let directive = reply.result?;
///         if directive.is_redo() {
///             // At `directive.not_before()`, with what `directive` asks of the turn.
///             state.seq = Some(directive.seq);
///             Actor::spawn_linked(None, Worker, 1, me.get_cell()).await?;
///         }
///         Ok(())
///     }
/// }
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let (done, mut heard) = tokio::sync::mpsc::unbounded_channel();
/// # let (fleet, _) = Actor::spawn(None, Fleet, done).await?;
/// # assert_eq!(heard.recv().await, Some(1));
/// # fleet.stop(None);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct RecoverySupervisor;

impl RecoverySupervisor {
    /// Starts an engine linked under one of the host's actors: a configuration, or a whole builder.
    ///
    /// # Errors
    ///
    /// [`StartError`]; nothing is left running.
    pub async fn spawn_linked(
        engine: impl Into<EngineBuilder>,
        parent: ActorCell,
    ) -> Result<RecoveryEngine, StartError> {
        engine.into().spawn_linked(parent).await
    }
}

impl From<RecoveryConfig> for EngineBuilder {
    fn from(config: RecoveryConfig) -> Self {
        Self::default().config(config)
    }
}
