//! The smallest use: a turn that fails in three different ways, and works in the end.
//!
//! cargo run --example quickstart

use std::cell::Cell;

use backstop::policy::config::ConfigBuilder;
use backstop::{RecoveryEngine, Report, SessionId};

/// Waits short enough to watch.
const CONFIG: &str = "
recovery:
  session_error:
    chain:
      - strategy: retry
        config: { max_retries: 3, backoff_ms: 200, jitter: false }
      - abort
";

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let loaded = ConfigBuilder::new().yaml("quickstart", CONFIG).build()?;
    let engine = RecoveryEngine::builder().config(loaded.config).in_memory().spawn().await?;

    let calls = Cell::new(0);
    let answer = engine
        .session(SessionId::new("quickstart")?)
        .run(async |turn| {
            calls.set(calls.get() + 1);
            println!("try {}: {}", turn.redo + 1, if turn.injections.is_empty() { "as usual" } else { "reminded" });
            match calls.get() {
                1 => Err(Report::text("529 overloaded_error: Overloaded").with_status(529)),
                2 => Err(Report::text("read ECONNRESET")),
                3 => Err(Report::text("oldString not found in content")),
                _ => Ok("the answer"),
            }
        })
        .await?;

    println!("-> {}", answer.value);
    if let Some(recovery) = answer.recovery {
        println!("{} after {} attempts:", recovery.verdict, recovery.executions);
        for attempt in &recovery.attempts {
            println!("  {:<18} {:<17} {}", attempt.error_type.as_str(), attempt.strategy, attempt.result);
        }
    }
    engine.shutdown().await;
    Ok(())
}
