//! Backstop as a part of a larger actor system: its root is linked under the host's own actor, which
//! reports its failed children and restarts them on a directive.
//!
//! cargo run --example embedded

use std::collections::HashMap;

use backstop::actors::{Action, Clock, RecoveryReply, SystemClock};
use backstop::engine::RecoverySupervisor;
use backstop::policy::config::ConfigBuilder;
use backstop::{Directive, RecoveryEngine, RecoveryMsg, Report, SessionId};
use ractor::{Actor, ActorCell, ActorId, ActorProcessingErr, ActorRef, SupervisionEvent};

/// A child that does one job and fails until its third life.
struct Worker;

impl Actor for Worker {
    type Msg = ();
    type State = u32;
    type Arguments = u32;

    async fn pre_start(&self, me: ActorRef<()>, life: u32) -> Result<u32, ActorProcessingErr> {
        me.send_message(())?;
        Ok(life)
    }

    async fn handle(&self, me: ActorRef<()>, (): (), life: &mut u32) -> Result<(), ActorProcessingErr> {
        if *life < 3 {
            return Err("connection reset by peer".into());
        }
        me.stop(Some("the job is done".into()));
        Ok(())
    }
}

/// The host's own supervisor.
struct Host;

enum HostMsg {
    Told(RecoveryReply<Directive>),
    Restart(SessionId),
}

impl From<RecoveryReply<Directive>> for HostMsg {
    fn from(reply: RecoveryReply<Directive>) -> Self {
        Self::Told(reply)
    }
}

impl TryFrom<HostMsg> for RecoveryReply<Directive> {
    type Error = ();

    fn try_from(message: HostMsg) -> Result<Self, ()> {
        match message {
            HostMsg::Told(reply) => Ok(reply),
            HostMsg::Restart(_) => Err(()),
        }
    }
}

struct HostState {
    engine: RecoveryEngine,
    /// Which session each child works for.
    children: HashMap<ActorId, SessionId>,
    lives: u32,
}

impl HostState {
    async fn start(&mut self, me: ActorCell, session: SessionId) -> Result<(), ActorProcessingErr> {
        self.lives += 1;
        let (worker, _) = Actor::spawn_linked(None, Worker, self.lives, me).await?;
        println!("{session}: life {}", self.lives);
        self.children.insert(worker.get_id(), session);
        Ok(())
    }
}

impl Actor for Host {
    type Msg = HostMsg;
    type State = HostState;
    type Arguments = ();

    async fn pre_start(&self, me: ActorRef<HostMsg>, (): ()) -> Result<HostState, ActorProcessingErr> {
        let quick = "session_error: [{strategy: retry, config: {backoff_ms: 100, max_retries: 5}}, abort]";
        let loaded = ConfigBuilder::new().yaml("embedded", quick).build()?;
        let builder = RecoveryEngine::builder().config(loaded.config).in_memory();
        let engine = RecoverySupervisor::spawn_linked(builder, me.get_cell()).await?;
        let mut state = HostState { engine, children: HashMap::new(), lives: 0 };
        state.start(me.get_cell(), SessionId::new("worker-1")?).await?;
        Ok(state)
    }

    async fn handle(
        &self,
        me: ActorRef<HostMsg>,
        message: HostMsg,
        state: &mut HostState,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            HostMsg::Told(reply) => match reply.result?.action {
                Action::Redo { not_before, .. } => {
                    let wait = not_before.since(SystemClock.now());
                    println!("{}: restart in {wait:?}", reply.session);
                    me.send_after(wait, move || HostMsg::Restart(reply.session));
                }
                Action::Stop { verdict } => {
                    println!("{}: {verdict}", reply.session);
                    me.stop(None);
                }
            },
            HostMsg::Restart(session) => state.start(me.get_cell(), session).await?,
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        me: ActorRef<HostMsg>,
        event: SupervisionEvent,
        state: &mut HostState,
    ) -> Result<(), ActorProcessingErr> {
        let (cell, failure) = match event {
            SupervisionEvent::ActorFailed(cell, failure) => (cell, Some(failure)),
            SupervisionEvent::ActorTerminated(cell, ..) => (cell, None),
            _ => return Ok(()),
        };
        let Some(session) = state.children.remove(&cell.get_id()) else { return Ok(()) };
        match failure {
            Some(failure) => {
                let permit = state.engine.permit(&session)?;
                let (report, reply) = (Report::text(failure.to_string()), me.get_derived());
                state.engine.supervisor().cast(RecoveryMsg::Report { permit, session, report, seq: None, reply })?;
            }
            None => {
                println!("{session}: worked in life {}", state.lives);
                me.stop(None);
            }
        }
        Ok(())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (_, running) = Actor::spawn(None, Host, ()).await?;
    running.await?;
    Ok(())
}
