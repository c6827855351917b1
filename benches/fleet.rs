//! What a fleet costs: memory of idle sessions beside bare actors, and how long recoveries take at an
//! offered load, from the moment at which each should have begun.

use std::sync::Arc;
use std::time::{Duration, Instant};

use backstop::RecoveryEngine;
use backstop::policy::Durability;
use ractor::{Actor, ActorRef};
use tokio::runtime::Runtime;

mod common;

use common::{Echo, builder, builder_with, recover, sessions, spread};

fn main() {
    // `cargo test --benches` only asks whether it runs.
    let is_bench = std::env::args().any(|arg| arg == "--bench");
    let (sessions, seconds) = if is_bench { (100_000, 10) } else { (1_000, 1) };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("threads");
    memory(&runtime, sessions);
    let rate = std::env::var("BACKSTOP_RATE").ok().and_then(|rate| rate.parse().ok());
    latency(&runtime, sessions, rate.unwrap_or(40_000).min(sessions as u64), Duration::from_secs(seconds));
}

/// Resident bytes of this process.
fn resident() -> f64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    pages.split(' ').nth(1).and_then(|pages| pages.parse::<f64>().ok()).unwrap_or(f64::NAN) * 4_096.0
}

fn memory(runtime: &Runtime, count: usize) {
    let each = |before: f64| (resident() - before) / count as f64;
    let ids = sessions(count);

    // Sessions first: memory that bare actors leave behind would be used again.
    let before = resident();
    let engine = runtime.block_on(builder(Durability::Off).in_memory().seed(1).spawn()).expect("the engine starts");
    recover_all(runtime, &engine, &ids);
    let live = each(before);
    runtime.block_on(engine.shutdown());
    drop(engine);

    let before = resident();
    let parent = runtime.block_on(Actor::spawn(None, Echo, ())).expect("an actor starts").0;
    let linked: Vec<ActorRef<_>> = runtime.block_on(async {
        let mut linked = Vec::with_capacity(count);
        for _ in 0..count {
            linked.push(Actor::spawn_linked(None, Echo, (), parent.get_cell()).await.expect("an actor starts").0);
        }
        linked
    });
    let bare = each(before);
    parent.stop(None);
    drop(linked);

    let before = resident();
    let quick = builder_with(Durability::Off, Duration::from_millis(1)).in_memory().seed(1);
    let engine = runtime.block_on(quick.spawn()).expect("the engine starts");
    recover_all(runtime, &engine, &ids);
    runtime.block_on(async {
        while engine.live_sessions() > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    let away = each(before);
    runtime.block_on(engine.shutdown());

    println!("\n| {count} sessions with one past episode | bytes each | × a bare linked actor |");
    println!("| --- | --- | --- |");
    for (name, bytes) in [("a bare linked actor", bare), ("live, idle", live), ("put away", away)] {
        println!("| {name} | {bytes:.0} | {:.2} |", bytes / bare);
    }
}

fn recover_all(runtime: &Runtime, engine: &RecoveryEngine, ids: &Arc<Vec<backstop::SessionId>>) {
    let (engine, ids) = (engine.clone(), Arc::clone(ids));
    let count = ids.len() as u64;
    runtime.block_on(spread(64, count, move |at| {
        let (engine, ids) = (engine.clone(), Arc::clone(&ids));
        async move { recover(&engine, &ids[at as usize]).await }
    }));
}

/// Callers that begin at their own times, whether or not the earlier ones have ended.
fn latency(runtime: &Runtime, count: usize, rate: u64, span: Duration) {
    let dir = tempfile::tempdir().expect("a directory");
    let ids = sessions(count);
    let start = builder(Durability::Behind).state_dir(dir.path()).seed(1);
    let engine = runtime.block_on(start.spawn()).expect("the engine starts");
    recover_all(runtime, &engine, &ids);
    let total = rate * span.as_secs();
    let mut took: Vec<Duration> = runtime.block_on(async {
        let began = Instant::now();
        let mut callers = Vec::with_capacity(total as usize);
        while (callers.len() as u64) < total {
            let due = (began.elapsed().as_secs_f64() * rate as f64) as u64;
            while (callers.len() as u64) < due.min(total) {
                let at = callers.len();
                let intended = began + Duration::from_secs_f64(at as f64 / rate as f64);
                let (engine, ids) = (engine.clone(), Arc::clone(&ids));
                callers.push(tokio::spawn(async move {
                    recover(&engine, &ids[at % ids.len()]).await;
                    intended.elapsed()
                }));
            }
            // Timers have milliseconds, arrivals do not.
            tokio::task::yield_now().await;
        }
        let mut took = Vec::with_capacity(callers.len());
        for caller in callers {
            took.push(caller.await.expect("a caller does not panic"));
        }
        took
    });
    runtime.block_on(engine.shutdown());
    took.sort_unstable();
    let at = |share: f64| took[((took.len() - 1) as f64 * share) as usize];
    println!("\n{rate} recoveries/s offered over {count} sessions for {span:?}, `behind`, from the intended start:");
    println!("p50 {:?} · p99 {:?} · p99.9 {:?} · longest {:?}", at(0.5), at(0.99), at(0.999), at(1.0));
}
