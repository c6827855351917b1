//! What `explain` foretells is what an engine then does, failure for failure.
#![cfg(all(feature = "cli", feature = "test-util"))]
#![allow(clippy::unwrap_used)]

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use backstop::actors::{Outcome, TokioClock};
use backstop::strategy::ClientCall;
use backstop::{RecoveryConfig, RecoveryEngine, Report, Runner, SessionClient, SessionId, Timestamp};
use serde_json::{Value, json};
use tempfile::TempDir;

const CHAINS: &str = "\
session_error:
  - strategy: retry
    config: {max_retries: 3, backoff_ms: 500}
  - compact
  - {strategy: escalate, config: {message: look at it}}
kinds:
  auth: [{strategy: fallback_model, config: {models: [a/one, b/two]}}, abort]
json_error:
  - strategy: remind_and_retry
    config: {max_retries: 2}
context_window:
  - strategy: truncate
    config: {max_truncations: 3}
  - abort
empty_response: [rollback, abort]
max_total_attempts: 6
";

/// A client that does at once what it is asked for: what a forecast takes for granted.
struct Able;

impl SessionClient for Able {
    fn rollback<'a>(&'a self, _: &'a SessionId, _: Option<&'a str>) -> ClientCall<'a, ()> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn compact<'a>(&'a self, _: &'a SessionId, _: &'a [Arc<str>]) -> ClientCall<'a, ()> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// What the program says about this failure.
fn explained(file: &str, value: &str) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_backstop"));
    let output = command.args(["explain", "--json", "--config", file, value]).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// What an engine does about a turn that ends so every time, and how long its redos waited in all.
async fn really(yaml: &str, report: Report) -> (Arc<Outcome>, Duration) {
    let config = RecoveryConfig::parse("mine.yaml", yaml).unwrap().config;
    let clock = TokioClock::starting_at(Timestamp::from_millis(1_700_000_000_000));
    let engine = RecoveryEngine::builder().config(config).in_memory().runner(Runner::Inline).clock(clock).seed(11);
    let engine = engine.spawn().await.unwrap();
    let session = engine.session(SessionId::new("s").unwrap()).client(Arc::new(Able));
    let begun = tokio::time::Instant::now();
    let stopped = session.run(async |_| Err::<(), _>(report.clone())).await.unwrap_err();
    (Arc::clone(stopped.outcome().unwrap()), begun.elapsed())
}

fn steps(forecast: &Value) -> Vec<(String, String)> {
    let steps = forecast["steps"].as_array().unwrap();
    let attempts = steps.iter().flat_map(|step| {
        let strategy = step["strategy"].as_str().unwrap();
        let attempts = step["attempts"].as_array().unwrap();
        attempts.iter().map(move |attempt| (strategy.to_owned(), attempt["status"].as_str().unwrap().to_owned()))
    });
    attempts.collect()
}

#[tokio::test(start_paused = true)]
async fn what_is_foretold_is_what_happens() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("mine.yaml");
    std::fs::write(&path, CHAINS).unwrap();
    for (value, line) in [
        (json!("503 Service Unavailable"), 2),
        (json!({"status": 429, "error": {"message": "Rate limit reached, try again in 2s"}}), 2),
        (json!({"status": 401, "error": {"message": "invalid api key"}}), 7),
        (json!("SyntaxError: Unexpected token } in JSON at position 4"), 9),
        // Without numbers, as an overflow that does not shrink would be given up sooner than the worst case.
        (json!({"error": {"code": "context_length_exceeded", "message": "too long"}}), 12),
        (json!("Empty response received from LLM"), 15),
    ] {
        let told = explained(path.to_str().unwrap(), &value.to_string());
        let (forecast, chain) = (&told["forecast"], &told["forecast"]["chain"]);
        let place = chain["origin"]["place"].as_str().unwrap();
        assert!(place.contains(&format!("mine.yaml:{line}:")), "{value}: {place}");

        let (outcome, waited) = really(CHAINS, Report::from_value(value.clone())).await;
        let error = outcome.error.as_ref().unwrap();
        assert_eq!((&told["answer"]["kind"], &told["answer"]["pattern"]), (&json!(error.kind), &json!(error.pattern)));
        let done = outcome.attempts.iter();
        let done: Vec<_> = done.map(|one| (one.strategy.to_string(), one.result.to_string())).collect();
        assert_eq!(steps(forecast), done, "{value}: {forecast}");
        assert_eq!(forecast["verdict"], json!(outcome.verdict), "{value}");
        assert_eq!(forecast["redos"], outcome.redos, "{value}");
        assert_eq!(forecast["executions"], outcome.executions, "{value}");
        let waiting = |end: &str| Duration::from_millis(forecast["waiting"][end].as_u64().unwrap());
        // A timer of tokio's is up to a millisecond late.
        let late = Duration::from_millis(u64::from(outcome.redos) + 1);
        assert!(waiting("shortest_ms") <= waited && waited <= waiting("longest_ms") + late, "{value}: {waited:?}");
    }
}
