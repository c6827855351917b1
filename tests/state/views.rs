//! The readable files beside the log.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use backstop::failure::{Category, Kind, Timestamp};
use backstop::policy::machine::{Event, Moment, Plan, Redoer};
use backstop::policy::session::SessionMemory;
use backstop::policy::{Answer, Cause, RecoveryAttempt, RecoveryConfig, Verdict};
use backstop::state::{FileStore, FileStoreOptions, RecoveryState, RecoveryStateStore, StateRecord};
use serde_json::{Value, json};

use super::{ended, error, names, open, session};

/// A session in the middle of an episode: `retry` answered once, and the delay runs.
fn waiting() -> SessionMemory {
    let computing = BTreeSet::from(["retry".into()]);
    let plan = Plan { config: Arc::new(RecoveryConfig::default()), computing: Arc::new(computing) };
    let mut failure = error();
    failure.raw = Some(Arc::new(json!("sk-raw-canary")));
    let at = Moment { now: Timestamp::from_millis(1_000), seed: 1 };
    let mut memory = SessionMemory::default();
    memory.open(&session("s1"), Arc::new(failure), Redoer::Nobody, None, None, &plan, at).unwrap();
    let answer = Answer::retry(Duration::from_secs(2), "retrying");
    memory.on(Event::Answered { seq: 1, answer, injections: vec![] }, &plan, Timestamp::from_millis(1_500));
    memory
}

pub(super) fn attempt(message: &str) -> RecoveryAttempt {
    RecoveryAttempt {
        category: Category::SessionError,
        error_type: Kind::Timeout,
        timestamp: Timestamp::from_millis(1_000),
        chain_position: 0,
        strategy: "own".into(),
        result: "abort".into(),
        message: Some(message.into()),
        episode: 1,
        seq: 1,
        chain: None,
        tokens: Default::default(),
    }
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

fn save(store: &mut FileStore, revision: u64, memory: &SessionMemory) {
    store.append(&[StateRecord::new(session("s1"), revision, memory)]).unwrap();
    assert_eq!(store.refresh_views(10).unwrap(), 0);
}

#[test]
fn an_open_episode_is_shown_with_its_place_and_without_the_reported_value() {
    let dir = tempfile::tempdir().unwrap();
    save(&mut open(dir.path()).0, 1, &waiting());
    let view = read(&dir.path().join("recovery-s1.json"));
    assert_eq!(view["version"], 1);
    assert_eq!(view["sessionID"], "s1");
    assert_eq!(view["attempts"][0]["strategy"], "retry");
    let place = json!({"currentStep": 0, "startTime": 1_000, "totalAttempts": 1});
    assert_eq!(view["activeChains"], json!({"session_error": place}));
    assert_eq!(view["metrics"]["totalAttempts"], 1);
    assert_eq!(view["metrics"]["byCategory"]["session_error"]["attempts"], 1);
    assert_eq!(view["episode"]["phase"], "waiting");
    assert_eq!(view["episode"]["executions"], 1);
    assert!(!view.to_string().contains("canary"));
}

#[test]
fn the_summary_says_what_the_episode_waits_for() {
    let dir = tempfile::tempdir().unwrap();
    let (mut store, _) = open(dir.path());
    save(&mut store, 3, &waiting());
    let line = &store.list().unwrap()[0];
    assert!(line.open && line.readable && line.verdict.is_none());
    assert_eq!((line.revision, line.attempts), (3, 1));
    assert!(line.waits_until > Some(Timestamp::from_millis(1_500)));
    assert_eq!(line.updated, Some(Timestamp::from_millis(1_000)));
}

#[test]
fn a_verdict_is_shown_until_the_session_recovers_or_is_forgotten() {
    let dir = tempfile::tempdir().unwrap();
    let (mut store, _) = open(dir.path());
    let file = dir.path().join("recovery-s1.json");
    save(&mut store, 1, &ended(Verdict::Exhausted { cause: Cause::Chain }, vec![attempt("m")]));
    let view = read(&file);
    assert_eq!(view["verdict"]["verdict"], json!({"exhausted": {"cause": "chain"}}));
    assert_eq!(view["metrics"]["exhaustedChains"], 1);
    assert_eq!(view["lastError"]["errorType"], "timeout");

    save(&mut store, 2, &SessionMemory::default());
    assert!(!file.exists(), "what recovered leaves no file");
    save(&mut store, 3, &waiting());
    assert!(file.exists());
    store.append(&[StateRecord::forgotten(session("s1"), 4)]).unwrap();
    store.refresh_views(10).unwrap();
    assert!(!file.exists());
    assert_eq!(names(dir.path()), ["backstop"]);
}

#[test]
fn a_view_that_a_crash_prevented_is_written_after_the_restart_and_only_that() {
    let dir = tempfile::tempdir().unwrap();
    let (mut store, _) = open(dir.path());
    save(&mut store, 1, &waiting());
    let other = StateRecord::new(session("s2"), 1, &waiting());
    store.append(&[other]).unwrap();
    drop(store);
    fs::remove_file(dir.path().join("recovery-s1.json")).unwrap();
    let (mut store, _) = open(dir.path());
    assert_eq!(store.refresh_views(0).unwrap(), 1);
    store.refresh_views(10).unwrap();
    assert_eq!(names(dir.path()), ["backstop", "recovery-s2.json"]);
}

#[test]
fn a_removal_that_a_crash_prevented_happens_after_it_even_across_a_new_segment() {
    let dir = tempfile::tempdir().unwrap();
    let options = FileStoreOptions { snapshot_above: 0, ..FileStoreOptions::default() };
    let (mut store, _) = FileStore::open(dir.path(), options.clone()).unwrap();
    save(&mut store, 1, &waiting());
    store.append(&[StateRecord::forgotten(session("s1"), 2)]).unwrap();
    store.refresh_views(0).unwrap();
    drop(store);
    let (mut store, _) = FileStore::open(dir.path(), options).unwrap();
    assert!(dir.path().join("recovery-s1.json").exists());
    store.refresh_views(10).unwrap();
    assert!(!dir.path().join("recovery-s1.json").exists());
}

#[test]
fn a_directory_in_a_views_place_is_set_aside_and_does_not_stop_the_others() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("recovery-s1.json")).unwrap();
    let (mut store, _) = open(dir.path());
    save(&mut store, 1, &waiting());
    assert!(dir.path().join("recovery-s1.json").is_file());
    assert!(dir.path().join("recovery-s1.json.damaged-1").is_dir());
}

