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
    if let Ok(what) = std::env::var(MEASURE) {
        let count = std::env::args().nth(1).and_then(|count| count.parse().ok());
        return measure(&runtime, &what, count.unwrap_or(sessions));
    }
    memory(sessions);
    let rate = std::env::var("BACKSTOP_RATE").ok().and_then(|rate| rate.parse().ok());
    latency(&runtime, sessions, rate.unwrap_or(40_000).min(sessions as u64), Duration::from_secs(seconds));
}

/// Resident bytes of this process.
fn resident() -> f64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    pages.split(' ').nth(1).and_then(|pages| pages.parse::<f64>().ok()).unwrap_or(f64::NAN) * 4_096.0
}

/// What is measured in a process of its own: memory that was given back would be used again.
const MEASURE: &str = "BACKSTOP_MEASURE";

fn memory(sessions: usize) {
    let program = std::env::current_exe().expect("this program has a path");
    let measured = ["a bare linked actor", "live, idle", "put away"].map(|what| {
        let output = std::process::Command::new(&program).env(MEASURE, what).arg(sessions.to_string()).output();
        let text = String::from_utf8(output.expect("it runs").stdout).expect("a number");
        (what, text.trim().parse::<f64>().expect("a number"))
    });
    println!("\n| {sessions} sessions with one past episode | bytes each | × a bare linked actor |");
    println!("| --- | --- | --- |");
    for (what, bytes) in measured {
        println!("| {what} | {bytes:.0} | {:.2} |", bytes / measured[0].1);
    }
}

fn measure(runtime: &Runtime, what: &str, count: usize) {
    let ids = sessions(count);
    let start = |engine: backstop::engine::EngineBuilder| {
        runtime.block_on(engine.in_memory().seed(1).spawn()).expect("the engine starts")
    };
    let mut linked: Vec<ActorRef<_>> = Vec::with_capacity(count);
    let before;
    match what {
        "live, idle" => {
            let engine = start(builder(Durability::Off));
            recover_all(runtime, &engine, &Arc::new(ids[..1].to_vec()));
            before = resident();
            recover_all(runtime, &engine, &ids);
        }
        "put away" => {
            let engine = start(builder_with(Durability::Off, Duration::from_millis(1)));
            let some = sessions(1_000);
            // The arenas of actors that come and go stay with the process.
            for _ in 0..3 {
                recover_all(runtime, &engine, &some);
                wait_until_away(runtime, &engine);
            }
            before = resident();
            for part in ids.chunks(1_000) {
                recover_all(runtime, &engine, &Arc::new(part.to_vec()));
                wait_until_away(runtime, &engine);
            }
        }
        _ => {
            let parent = runtime.block_on(Actor::spawn(None, Echo, ())).expect("an actor starts").0;
            before = resident();
            runtime.block_on(async {
                for _ in 0..count {
                    let child = Actor::spawn_linked(None, Echo, (), parent.get_cell()).await;
                    linked.push(child.expect("an actor starts").0);
                }
            });
        }
    }
    println!("{}", (resident() - before) / count as f64);
}

fn wait_until_away(runtime: &Runtime, engine: &RecoveryEngine) {
    runtime.block_on(async {
        while engine.live_sessions() > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    });
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
