//! A log that a disk damaged: what is known goes on, and no budget comes back by it.

use backstop::state::{FileStore, FileStoreOptions, StateNote};
use backstop::{RecoveryConfig, RecoveryEngine, Report, Runner, SessionId};

const CHAINS: &str = "
session_error: [{strategy: retry, config: {max_retries: 20, backoff_ms: 1}}, abort]
max_total_attempts: 8
";

async fn engine(dir: &std::path::Path) -> RecoveryEngine {
    let config = RecoveryConfig::parse("damage.yaml", CHAINS).unwrap().config;
    RecoveryEngine::builder().config(config).runner(Runner::Inline).state_dir(dir).spawn().await.unwrap()
}

#[tokio::test]
async fn open_episodes_go_on_with_half_their_budget_spent_and_the_unknown_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let id = |name: &str| SessionId::new(name).unwrap();
    let failure = || Report::text("503 Service Unavailable");
    let first = engine(dir.path()).await;
    first.report(&id("lost"), failure()).await.unwrap();
    let told = first.report(&id("known"), failure()).await.unwrap();
    assert_eq!(first.status(&id("known")).await.unwrap().episode.unwrap().executions, 1);
    first.shutdown().await;

    // The first record of the log does not read any more.
    let log = dir.path().join("backstop/log-00000001");
    let mut bytes = std::fs::read(&log).unwrap();
    let at = bytes.windows(4).position(|window| window == b"lost").unwrap();
    bytes[at] ^= 1;
    std::fs::write(&log, bytes).unwrap();

    let (store, notes) = FileStore::open(dir.path(), FileStoreOptions::default()).unwrap();
    drop(store);
    let [note @ StateNote::Damaged { unknown, doubted, .. }] = &notes[..] else { panic!("{notes:?}") };
    assert!(*unknown >= 1 && *doubted >= 1, "{note}");
    assert!(note.to_string().contains("go on with half their budget spent"), "{note}");

    // The mark is durable with the new log: a start later it holds all the same.
    let second = engine(dir.path()).await;
    second.report_redo(&id("known"), failure(), Some(told.seq)).await.unwrap();
    let episode = second.status(&id("known")).await.unwrap().episode.unwrap();
    assert_eq!(episode.executions, 5, "half of eight, and the one after it");
    second.shutdown().await;
}