#[test]
fn a_view_never_exceeds_its_bound_and_drops_the_oldest_attempts_first() {
    let dir = tempfile::tempdir().unwrap();
    let attempts = (0..64).map(|number| attempt(&format!("{number} {}", "\u{1}".repeat(2_100)))).collect();
    save(&mut open(dir.path()).0, 1, &ended(Verdict::Cancelled, attempts));
    let file = dir.path().join("recovery-s1.json");
    assert!(file.metadata().unwrap().len() <= RecoveryState::MAX_BYTES as u64);
    let view = read(&file);
    let shown = view["attempts"].as_array().unwrap();
    assert!(!shown.is_empty() && shown.len() < 64);
    assert_eq!(view["attemptsLeftOut"], 64 - shown.len());
    assert!(shown.last().unwrap()["message"].as_str().unwrap().starts_with("63 "));
}

#[test]
fn a_smaller_bound_is_kept_to_as_well_and_as_much_is_shown_as_fits() {
    let attempts: Vec<_> = (0..64).map(|number| attempt(&format!("{number} and why"))).collect();
    let verdict = Verdict::Aborted { reason: "words ".repeat(1_000).into() };
    for bound in [1_024, 2_000, 6_000, 10_000, 20_000] {
        let dir = tempfile::tempdir().unwrap();
        let options = FileStoreOptions { view_bytes: bound, ..FileStoreOptions::default() };
        let (mut store, _) = FileStore::open(dir.path(), options).unwrap();
        save(&mut store, 1, &ended(verdict.clone(), attempts.clone()));
        let file = dir.path().join("recovery-s1.json");
        let bytes = file.metadata().unwrap().len() as usize;
        let view = read(&file);
        assert!(bytes <= bound && view["verdict"].is_object(), "{bytes} of {bound}");
        let shown = view["attempts"].as_array().unwrap();
        assert_eq!(view["attemptsLeftOut"], 64 - shown.len());
        if let Some(last) = shown.last() {
            assert!(last["message"].as_str().unwrap().starts_with("63 "));
            assert!(bytes + 500 > bound, "another one would not fit: {bytes} of {bound}");
        }
        assert_eq!(shown.is_empty(), bound < 6_000, "{} at {bound}", shown.len());
        save(&mut store, 2, &waiting());
        assert!(file.metadata().unwrap().len() as usize <= bound);
    }
}

#[test]
fn a_secret_in_an_answer_or_reason_is_masked() {
    let dir = tempfile::tempdir().unwrap();
    let secret = "sk-ant-api03-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789AbCdEfGh";
    let text = format!("refused the key {secret}");
    let verdict = Verdict::Aborted { reason: text.as_str().into() };
    save(&mut open(dir.path()).0, 1, &ended(verdict, vec![attempt(&text)]));
    let view = fs::read_to_string(dir.path().join("recovery-s1.json")).unwrap();
    assert!(view.contains("refused the key") && !view.contains(secret), "{view}");
}

#[test]
fn without_views_there_are_none_and_later_they_are_made_up_for() {
    let dir = tempfile::tempdir().unwrap();
    let options = FileStoreOptions { views: false, ..FileStoreOptions::default() };
    let (mut store, _) = FileStore::open(dir.path(), options).unwrap();
    save(&mut store, 1, &waiting());
    drop(store);
    assert_eq!(names(dir.path()), ["backstop"]);
    open(dir.path()).0.refresh_views(10).unwrap();
    assert_eq!(names(dir.path()), ["backstop", "recovery-s1.json"]);
}
