//! `rolebox-state.jsonl` against the file store.
//!
//! How its operations map: `record` = the session's memory with one attempt more is appended (an attempt
//! that is equal in every field is the same attempt, saved again); `settle`, `flush`, `dispose` = views
//! are refreshed; `delete` = forgotten; `raw` = a state file that is there before the store opens;
//! `load` = what the import makes of it; `load_all` = `list`; `save` = as if its attempts were recorded.
//! Files are compared by name, session and the original's fields of each attempt.
//!
//! Not run here:
//! - 011–016, 032 (`update`): nobody sets a chain's place by hand; `activeChains` shows the episode's
//!   places (`views::an_open_episode_is_shown_with_its_place_and_without_the_reported_value`).
//! - 043–053 (`recover`): `recovered` has them, but for 046 and 048, which tell of overlapping writes, and 050:
//!   one writer orders all saves, and metrics have nothing to do with them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use backstop::failure::SessionId;
use backstop::policy::{RecoveryAttempt, Verdict};
use backstop::state::{FileStore, RecoveryState, RecoveryStateStore, StateRecord, file_stem};
use serde_json::Value;

use super::{ended, open, session};

const VECTORS: &str = include_str!("../data/conformance/rolebox-state.jsonl");

pub(super) fn vectors() -> BTreeMap<String, Value> {
    let parse = |line| -> (String, Value) {
        let vector: Value = serde_json::from_str(line).unwrap();
        (vector["id"].as_str().unwrap().to_owned(), vector)
    };
    VECTORS.lines().map(parse).collect()
}

/// What a run of operations left behind.
#[derive(Default)]
struct Outcome {
    /// The attempts in each view, by file name.
    files: BTreeMap<String, Vec<RecoveryAttempt>>,
    /// What each `load` found.
    loads: Vec<Option<usize>>,
    listed: Vec<usize>,
    /// Sessions that were refused.
    refused: usize,
}

struct Run<'a> {
    dir: &'a Path,
    store: Option<FileStore>,
    outcome: Outcome,
}

impl Run<'_> {
    fn store(&mut self) -> &mut FileStore {
        self.store.get_or_insert_with(|| open(self.dir).0)
    }

    fn op(&mut self, op: &Value, vector: &Value) {
        let id = op["sid"].as_str().or(vector["input"]["session"].as_str()).unwrap();
        let Ok(id) = SessionId::new(id) else {
            self.outcome.refused += 1;
            return;
        };
        match op["op"].as_str().unwrap() {
            "raw" => fs::write(self.dir.join(format!("recovery-{id}.json")), op["text"].as_str().unwrap()).unwrap(),
            "record" => self.record(&id, vec![attempt(&op["a"])]),
            "save" | "save_sync" => {
                self.record(&id, op["state"]["attempts"].as_array().unwrap().iter().map(attempt).collect());
            }
            "delete" => {
                let revision = self.store().load(&id).unwrap().map_or(1, |known| known.revision + 1);
                self.store().append(&[StateRecord::forgotten(id, revision)]).unwrap();
            }
            "load" => {
                let found = attempts(self.store(), &id).map(|attempts| attempts.len());
                self.outcome.loads.push(found);
            }
            "load_all" => {
                let listed = self.store().list().unwrap().len();
                self.outcome.listed.push(listed);
            }
            "settle" | "flush" | "dispose" => while self.store().refresh_views(10).unwrap() > 0 {},
            other => panic!("no operation {other}"),
        }
    }

    fn record(&mut self, id: &SessionId, new: Vec<RecoveryAttempt>) {
        let known = self.store().load(id).unwrap();
        let mut all = attempts(self.store(), id).unwrap_or_default();
        for mut attempt in new {
            let same = |other: &&RecoveryAttempt| original(other) == original(&attempt);
            if all.iter().find(same).is_none() {
                (attempt.episode, attempt.seq) = (1, all.len() as u64 + 1);
                all.push(attempt);
            }
        }
        let revision = known.map_or(1, |known| known.revision + 1);
        self.store().append(&[StateRecord::new(id.clone(), revision, &ended(Verdict::Cancelled, all))]).unwrap();
    }
}

fn attempts(store: &mut FileStore, id: &SessionId) -> Option<Vec<RecoveryAttempt>> {
    let memory = store.load(id).unwrap()?.read().unwrap()?;
    Some(memory.kept()?.attempts.clone())
}

fn attempt(value: &Value) -> RecoveryAttempt {
    serde_json::from_value(value.clone()).unwrap()
}

/// An attempt's fields that the original has.
fn original(attempt: &RecoveryAttempt) -> Value {
    let mut value = serde_json::to_value(attempt).unwrap();
    let fields = value.as_object_mut().unwrap();
    for ours in ["episode", "seq", "chain", "tokens"] {
        fields.remove(ours);
    }
    value
}

