//! 200 sub-agents against a flaky provider in this process, with a live table of how they fare.
//!
//! cargo run --example fleet

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use backstop::policy::config::ConfigBuilder;
use backstop::policy::seed;
use backstop::{EngineEvent, LaneKey, RecoveryEngine, Report, SessionId};

const AGENTS: u64 = 200;
const TURNS: u64 = 5;

const CONFIG: &str = "
session_error:
  - strategy: retry
    config: { max_retries: 6, backoff_ms: 50, max_backoff_ms: 400 }
  - abort
lane_concurrency: 50
# This provider fails at random, whatever is asked of it: there is no outage to wait for.
lane_guard: 0
";

/// Answers after a few milliseconds, and fails a third of the calls in the ways providers do.
#[derive(Default)]
struct Provider {
    calls: AtomicU64,
}

impl Provider {
    async fn call(&self, seed: u64) -> Result<(), Report> {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        let draw = seed::mix(seed, call);
        tokio::time::sleep(Duration::from_millis(5 + draw % 20)).await;
        match draw % 12 {
            0 => Err(Report::text("Overloaded").with_status(529)),
            1 => Err(Report::text("upstream connect error or disconnect/reset before headers").with_status(503)),
            2 => Err(Report::text("429 Too Many Requests: please try again in 120ms").with_status(429)),
            3 => Err(Report::text("oldString not found in content")),
            _ => Ok(()),
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let loaded = ConfigBuilder::new().yaml("fleet", CONFIG).build()?;
    let engine = RecoveryEngine::builder().config(loaded.config).in_memory().spawn().await?;
    let provider = Arc::new(Provider::default());
    let turns = Arc::new(AtomicU64::new(0));
    let started = Instant::now();

    let mut agents = tokio::task::JoinSet::new();
    for agent in 0..AGENTS {
        let (engine, provider, turns) = (engine.clone(), Arc::clone(&provider), Arc::clone(&turns));
        agents.spawn(async move {
            let session = SessionId::new(format!("agent-{agent}")).expect("a name");
            for turn in 0..TURNS {
                let run = engine.session(session.clone()).lane(LaneKey::of("acme", "large", ""));
                let provider = Arc::clone(&provider);
                let seed = agent * TURNS + turn;
                let done = run.run_with(move |_| {
                    let provider = Arc::clone(&provider);
                    async move { provider.call(seed).await }
                });
                if done.await.is_ok() {
                    turns.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
    }

    let mut events = engine.events();
    let verdicts = tokio::spawn(async move {
        let mut verdicts: BTreeMap<&'static str, u64> = BTreeMap::new();
        while let Some(event) = events.next().await {
            if let EngineEvent::Ended(outcome) = event {
                *verdicts.entry(outcome.verdict.name()).or_default() += 1;
            }
        }
        verdicts
    });

    let live = std::io::stderr().is_terminal();
    let mut tick = tokio::time::interval(Duration::from_millis(100));
    loop {
        tokio::select! {
            biased;
            next = agents.join_next() => if next.is_none() { break },
            _ = tick.tick() => if live {
                let metrics = engine.metrics();
                eprint!(
                    "\rturns {:>4}/{}   calls {:>5}   recovered {:>4}   attempts {:>5}   live sessions {:>3} ",
                    turns.load(Ordering::Relaxed), AGENTS * TURNS, provider.calls.load(Ordering::Relaxed),
                    metrics.successful_recoveries, metrics.total_attempts, engine.live_sessions(),
                );
            },
        }
    }
    if live {
        eprintln!();
    }
    let metrics = engine.metrics();
    println!("{} of {} turns worked in {:.1?}", turns.load(Ordering::Relaxed), AGENTS * TURNS, started.elapsed());
    println!("calls {}, attempts {}", provider.calls.load(Ordering::Relaxed), metrics.total_attempts);
    println!("\n{:<22} {:>8} {:>10}", "failure", "attempts", "recovered");
    for (kind, tally) in &metrics.by_kind {
        println!("{:<22} {:>8} {:>10}", kind.as_str(), tally.attempts, tally.successes);
    }
    println!("\ntime to recover: p50 {} ms, p99 {} ms", metrics.time_to_recover_ms.p50, metrics.time_to_recover_ms.p99);
    engine.shutdown().await;
    drop(engine);
    if let Ok(Ok(verdicts)) = tokio::time::timeout(Duration::from_secs(1), verdicts).await {
        println!("verdicts: {verdicts:?}");
    }
    Ok(())
}
