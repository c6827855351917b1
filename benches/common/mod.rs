//! What the benchmarks share: the engine under test, and what it is compared with.
#![allow(dead_code, reason = "each benchmark uses a part")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use backstop::policy::config::ConfigBuilder;
use backstop::policy::{ChainKey, Durability, Step};
use backstop::strategy::{ClientCall, SessionClient};
use backstop::{Category, RecoveryEngine, Report, Runner, SessionId};
use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort};

/// A client that compacts at once and cannot redo.
pub struct Compacts;

impl SessionClient for Compacts {
    fn compact<'a>(&'a self, _: &'a SessionId, _: &'a [Arc<str>]) -> ClientCall<'a, ()> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// Runs `iters` operations, shared by this many callers at once; the time until the last has ended.
pub async fn spread<F, Fut>(callers: usize, iters: u64, operation: F) -> Duration
where
    F: Fn(u64) -> Fut + Clone + Send + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    let started = Instant::now();
    let callers = callers.min(iters as usize).max(1) as u64;
    let tasks: Vec<_> = (0..callers)
        .map(|caller| {
            let operation = operation.clone();
            tokio::spawn(async move {
                let mut at = caller;
                while at < iters {
                    operation(at).await;
                    at += callers;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("a caller does not panic");
    }
    started.elapsed()
}

/// A bare actor that answers at once.
pub struct Echo;

impl Actor for Echo {
    type Msg = RpcReplyPort<u64>;
    type State = ();
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<Self::Msg>, (): ()) -> Result<(), ActorProcessingErr> {
        Ok(())
    }

    async fn handle(&self, _: ActorRef<Self::Msg>, reply: Self::Msg, (): &mut ()) -> Result<(), ActorProcessingErr> {
        let _ = reply.send(1);
        Ok(())
    }
}

/// An engine whose limits are evaluated but out of reach, with a client that can compact only.
pub fn builder(durability: Durability) -> backstop::engine::EngineBuilder {
    builder_with(durability, Duration::from_secs(60))
}

/// The same, with another time until idle sessions are put away.
pub fn builder_with(durability: Durability, passivate_after: Duration) -> backstop::engine::EngineBuilder {
    let loaded = ConfigBuilder::new()
        .durability(durability)
        .chain(ChainKey::Category(Category::SessionError), vec![Step::new("compact")])
        .limits(move |limits| {
            // Evaluated, but out of reach.
            limits.max_recoveries = 1_000_000;
            limits.max_same_failure = 1_000_000;
            limits.recovery_window = Duration::from_millis(5);
            limits.waiting_reports = 4_096;
            limits.passivate_after = passivate_after;
        })
        .build()
        .expect("the configuration is valid");
    let client: Arc<dyn SessionClient> = Arc::new(Compacts);
    RecoveryEngine::builder().config(loaded.config).runner(Runner::Inline).clients(move |_| Some(Arc::clone(&client)))
}

/// An engine with the usual limits over a session's episodes, so that everything is remembered for days.
pub fn remembering(durability: Durability) -> backstop::engine::EngineBuilder {
    let loaded = ConfigBuilder::new()
        .durability(durability)
        .chain(ChainKey::Category(Category::SessionError), vec![Step::new("compact")])
        // A hundred thousand live sessions take their time to end.
        .limits(|limits| limits.shutdown_timeout = Duration::from_secs(120))
        .build()
        .expect("the configuration is valid");
    let client: Arc<dyn SessionClient> = Arc::new(Compacts);
    RecoveryEngine::builder().config(loaded.config).runner(Runner::Inline).clients(move |_| Some(Arc::clone(&client)))
}

/// That many ids.
pub fn sessions(count: usize) -> Arc<Vec<SessionId>> {
    Arc::new((0..count).map(|n| SessionId::new(format!("session-{n}")).expect("a name")).collect())
}

/// One recovery.
pub async fn recover(engine: &RecoveryEngine, id: &SessionId) {
    let recovered = engine.recover(id, Report::text("503 Service Unavailable").with_status(503), None).await;
    assert!(recovered.is_ok(), "{:?}", recovered.err());
}
