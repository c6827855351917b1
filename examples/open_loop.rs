//! A scheduler that redoes turns itself: it reports failures, keeps its own queue of redos, and takes a
//! lane's permission before each turn.
//!
//! cargo run --example open_loop

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::time::Duration;

use backstop::actors::{Clock, Refused, SystemClock};
use backstop::policy::config::ConfigBuilder;
use backstop::{Directive, LaneKey, RecoveryEngine, Report, SessionId, Timestamp};

const CONFIG: &str = "
session_error:
  - strategy: retry
    config: { max_retries: 5, backoff_ms: 100 }
  - abort
kinds:
  auth: [escalate]
lane_concurrency: 2
";

/// A turn that works from its third try on, or never.
fn turn(session: &SessionId, tries: u32) -> Result<(), Report> {
    match session.as_str() {
        "doomed" => Err(Report::text("401 invalid x-api-key").with_status(401)),
        _ if tries < 3 => Err(Report::text("503 Service Unavailable").with_status(503)),
        _ => Ok(()),
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let loaded = ConfigBuilder::new().yaml("open_loop", CONFIG).build()?;
    let engine = RecoveryEngine::builder().config(loaded.config).in_memory().spawn().await?;
    let lane = LaneKey::of("acme", "large", "team-a");

    // Due time, session, and the attempt that asked for the redo.
    let mut queue: BinaryHeap<Reverse<(Timestamp, SessionId, Option<u64>)>> = BinaryHeap::new();
    for name in ["alpha", "beta", "doomed", "gamma"] {
        queue.push(Reverse((SystemClock.now(), SessionId::new(name)?, None)));
    }
    let mut tries: HashMap<SessionId, u32> = HashMap::new();

    while let Some(Reverse((due, session, seq))) = queue.pop() {
        tokio::time::sleep(due.since(SystemClock.now())).await;
        let permit = match engine.admit(&lane, Some(Duration::from_secs(5))).await {
            Ok(permit) => permit,
            // The lane is closed for everybody: this turn comes back when it may open.
            Err(Refused::Closed { not_before } | Refused::QueueFull { not_before }) => {
                queue.push(Reverse((not_before, session, seq)));
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        let count = tries.entry(session.clone()).or_default();
        *count += 1;
        let result = turn(&session, *count);
        drop(permit);

        let directive: Directive = match (result, seq) {
            (Ok(()), None) => continue,
            (Ok(()), Some(seq)) => engine.succeeded(&session, seq).await?,
            (Err(report), seq) => engine.report_redo(&session, report.with_lane(lane.clone()), seq).await?,
        };
        match (directive.not_before(), directive.verdict()) {
            (Some(not_before), _) => {
                println!("{session}: try {count} failed, redo in {:?}", not_before.since(SystemClock.now()));
                queue.push(Reverse((not_before, session, Some(directive.seq))));
            }
            (None, Some(verdict)) => println!("{session}: {verdict} after {count} tries"),
            (None, None) => {}
        }
    }
    println!("pressure: {}", serde_json::to_string(&**engine.pressure().borrow())?);
    engine.shutdown().await;
    Ok(())
}
