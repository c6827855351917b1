//! An engine under a host's own actor: it sees the root's end, its actors are watched, all are answered.

use backstop::actors::{RecoveryReply, SessionStatus};
use backstop::engine::{RecoverySupervisor, Target};
use backstop::{Directive, EngineError, RecoveryEngine, RecoveryMsg, Verdict};
use ractor::{Actor, ActorProcessingErr, ActorRef, SupervisionEvent};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::sleep;

use crate::fixture::{Log, builder, failure, id, secs};

/// What a host's actor hears.
enum HostMsg {
    Told(RecoveryReply<Directive>),
    Status(RecoveryReply<SessionStatus>),
}

impl From<RecoveryReply<Directive>> for HostMsg {
    fn from(reply: RecoveryReply<Directive>) -> Self {
        Self::Told(reply)
    }
}

impl From<RecoveryReply<SessionStatus>> for HostMsg {
    fn from(reply: RecoveryReply<SessionStatus>) -> Self {
        Self::Status(reply)
    }
}

impl TryFrom<HostMsg> for RecoveryReply<Directive> {
    type Error = ();

    fn try_from(message: HostMsg) -> Result<Self, ()> {
        match message {
            HostMsg::Told(reply) => Ok(reply),
            HostMsg::Status(_) => Err(()),
        }
    }
}

impl TryFrom<HostMsg> for RecoveryReply<SessionStatus> {
    type Error = ();

    fn try_from(message: HostMsg) -> Result<Self, ()> {
        match message {
            HostMsg::Status(reply) => Ok(reply),
            HostMsg::Told(_) => Err(()),
        }
    }
}

struct Host;

impl Actor for Host {
    type Msg = HostMsg;
    type State = (UnboundedSender<HostMsg>, Log);
    type Arguments = (UnboundedSender<HostMsg>, Log);

    async fn pre_start(&self, _: ActorRef<HostMsg>, args: Self::Arguments) -> Result<Self::State, ActorProcessingErr> {
        Ok(args)
    }

    async fn handle(
        &self,
        _: ActorRef<HostMsg>,
        message: HostMsg,
        (heard, _): &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        Ok(heard.send(message)?)
    }

    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<HostMsg>,
        event: SupervisionEvent,
        (_, log): &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        match event {
            SupervisionEvent::ActorFailed(_, why) => log.note(format!("failed: {why}")),
            SupervisionEvent::ActorTerminated(..) => log.note("terminated"),
            _ => {}
        }
        Ok(())
    }
}

struct Setup {
    engine: RecoveryEngine,
    host: ActorRef<HostMsg>,
    heard: UnboundedReceiver<HostMsg>,
    log: Log,
}

async fn under_a_host(yaml: &str) -> Setup {
    let ((sender, heard), log) = (unbounded_channel(), Log::default());
    let (host, _) = Actor::spawn(None, Host, (sender, log.clone())).await.unwrap();
    let builder = builder(yaml).strategy_fn("own", |_| std::future::pending());
    let engine = RecoverySupervisor::spawn_linked(builder, host.get_cell()).await.unwrap();
    Setup { engine, host, heard, log }
}

const OWN: &str = "known_strategies: [own]\nsession_error: [own, abort]\n";

impl Setup {
    fn report(&self, name: &str) -> Result<(), EngineError> {
        let (session, reply) = (id(name), self.host.get_derived());
        let permit = self.engine.permit(&session)?;
        let message = RecoveryMsg::Report { permit, session, report: failure(), seq: None, reply };
        self.engine.supervisor().send_message(message).map_err(|_| EngineError::Stopped)
    }

    async fn told(&mut self) -> RecoveryReply<Directive> {
        self.heard.recv().await.unwrap().try_into().unwrap()
    }
}

