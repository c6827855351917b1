//! `rolebox-state.jsonl` where an engine recovers: 043 to 053, by a client that can at most compact.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use backstop::actors::TokioClock;
use backstop::policy::config::ConfigBuilder;
use backstop::state::RecoveryState;
use backstop::strategy::{ClientCall, SessionClient};
use backstop::{RecoveryEngine, Report, Runner, SessionId, Timestamp};
use serde_json::{Value, json};

use super::conformance::vectors;
use super::names;

struct Compacts;

impl SessionClient for Compacts {
    fn compact<'a>(&'a self, _: &'a SessionId, _: &'a [Arc<str>]) -> ClientCall<'a, ()> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// Runs the vector's operations; the strategy and result of every attempt in each file that is left, and whether
/// each `recover` recovered.
async fn run(number: u32) -> (BTreeMap<String, Vec<(String, String)>>, Vec<bool>) {
    let vector = vectors()[&format!("state-{number:03}")].clone();
    let dir = tempfile::tempdir().unwrap();
    let mut recovered = vec![];
    for op in vector["input"]["ops"].as_array().unwrap() {
        match op["op"].as_str().unwrap() {
            "raw" => fs::write(dir.path().join("recovery-s1.json"), op["text"].as_str().unwrap()).unwrap(),
            "recover" => recovered.push(recover(dir.path(), op).await),
            // Each engine is shut down, by which everything is written.
            "settle" | "flush" | "dispose" => {}
            other => panic!("no operation {other}"),
        }
    }
    let files = names(dir.path()).into_iter().filter(|name| name.starts_with("recovery-"));
    let attempts = |name: &String| {
        let state = serde_json::from_slice::<RecoveryState>(&fs::read(dir.path().join(name)).unwrap());
        let attempts = state.map(|state| state.attempts).unwrap_or_default();
        attempts.into_iter().map(|attempt| (attempt.strategy.to_string(), attempt.result.to_string())).collect()
    };
    (files.map(|name| (name.clone(), attempts(&name))).collect(), recovered)
}

async fn recover(dir: &Path, op: &Value) -> bool {
    let mut config = op["chains"].clone();
    if config.is_null() {
        config = json!({});
    }
    config["persist_state"] = op["persist"].as_bool().unwrap_or(true).into();
    let config = ConfigBuilder::new().yaml("vector", config.to_string()).build().unwrap().config;
    let clock = TokioClock::starting_at(Timestamp::from_millis(1_700_000_000_000));
    let mut builder =
        RecoveryEngine::builder().config(config).state_dir(dir).runner(Runner::Inline).clock(clock).seed(7);
    if op["client"] == "compact_ok" {
        builder = builder.clients(|_| Some(Arc::new(Compacts)));
    }
    let engine = builder.spawn().await.unwrap();
    let session = SessionId::new("s1").unwrap();
    let result = engine.recover(&session, Report::text(op["error"].as_str().unwrap()), None).await;
    engine.shutdown().await;
    result.is_ok()
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(one, other)| ((*one).to_owned(), (*other).to_owned())).collect()
}

#[tokio::test(start_paused = true)]
async fn without_state_or_a_known_failure_there_is_no_file() {
    for number in [49, 51] {
        let vector = &vectors()[&format!("state-{number:03}")];
        assert!(vector["upstream_bug"].is_null() && vector["files_at_end"] == json!({}), "{number}");
        let (files, recovered) = run(number).await;
        assert_eq!((files, recovered), (BTreeMap::new(), vec![false]), "{number}");
    }
}

#[tokio::test(start_paused = true)]
async fn every_attempt_of_a_recovery_is_kept_where_the_original_loses_some() {
    let truncated =
        pairs(&[("truncate", "retry"), ("truncate", "retry"), ("truncate", "retry"), ("truncate", "next_strategy")]);
    for (number, attempts) in [
        (47, truncated),
        (
            53,
            pairs(&[
                ("remind_and_retry", "retry"),
                ("remind_and_retry", "retry"),
                ("remind_and_retry", "next_strategy"),
            ]),
        ),
    ] {
        assert!(vectors()[&format!("state-{number:03}")]["upstream_bug"].is_string());
        let (files, recovered) = run(number).await;
        assert_eq!(files, BTreeMap::from([("recovery-s1.json".to_owned(), attempts)]), "{number}");
        assert_eq!(recovered, [false], "{number}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_recovered_leaves_no_file_and_what_aborted_does() {
    let (files, recovered) = run(45).await;
    assert_eq!((files, recovered), (BTreeMap::new(), vec![true]));
    for number in [43, 44] {
        let (files, recovered) = run(number).await;
        let last = files["recovery-s1.json"].last().unwrap();
        assert_eq!((last.1.as_str(), recovered), ("abort", vec![false]), "{number}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_malformed_file_stops_no_recovery() {
    let (files, recovered) = run(52).await;
    assert_eq!(recovered, [false]);
    assert_eq!(files["recovery-s1.json"], pairs(&[("abort", "abort")]));
}
