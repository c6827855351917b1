//! A strategy of one's own beside the built-in ones, and a failure that only one's own pattern knows.
//!
//! cargo run --example custom_strategy

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use backstop::policy::config::ConfigBuilder;
use backstop::{Answer, Category, ErrorPattern, Kind, RecoveryEngine, Report, SessionId};

const CONFIG: &str = "
kinds:
  vpn_down:
    chain:
      - strategy: dial_in
        config: { timeout_ms: 5000 }
      - escalate
known_strategies: [dial_in]
";

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let tunnel = Arc::new(AtomicBool::new(false));
    let dialled = Arc::clone(&tunnel);

    let loaded = ConfigBuilder::new().yaml("custom_strategy", CONFIG).build()?;
    for warning in &loaded.warnings {
        println!("{warning}");
    }
    let engine = RecoveryEngine::builder()
        .config(loaded.config)
        .in_memory()
        .pattern(ErrorPattern::regex("vpn", Category::SessionError, Kind::parse("vpn_down"), r"no route to gateway")?)
        .strategy_fn("dial_in", move |attempt| {
            let dialled = Arc::clone(&dialled);
            async move {
                println!("{}: attempt {}, dialling in", attempt.session(), attempt.number());
                tokio::time::sleep(Duration::from_millis(100)).await;
                dialled.store(true, Ordering::Relaxed);
                Answer::success("the tunnel is up")
            }
        })
        .on_escalate(|outcome| println!("a person is needed: {}", outcome.verdict))
        .spawn()
        .await?;

    let done = engine
        .session(SessionId::new("custom")?)
        .run(async |_| match tunnel.load(Ordering::Relaxed) {
            false => Err(Report::text("no route to gateway 10.8.0.1")),
            true => Ok("connected"),
        })
        .await?;
    println!("-> {}", done.value);
    engine.shutdown().await;
    Ok(())
}
