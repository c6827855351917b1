//! A flood of reports, at one session and at the root: memory is bounded, the excess is told so at once,
//! and everybody who was let in is answered.

#![allow(clippy::unwrap_used)]

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use backstop::actors::RecoveryReply;
use backstop::{Answer, Directive, EngineError, RecoveryConfig, RecoveryEngine, RecoveryMsg, Report, SessionId};
use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::sync::watch;

const CHAIN: &str = "known_strategies: [own]\nsession_error: [own, abort]\n";
const MOST: usize = 64 << 20;

/// `BACKSTOP_FLOOD=1000000` for the whole flood.
fn drops() -> usize {
    std::env::var("BACKSTOP_FLOOD").ok().and_then(|count| count.parse().ok()).unwrap_or(200_000)
}

/// Far more bytes than memory may grow by, if they were kept. All are of one turn: they join.
fn report() -> Report {
    Report::text(format!("503 Service Unavailable: {}", "x".repeat(2_000))).with_turn(1)
}

async fn engine(until: watch::Receiver<bool>) -> RecoveryEngine {
    let config = RecoveryConfig::parse("flood.yaml", CHAIN).unwrap().config;
    let own = move |_| {
        let mut until = until.clone();
        async move {
            let _ = until.wait_for(|open| *open).await;
            Answer::success("done")
        }
    };
    RecoveryEngine::builder().config(config).in_memory().strategy_fn("own", own).spawn().await.unwrap()
}

fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() << 10
}

async fn at_one_session() {
    let (open, until) = watch::channel(false);
    let engine = engine(until).await;
    let session = SessionId::new("s").unwrap();
    engine.report(&session, Report::text("all is well")).await.unwrap();
    let (before, mut accepted, mut busy) = (resident(), vec![], 0);
    for _ in 0..drops() {
        let mut future = Box::pin(engine.report(&session, report()));
        match poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await {
            Poll::Pending => accepted.push(future),
            Poll::Ready(Err(EngineError::Busy)) => busy += 1,
            Poll::Ready(other) => panic!("{other:?}"),
        }
    }
    let grown = resident().saturating_sub(before);
    assert!(grown <= MOST, "{grown} bytes");
    assert_eq!((accepted.len(), busy), (17, drops() - 17));
    open.send_replace(true);
    for future in accepted {
        assert!(future.await.unwrap().is_redo());
    }
    engine.shutdown().await;
}

struct Host;

impl Actor for Host {
    type Msg = RecoveryReply<Directive>;
    type State = Arc<AtomicUsize>;
    type Arguments = Arc<AtomicUsize>;

    async fn pre_start(
        &self,
        _: ActorRef<Self::Msg>,
        heard: Arc<AtomicUsize>,
    ) -> Result<Arc<AtomicUsize>, ActorProcessingErr> {
        Ok(heard)
    }

    async fn handle(
        &self,
        _: ActorRef<Self::Msg>,
        reply: Self::Msg,
        heard: &mut Arc<AtomicUsize>,
    ) -> Result<(), ActorProcessingErr> {
        assert!(reply.result.is_ok_and(|directive| directive.is_redo()), "the answer of all");
        heard.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

async fn at_the_root() {
    const SESSIONS: usize = 50;
    let (open, until) = watch::channel(false);
    let engine = engine(until).await;
    let sessions: Vec<SessionId> = (0..SESSIONS).map(|n| SessionId::new(format!("s{n}")).unwrap()).collect();
    for session in &sessions {
        engine.report(session, Report::text("all is well")).await.unwrap();
    }
    let heard = Arc::new(AtomicUsize::new(0));
    let (host, _) = Actor::spawn(None, Host, Arc::clone(&heard)).await.unwrap();
    let root = engine.supervisor();
    let (before, mut accepted, mut busy) = (resident(), 0, 0);
    for n in 0..drops() {
        let session = sessions[n % SESSIONS].clone();
        match engine.permit(&session) {
            Ok(permit) => {
                let reply = host.get_derived();
                let message = RecoveryMsg::Report { permit, session, report: report(), seq: None, reply };
                root.send_message(message).unwrap();
                accepted += 1;
            }
            Err(EngineError::Busy) => busy += 1,
            Err(other) => panic!("{other}"),
        }
    }
    let grown = resident().saturating_sub(before);
    assert!(grown <= MOST, "{grown} bytes");
    assert_eq!((accepted, busy), (17 * SESSIONS, drops() - 17 * SESSIONS));
    open.send_replace(true);
    while heard.load(Ordering::Relaxed) < accepted {
        tokio::task::yield_now().await;
    }
    engine.shutdown().await;
}

/// One test, as both look at the memory of the whole process.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_is_bounded_and_whoever_is_let_in_is_answered() {
    at_one_session().await;
    at_the_root().await;
}