#[tokio::test(start_paused = true)]
async fn the_hosts_actor_sees_the_engine_end_and_whoever_waits_is_told() {
    let mut setup = under_a_host(OWN).await;
    setup.report("s").unwrap();
    sleep(secs(1)).await;
    for _ in 0..6 {
        setup.engine.test_panic(&Target::Persistence);
        sleep(std::time::Duration::from_millis(10)).await;
    }
    let reply = setup.told().await;
    assert_eq!((reply.session, reply.result.unwrap_err()), (id("s"), EngineError::Stopped));
    assert_eq!(setup.log.all(), ["failed: the Persistence actor failed too often"]);
    assert_eq!(setup.report("s").unwrap_err(), EngineError::Stopped);
}

#[tokio::test(start_paused = true)]
async fn a_root_that_panics_is_seen_and_leaves_nobody_waiting() {
    let mut setup = under_a_host(OWN).await;
    setup.report("s").unwrap();
    sleep(secs(1)).await;
    setup.engine.test_panic(&Target::Root);
    assert_eq!(setup.told().await.result.unwrap_err(), EngineError::Stopped);
    sleep(secs(1)).await;
    assert_eq!(setup.log.all().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_engine_ends_with_the_hosts_actor() {
    let setup = under_a_host(OWN).await;
    let engine = setup.engine.clone();
    let waiting = tokio::spawn(async move { engine.recover(&id("s"), failure(), None).await });
    sleep(secs(1)).await;
    setup.host.stop(None);
    assert!(waiting.await.unwrap().is_err());
    assert_eq!(setup.engine.report(&id("s"), failure()).await.unwrap_err(), EngineError::Stopped);
}

#[tokio::test(start_paused = true)]
async fn messages_are_answered_until_the_shutdown_and_by_it() {
    let mut setup = under_a_host(OWN).await;
    setup.report("s").unwrap();
    sleep(secs(1)).await;
    let permit = setup.engine.permit(&id("s")).unwrap();
    let reply = setup.host.get_derived();
    let message = RecoveryMsg::Status { permit, session: id("s"), reply };
    setup.engine.supervisor().send_message(message).unwrap();
    let status: RecoveryReply<SessionStatus> = setup.heard.recv().await.unwrap().try_into().unwrap();
    assert_eq!(status.result.unwrap().episode.unwrap().executions, 1);
    setup.engine.shutdown().await;
    assert_eq!(setup.told().await.result.unwrap_err(), EngineError::ShuttingDown);
    assert_eq!(setup.log.all(), ["terminated"]);
}

#[tokio::test(start_paused = true)]
async fn an_episode_is_cancelled_with_the_actor_that_it_was_for() {
    for ends_first in [false, true] {
        let mut setup = under_a_host(OWN).await;
        let (sender, _heard) = unbounded_channel();
        let (agent, ended) = Actor::spawn(None, Host, (sender, Log::default())).await.unwrap();
        setup.report("s").unwrap();
        setup.report("other").unwrap();
        sleep(secs(1)).await;
        if ends_first {
            agent.stop(None);
            ended.await.unwrap();
            setup.engine.watch(id("s"), agent.get_cell()).unwrap();
        } else {
            setup.engine.watch(id("s"), agent.get_cell()).unwrap();
            sleep(secs(1)).await;
            assert!(setup.engine.status(&id("s")).await.unwrap().episode.is_some());
            agent.kill();
        }
        let reply = setup.told().await;
        assert_eq!(reply.session, id("s"));
        assert_eq!(reply.result.unwrap().verdict(), Some(&Verdict::Cancelled));
        assert!(setup.engine.status(&id("other")).await.unwrap().episode.is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn the_roots_mail_is_bounded_over_all_sessions() {
    let setup = under_a_host(OWN).await;
    let mut accepted = 0;
    let busy = (0..100_000).find_map(|n| match setup.report(&format!("s{}", n % 3_000)) {
        Ok(()) => {
            accepted += 1;
            None
        }
        Err(error) => Some(error),
    });
    assert_eq!(busy, Some(EngineError::Busy));
    assert_eq!(accepted, 16_384, "the root has not had its turn yet");
    setup.engine.shutdown().await;
}
