//! What a recovery costs beside a bare round trip: the first four rows of the design's numbers.
//!
//! Timings depend on the machine; the ratios printed at the end are taken within one run.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use backstop::policy::config::ConfigBuilder;
use backstop::policy::{ChainKey, Durability, Step};
use backstop::strategy::{ClientCall, SessionClient};
use backstop::{Category, RecoveryEngine, Report, Runner, SessionId};
use criterion::{Criterion, Throughput};
use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort};
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, oneshot};

const CALLERS: usize = 64;

/// A client that compacts at once and cannot redo.
struct Compacts;

impl SessionClient for Compacts {
    fn compact<'a>(&'a self, _: &'a SessionId, _: &'a [Arc<str>]) -> ClientCall<'a, ()> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// Nanoseconds per operation, by name, for the ratios.
static MEDIANS: Mutex<BTreeMap<&'static str, Vec<f64>>> = Mutex::new(BTreeMap::new());

fn note(name: &'static str, iters: u64, took: Duration) {
    let each = took.as_nanos() as f64 / iters as f64;
    MEDIANS.lock().unwrap_or_else(PoisonError::into_inner).entry(name).or_default().push(each);
}

/// Runs `iters` operations, shared by this many callers at once; the time until the last has ended.
async fn spread<F, Fut>(callers: usize, iters: u64, operation: F) -> Duration
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

fn round_trip() -> mpsc::UnboundedSender<oneshot::Sender<u64>> {
    let (send, mut receive) = mpsc::unbounded_channel::<oneshot::Sender<u64>>();
    tokio::spawn(async move {
        while let Some(reply) = receive.recv().await {
            let _ = reply.send(1);
        }
    });
    send
}

struct Echo;

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

fn builder(durability: Durability) -> backstop::engine::EngineBuilder {
    let loaded = ConfigBuilder::new()
        .durability(durability)
        .chain(ChainKey::Category(Category::SessionError), vec![Step::new("compact")])
        .limits(|limits| {
            // Evaluated, but out of reach.
            limits.max_recoveries = 1_000_000;
            limits.max_same_failure = 1_000_000;
            limits.recovery_window = Duration::from_millis(5);
            limits.waiting_reports = 4_096;
        })
        .build()
        .expect("the configuration is valid");
    let client: Arc<dyn SessionClient> = Arc::new(Compacts);
    RecoveryEngine::builder().config(loaded.config).runner(Runner::Inline).clients(move |_| Some(Arc::clone(&client)))
}

fn sessions(count: usize) -> Arc<Vec<SessionId>> {
    Arc::new((0..count).map(|n| SessionId::new(format!("session-{n}")).expect("a name")).collect())
}

async fn recover(engine: &RecoveryEngine, id: &SessionId) {
    let recovered = engine.recover(id, Report::text("503 Service Unavailable").with_status(503), None).await;
    assert!(recovered.is_ok(), "{:?}", recovered.err());
}

fn recoveries(
    criterion: &mut Criterion,
    runtime: &Runtime,
    name: &'static str,
    engine: &RecoveryEngine,
    ids: &Arc<Vec<SessionId>>,
    callers: usize,
) {
    let mut group = criterion.benchmark_group("recover");
    group.throughput(Throughput::Elements(1)).sample_size(10).measurement_time(Duration::from_secs(5));
    group.bench_function(name, |bench| {
        bench.iter_custom(|iters| {
            let (engine, ids) = (engine.clone(), Arc::clone(ids));
            let took = runtime.block_on(spread(callers, iters, move |at| {
                let (engine, ids) = (engine.clone(), Arc::clone(&ids));
                async move { recover(&engine, &ids[at as usize % ids.len()]).await }
            }));
            note(name, iters, took);
            took
        });
    });
    group.finish();
}

fn bare(criterion: &mut Criterion, runtime: &Runtime) {
    let mut group = criterion.benchmark_group("bare");
    group.throughput(Throughput::Elements(1)).sample_size(10).measurement_time(Duration::from_secs(3));
    group.bench_function("mpsc+oneshot", |bench| {
        bench.iter_custom(|iters| {
            let took = runtime.block_on(async {
                let send = round_trip();
                spread(CALLERS, iters, move |_| {
                    let send = send.clone();
                    async move {
                        let (reply, answer) = oneshot::channel();
                        let _ = send.send(reply);
                        let _ = answer.await;
                    }
                })
                .await
            });
            note("mpsc+oneshot", iters, took);
            took
        });
    });
    group.bench_function("ractor call", |bench| {
        bench.iter_custom(|iters| {
            let took = runtime.block_on(async {
                let (actor, _) = Actor::spawn(None, Echo, ()).await.expect("an actor starts");
                let asked = actor.clone();
                let took = spread(CALLERS, iters, move |_| {
                    let actor = asked.clone();
                    async move {
                        let _ = actor.call(|reply| reply, None).await;
                    }
                })
                .await;
                actor.stop(None);
                took
            });
            note("ractor call", iters, took);
            took
        });
    });
    group.finish();
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("threads");
    let mut criterion = Criterion::default().configure_from_args();
    bare(&mut criterion, &runtime);

    let dir = tempfile::tempdir().expect("a directory");
    let start =
        |builder: backstop::engine::EngineBuilder| runtime.block_on(builder.spawn()).expect("the engine starts");
    let few = sessions(CALLERS);
    let behind = start(builder(Durability::Behind).state_dir(dir.path().join("behind")).seed(1));
    recoveries(&mut criterion, &runtime, "behind, 64 callers", &behind, &few, CALLERS);
    runtime.block_on(behind.shutdown());

    let ahead = start(builder(Durability::Ahead).state_dir(dir.path().join("ahead")).seed(1));
    recoveries(&mut criterion, &runtime, "ahead, 64 callers", &ahead, &few, CALLERS);
    runtime.block_on(ahead.shutdown());

    let many = start(builder(Durability::Behind).state_dir(dir.path().join("many")).seed(1));
    recoveries(&mut criterion, &runtime, "behind, 100 k sessions, 1024 callers", &many, &sessions(100_000), 1_024);
    runtime.block_on(many.shutdown());
    criterion.final_summary();
    ratios();
}

fn ratios() {
    let medians = MEDIANS.lock().unwrap_or_else(PoisonError::into_inner);
    let median = |name: &str| {
        let mut all = medians.get(name).cloned().unwrap_or_default();
        all.sort_by(f64::total_cmp);
        all.get(all.len() / 2).copied().unwrap_or(f64::NAN)
    };
    let (mpsc, call) = (median("mpsc+oneshot"), median("ractor call"));
    println!("\n| what | ns each | × mpsc+oneshot | × ractor call |\n| --- | --- | --- | --- |");
    for name in medians.keys() {
        let own = median(name);
        println!("| {name} | {own:.0} | {:.2} | {:.2} |", own / mpsc, own / call);
    }
}