fn run(vector: &Value) -> Outcome {
    let dir = tempfile::tempdir().unwrap();
    let mut run = Run { dir: dir.path(), store: None, outcome: Outcome::default() };
    for op in vector["input"]["ops"].as_array().unwrap() {
        run.op(op, vector);
    }
    let mut store = run.store.take().unwrap_or_else(|| open(dir.path()).0);
    while store.refresh_views(10).unwrap() > 0 {}
    for name in super::names(dir.path()) {
        let path = dir.path().join(&name);
        if !path.is_file() {
            continue;
        }
        let Ok(view) = serde_json::from_slice::<RecoveryState>(&fs::read(&path).unwrap()) else {
            run.outcome.files.insert(name, vec![]);
            continue;
        };
        assert_eq!(name, format!("recovery-{}.json", file_stem(&view.session)));
        run.outcome.files.insert(name, view.attempts);
    }
    run.outcome
}

#[test]
fn the_vectors_without_a_mistake_hold() {
    let vectors = vectors();
    for number in [2, 3, 4, 5, 20, 21] {
        let id = format!("state-{number:03}");
        let vector = &vectors[&id];
        assert!(vector["upstream_bug"].is_null(), "{id}");
        let files = run(vector).files;
        let theirs = vector["files_at_end"].as_object().unwrap();
        assert_eq!(files.len(), theirs.len(), "{id}");
        for (path, state) in theirs {
            let ours = &files[path.strip_prefix(".rolebox/state/").unwrap()];
            let ours: Vec<_> = ours.iter().map(original).collect();
            assert_eq!(Value::from(ours), state["attempts"], "{id}");
        }
    }
    for number in [22, 23, 24, 26, 34] {
        let id = format!("state-{number:03}");
        assert!(vectors[&id]["upstream_bug"].is_null() && vectors[&id]["events"][0]["load"].is_null(), "{id}");
        assert_eq!(run(&vectors[&id]).loads, [None], "{id}");
    }
    // 017: a state without attempts has a file.
    assert_eq!(run(&vectors["state-017"]).files["recovery-s1.json"], []);
}

#[test]
fn every_attempt_is_kept_where_the_original_loses_some() {
    let vectors = vectors();
    for (number, kept) in [(1, 1), (6, 2), (7, 3), (8, 3), (9, 1), (10, 1), (25, 1), (30, 1), (31, 1), (33, 1)] {
        let id = format!("state-{number:03}");
        assert!(vectors[&id]["upstream_bug"].is_string(), "{id}");
        let files = run(&vectors[&id]).files;
        assert_eq!(files["recovery-s1.json"].len(), kept, "{id}");
    }
    let both = run(&vectors["state-042"]).files;
    assert!(both.keys().eq(["recovery-s1.json", "recovery-s2.json"]));
}

#[test]
fn damaged_evidence_is_kept() {
    let files = run(&vectors()["state-025"]).files;
    assert!(files.contains_key("recovery-s1.json.damaged-1"), "{:?}", files.keys());
}

#[test]
fn what_is_no_state_of_the_session_is_none() {
    for number in [27, 28, 29] {
        assert_eq!(run(&vectors()[&format!("state-{number:03}")]).loads, [None], "{number}");
    }
    // 018: the file's session is another one than its name says.
    let dir = tempfile::tempdir().unwrap();
    let state = &vectors()["state-018"]["input"]["ops"][0]["state"];
    fs::write(dir.path().join("recovery-s1.json"), state.to_string()).unwrap();
    let (mut store, notes) = open(dir.path());
    assert_eq!(store.load(&session("s1")).unwrap(), None);
    assert_eq!(notes.len(), 1);
}

#[test]
fn a_deleted_session_stays_deleted() {
    assert!(run(&vectors()["state-019"]).files.is_empty());
}

#[test]
fn every_session_is_listed() {
    assert_eq!(run(&vectors()["state-035"]).listed, [0]);
    assert_eq!(run(&vectors()["state-036"]).listed, [1]);
}

#[test]
fn every_id_has_a_file_in_the_directory_and_the_empty_one_is_refused() {
    let empty = run(&vectors()["state-037"]);
    assert!(empty.files.is_empty() && empty.refused > 0);
    for number in [38, 39, 40, 41] {
        let files = run(&vectors()[&format!("state-{number:03}")]).files;
        assert_eq!(files.values().map(Vec::len).collect::<Vec<_>>(), [1], "{number}: {files:?}");
    }
}

#[test]
fn a_view_is_laid_out_as_the_originals_files() {
    let text = vectors()["state-bytes"]["text"].as_str().unwrap().to_owned();
    let theirs: Value = serde_json::from_str(&text).unwrap();
    let all = theirs["attempts"].as_array().unwrap().iter().map(attempt).collect();
    let view = RecoveryState::of(&session("s1"), &ended(Verdict::Cancelled, all)).unwrap();
    let ours = String::from_utf8(view.to_json(RecoveryState::MAX_BYTES).unwrap()).unwrap();
    // Their lines, up to where our own fields of the attempt begin, with our version in front.
    let shared = text.split_once("      \"message\"").unwrap().0.replacen("{\n", "{\n  \"version\": 1,\n", 1);
    assert!(ours.starts_with(&shared), "{ours}");
    assert!(ours.ends_with('}'));
    let positions: Vec<_> = ["sessionID", "attempts", "activeChains", "metrics"]
        .map(|field| ours.find(&format!("\n  \"{field}\"")).unwrap())
        .into();
    assert!(positions.is_sorted());
}
