//! What a recovery costs beside a bare round trip: the first four rows of the design's numbers.
//!
//! Timings depend on the machine; the ratios printed at the end are taken within one run.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use backstop::policy::Durability;
use backstop::state::{FileStore, FileStoreOptions, RecoveryStateStore, StateRecord};
use backstop::{RecoveryEngine, SessionId};
use criterion::{Criterion, Throughput};
use ractor::Actor;
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, oneshot};

mod common;

use common::{Echo, builder, builder_with, recover, sessions, spread};

const CALLERS: usize = 64;
const UPDATE: &str = "durable update, 64 writers";

/// Nanoseconds per operation, by name, for the ratios.
static MEDIANS: Mutex<BTreeMap<&'static str, Vec<f64>>> = Mutex::new(BTreeMap::new());

fn note(name: &'static str, iters: u64, took: Duration) {
    let each = took.as_nanos() as f64 / iters as f64;
    MEDIANS.lock().unwrap_or_else(PoisonError::into_inner).entry(name).or_default().push(each);
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

/// A durable update of the log alone: records queue while the disk works, and go out as one batch.
fn durable_updates(criterion: &mut Criterion, runtime: &Runtime, dir: &std::path::Path) {
    type Update = (StateRecord, oneshot::Sender<()>);
    let (mut store, _) = FileStore::open(dir, FileStoreOptions::default()).expect("the store opens");
    let (send, receive) = std::sync::mpsc::channel::<Update>();
    let writer = std::thread::spawn(move || {
        while let Ok(first) = receive.recv() {
            let (records, done): (Vec<_>, Vec<_>) = std::iter::once(first).chain(receive.try_iter()).unzip();
            store.append(&records).expect("the disk works");
            for done in done {
                let _ = done.send(());
            }
        }
    });
    let ids = sessions(CALLERS);
    // As long as the memory of a session with an open episode.
    let memory: Arc<[u8]> = vec![b'x'; 1_200].into();
    let revision = Arc::new(AtomicU64::new(0));
    let mut group = criterion.benchmark_group("log");
    group.throughput(Throughput::Elements(1)).sample_size(10).measurement_time(Duration::from_secs(5));
    group.bench_function(UPDATE, |bench| {
        bench.iter_custom(|iters| {
            let (send, ids, memory, revision) =
                (send.clone(), Arc::clone(&ids), Arc::clone(&memory), Arc::clone(&revision));
            let took = runtime.block_on(spread(CALLERS, iters, move |at| {
                let session = ids[at as usize % ids.len()].clone();
                let (revision, memory) = (revision.fetch_add(1, Ordering::Relaxed) + 1, Some(Arc::clone(&memory)));
                let (done, durable) = oneshot::channel();
                let _ = send.send((StateRecord { session, revision, memory }, done));
                async move {
                    let _ = durable.await;
                }
            }));
            note(UPDATE, iters, took);
            took
        });
    });
    group.finish();
    drop(send);
    writer.join().expect("the writer does not panic");
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("threads");
    let mut criterion = Criterion::default().configure_from_args();
    bare(&mut criterion, &runtime);

    let dir = tempfile::tempdir().expect("a directory");
    let start =
        |builder: backstop::engine::EngineBuilder| runtime.block_on(builder.spawn()).expect("the engine starts");
    durable_updates(&mut criterion, &runtime, &dir.path().join("log"));
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
    // Every session has been put away by the time its turn comes again.
    let cold =
        start(builder_with(Durability::Behind, Duration::from_millis(1)).state_dir(dir.path().join("cold")).seed(1));
    recoveries(&mut criterion, &runtime, "behind, 64 callers, cold sessions", &cold, &sessions(20_000), CALLERS);
    runtime.block_on(cold.shutdown());
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
    let bare = ["mpsc+oneshot", "ractor call", UPDATE].map(median);
    println!(
        "\n| what | ns each | × mpsc+oneshot | × ractor call | × durable update |\n| --- | --- | --- | --- | --- |"
    );
    for name in medians.keys() {
        let own = median(name);
        let [mpsc, call, update] = bare.map(|bare| own / bare);
        println!("| {name} | {own:.0} | {mpsc:.2} | {call:.2} | {update:.2} |");
    }
}
