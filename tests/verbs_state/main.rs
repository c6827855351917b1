//! What `backstop state` promises: verify, repair, export and import, on whole and on damaged directories.
#![cfg(all(unix, feature = "cli"))]
#![allow(clippy::unwrap_used)]

mod moving;
mod safety;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use backstop::state::{FileStore, FileStoreOptions};
use backstop::{RecoveryEngine, Report, SessionId};
use serde_json::Value;
use tempfile::TempDir;

fn state(dir: &Path, args: &[&str]) -> Output {
    command(dir, args).output().unwrap()
}

fn command(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_backstop"));
    command.arg("--state-dir").arg(dir).arg("state").args(args);
    command
}

fn out(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

fn err(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

fn id(name: &str) -> SessionId {
    SessionId::new(name).unwrap()
}

async fn engine(dir: &Path) -> RecoveryEngine {
    RecoveryEngine::builder().state_dir(dir).spawn().await.unwrap()
}

/// A directory with a session about to redo and an aborted one, each with its readable copy.
async fn two_sessions() -> TempDir {
    let dir = TempDir::new().unwrap();
    let engine = engine(dir.path()).await;
    engine.report(&id("open"), Report::text("429 Too Many Requests")).await.unwrap();
    abort(&engine, "gone").await;
    engine.shutdown().await;
    assert!(dir.path().join("recovery-open.json").exists() && dir.path().join("recovery-gone.json").exists());
    dir
}

async fn abort(engine: &RecoveryEngine, name: &str) {
    let mut directive = engine.report(&id(name), Report::text("503 overloaded")).await.unwrap();
    while directive.is_redo() {
        let report = Report::text("503 overloaded");
        directive = engine.report_redo(&id(name), report, Some(directive.seq)).await.unwrap();
    }
}

fn log_file(dir: &Path) -> PathBuf {
    let own = dir.join("backstop").read_dir().unwrap().map(|entry| entry.unwrap().path());
    let is_log = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap();
        name.starts_with("log-") && !name.contains("damaged")
    };
    own.filter(is_log).max().unwrap()
}

/// Turns a byte in the middle of the log over.
fn flip(dir: &Path) -> Vec<u8> {
    let log = log_file(dir);
    let mut bytes = fs::read(&log).unwrap();
    bytes[60] ^= 0x10;
    fs::write(&log, &bytes).unwrap();
    bytes
}

/// Every file below a directory, and what is in it.
fn tree(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    let mut open = vec![dir.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in dir.read_dir().unwrap() {
            let path = entry.unwrap().path();
            match path.symlink_metadata().unwrap() {
                meta if meta.is_dir() => open.push(path),
                meta if meta.is_file() => drop(all.insert(path.clone(), fs::read(&path).unwrap())),
                _ => drop(all.insert(path, b"something else".to_vec())),
            }
        }
    }
    all
}

fn sessions(dir: &Path) -> Vec<String> {
    let list = FileStore::inspect(dir).unwrap().list();
    list.into_iter().map(|line| line.session.as_str().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_whole_directory_is_said_to_be_whole_and_nothing_is_changed_beside_its_process_or_without() {
    let dir = TempDir::new().unwrap();
    let engine = engine(dir.path()).await;
    abort(&engine, "gone").await;
    let beside = state(dir.path(), &["verify"]);
    assert_eq!(beside.status.code(), Some(0), "{beside:?}");
    assert!(out(&beside).contains("1 session (0 in recovery)"), "{beside:?}");
    engine.shutdown().await;

    let before = tree(dir.path());
    let alone = state(dir.path(), &["verify"]);
    assert_eq!(alone.status.code(), Some(0), "{alone:?}");
    assert!(out(&alone).contains("1 readable copy: nothing is wrong"), "{alone:?}");
    let repaired = state(dir.path(), &["repair"]);
    assert_eq!(repaired.status.code(), Some(0), "{repaired:?}");
    assert!(out(&repaired).contains("nothing to repair"), "{repaired:?}");
    let after = tree(dir.path());
    let changed = |path: &&PathBuf| before.get(*path) != after.get(*path);
    let changed: Vec<_> = after.keys().filter(changed).collect();
    assert_eq!(changed, [&dir.path().join("backstop/lock")], "the lock names its last holder");
}

#[test]
fn a_place_without_state_is_no_accident_and_stays_as_it_is() {
    let dir = TempDir::new().unwrap();
    let nowhere = dir.path().join("nowhere");
    for verb in ["verify", "repair", "export"] {
        let output = state(&nowhere, &[verb]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
    }
    assert!(out(&state(&nowhere, &["verify"])).contains("no state"));
    assert!(!nowhere.exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_log_is_found_repaired_and_kept_and_the_rest_goes_on() {
    let dir = two_sessions().await;
    let damaged = flip(dir.path());
    let before = tree(dir.path());
    let found = state(dir.path(), &["verify"]);
    assert_eq!(found.status.code(), Some(1), "{found:?}");
    assert!(out(&found).contains("problem  ") && out(&found).contains("bytes could not be"), "{found:?}");
    assert!(err(&found).contains("backstop state repair"), "{found:?}");
    assert_eq!(tree(dir.path()), before, "looking changes nothing");
    let found = json(&state(dir.path(), &["verify", "--json"]));
    assert_eq!((&found["whole"], &found["places"][0]["problems"]), (&false.into(), &1.into()), "{found}");
    assert_eq!(found["places"][0]["findings"][0]["kind"], "damaged_log", "{found}");

    let repaired = json(&state(dir.path(), &["repair", "--json"]));
    assert_eq!((&repaired["whole"], &repaired["places"][0]["repaired"]), (&true.into(), &true.into()), "{repaired}");
    let backup = PathBuf::from(repaired["places"][0]["backup"].as_str().unwrap());
    let kept = fs::read_dir(&backup).unwrap().map(|entry| fs::read(entry.unwrap().path()).unwrap());
    assert!(kept.into_iter().any(|bytes| bytes == damaged), "the backup has the log as it was");
    assert_eq!(state(dir.path(), &["verify"]).status.code(), Some(0));
    // A session whose newest record was lost is known by an older one, or by its copy.
    assert_eq!(sessions(dir.path()), ["gone", "open"]);
    let engine = engine(dir.path()).await;
    assert!(engine.report(&id("gone"), Report::text("429 Too Many Requests")).await.is_ok());
    engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_of_zeros_or_nothing_is_made_up_for_by_the_readable_copies() {
    for bytes in [vec![], vec![0; 100_000]] {
        let dir = two_sessions().await;
        fs::write(log_file(dir.path()), bytes).unwrap();
        assert_eq!(state(dir.path(), &["verify"]).status.code(), Some(1));
        let repaired = state(dir.path(), &["repair"]);
        assert_eq!(repaired.status.code(), Some(0), "{repaired:?}");
        assert!(out(&repaired).contains("2 sessions kept"), "{repaired:?}");
        assert_eq!(sessions(dir.path()), ["gone", "open"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unfinished_write_is_a_note_and_mended() {
    let dir = two_sessions().await;
    let mut log = fs::OpenOptions::new().append(true).open(log_file(dir.path())).unwrap();
    log.write_all(&[0; 77]).unwrap();
    let found = state(dir.path(), &["verify"]);
    assert_eq!(found.status.code(), Some(0), "{found:?}");
    assert!(out(&found).contains("note     ") && out(&found).contains("77 bytes"), "{found:?}");
    let repaired = state(dir.path(), &["repair"]);
    assert_eq!(repaired.status.code(), Some(0), "{repaired:?}");
    let whole = state(dir.path(), &["verify"]);
    assert!(!out(&whole).contains("77 bytes"), "{whole:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn copies_that_do_not_read_or_lie_are_written_anew_and_strange_files_left_alone() {
    let dir = two_sessions().await;
    let (open, gone) = (dir.path().join("recovery-open.json"), dir.path().join("recovery-gone.json"));
    let whole = fs::read(&open).unwrap();
    fs::write(&open, &whole[..whole.len() / 2]).unwrap();
    fs::set_permissions(&gone, fs::Permissions::from_mode(0o644)).unwrap();
    let strange = ["recovery-notes.json", "dispatch.json", "recovery-codes.txt", "log-00000001"];
    for name in strange {
        fs::write(dir.path().join(name), "{\"theirs\": true}").unwrap();
    }
    let found = state(dir.path(), &["verify"]);
    assert_eq!(found.status.code(), Some(1), "{found:?}");
    assert!(out(&found).contains("recovery-open.json: it is no JSON"), "{found:?}");
    assert!(out(&found).contains("recovery-gone.json: other users may read"), "{found:?}");
    let repaired = state(dir.path(), &["repair"]);
    assert_eq!(repaired.status.code(), Some(0), "{repaired:?}");
    assert_eq!(fs::read(&open).unwrap(), whole);
    assert_eq!(fs::read(dir.path().join("recovery-open.json.damaged-1")).unwrap(), whole[..whole.len() / 2]);
    assert_eq!(gone.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    for name in strange {
        assert_eq!(fs::read_to_string(dir.path().join(name)).unwrap(), "{\"theirs\": true}", "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_backups_three_are_kept() {
    let dir = two_sessions().await;
    for _ in 0..5 {
        flip(dir.path());
        assert_eq!(state(dir.path(), &["repair"]).status.code(), Some(0));
    }
    let names = dir.path().join("backstop").read_dir().unwrap().map(|entry| entry.unwrap().file_name());
    let backups = names.filter(|name| name.to_str().unwrap().starts_with("backup"));
    assert_eq!(backups.count(), 3);
}
