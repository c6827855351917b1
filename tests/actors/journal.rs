//! Every decision leaves a line (R15), bounded, masked, in nobody's way.

use std::path::Path;
use std::time::Duration;

use backstop::state::JournalReader;
use backstop::{Answer, RecoveryEngine, Report};
use serde_json::Value;

use crate::fixture::{builder, config, error, failure, id, secs};

fn lines(dir: &Path, session: &str) -> Vec<Value> {
    let mut lines = vec![];
    JournalReader::open(dir).unwrap().lines_of(&id(session), |line| lines.push(line)).unwrap();
    lines
}

fn decisions(lines: &[Value]) -> Vec<&str> {
    lines.iter().map(|line| line["decision"].as_str().unwrap()).collect()
}

fn journal(dir: &Path) -> String {
    let own = dir.join("backstop");
    let text = |name: &str| std::fs::read_to_string(own.join(name)).unwrap_or_default();
    text("journal.1.jsonl") + &text("journal.jsonl")
}

#[tokio::test]
async fn an_episodes_decisions_are_told_in_order_with_their_reasons() {
    for durability in ["ahead", "behind"] {
        told_in_order(durability).await;
    }
}

async fn told_in_order(durability: &str) {
    let dir = tempfile::tempdir().unwrap();
    let yaml = "known_strategies: [own]\nsession_error: [own, {strategy: retry, config: {backoff_ms: 1}}, abort]\n";
    let yaml = &format!("{yaml}durability: {durability}\n");
    let own = |_| async { Answer::next_strategy("not mine") };
    let engine = builder(yaml).strategy_fn("own", own).state_dir(dir.path()).spawn().await.unwrap();
    let fails_once = |turn: backstop::Turn| async move { if turn.redo == 0 { Err(error()) } else { Ok(()) } };
    engine.session(id("s")).run_with(fails_once).await.unwrap();
    engine.session(id("other")).run_with(fails_once).await.unwrap();
    engine.report(&id("s"), Report::text("all is well")).await.unwrap();
    engine.shutdown().await;

    let lines = lines(dir.path(), "s");
    let expected = ["chain_chosen", "begun", "answered", "answered", "waits", "redone", "ended", "ended"];
    assert_eq!(decisions(&lines), expected, "{lines:#?}");
    for line in &lines[..7] {
        assert_eq!((&line["session"], &line["episode"]), (&"s".into(), &1.into()));
        assert!(line["at"].as_u64().unwrap() >= 1_700_000_000_000);
    }
    assert!(lines[0]["origin"].as_str().unwrap().contains("test.yaml:2"), "{}", lines[0]);
    assert_eq!((&lines[0]["chain"], &lines[0]["kind"]), (&"session_error".into(), &"service_unavailable".into()));
    assert_eq!((&lines[1]["strategy"], &lines[1]["attempt"], &lines[1]["seq"]), (&"own".into(), &1.into(), &1.into()));
    assert_eq!((&lines[2]["text"], &lines[2]["status"]), (&"not mine".into(), &"next_strategy".into()));
    assert_eq!((&lines[3]["strategy"], &lines[3]["seq"]), (&"retry".into(), &2.into()));
    assert!(lines[4]["delay_ms"].is_u64() && lines[4]["because"].is_string(), "{}", lines[4]);
    assert_eq!(lines[6]["verdict"]["recovered"], "verified");
    assert_eq!((&lines[7]["episode"], &lines[7]["verdict"]["unhandled"]), (&0.into(), &"not_detected".into()));
}

#[tokio::test]
async fn many_episodes_stay_within_the_bound() {
    const BOUND: u64 = 20_000;
    let dir = tempfile::tempdir().unwrap();
    let engine = builder(&format!("session_error: [abort]\njournal_bytes: {BOUND}\n"));
    let engine = engine.state_dir(dir.path()).spawn().await.unwrap();
    for number in 0..500 {
        engine.report(&id(&format!("s{number}")), failure()).await.unwrap();
    }
    engine.shutdown().await;
    let size = journal(dir.path()).len() as u64;
    assert!((BOUND / 3..=BOUND).contains(&size), "{size}");
    assert_eq!(decisions(&lines(dir.path(), "s499")).last(), Some(&"ended"));
}

#[tokio::test]
async fn no_secret_of_a_failure_gets_into_the_journal() {
    const SECRET: &str = "sk-ant-api03-a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5";
    let dir = tempfile::tempdir().unwrap();
    let own = |_| async { Answer::abort(format!("\"refused\" for {SECRET}")) };
    let yaml = "known_strategies: [own]\nsession_error: [own]\n";
    let engine = builder(yaml).strategy_fn("own", own).state_dir(dir.path()).spawn().await.unwrap();
    engine.report(&id("s"), Report::text(format!("503 Service Unavailable: key {SECRET}"))).await.unwrap();
    engine.report(&id("s"), Report::text(SECRET)).await.unwrap();
    engine.shutdown().await;
    let text = journal(dir.path());
    assert!(text.contains("[masked]") && !text.contains("a1B2c3D4"), "{text}");
}

#[tokio::test]
async fn it_is_off_without_a_bound_without_a_directory_and_where_nothing_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    for yaml in ["journal_bytes: 0\n", "persist_state: false\n"] {
        let engine = builder(yaml).state_dir(dir.path()).spawn().await.unwrap();
        engine.report(&id("s"), failure()).await.unwrap();
        engine.shutdown().await;
        assert_eq!(journal(dir.path()), "", "{yaml}");
    }
    let engine = builder("").state_dir(dir.path()).spawn().await.unwrap();
    engine.reload(config("journal_bytes: 0\n")).await.unwrap();
    engine.report(&id("t"), failure()).await.unwrap();
    engine.shutdown().await;
    assert_eq!(journal(dir.path()), "");
}

/// Nothing of the path waits for it: under paused time a wait would be seen.
#[tokio::test(start_paused = true)]
async fn a_journal_that_cannot_be_written_stops_nothing() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(dir.path().join("backstop/journal.jsonl")).unwrap();
    let engine = RecoveryEngine::builder().state_dir(dir.path()).runner(backstop::Runner::Inline);
    let engine = engine.config(config("session_error: [abort]\n")).spawn().await.unwrap();
    let begun = tokio::time::Instant::now();
    for number in 0..100 {
        assert!(!engine.report(&id(&format!("s{number}")), failure()).await.unwrap().is_redo());
    }
    assert!(begun.elapsed() < Duration::from_secs(1));
    assert!(engine.shutdown().await.durable);
    assert!(begun.elapsed() < secs(10));
}
