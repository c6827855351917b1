//! What `backstop state` promises: verify, repair, export and import, on whole and on damaged directories.
#![cfg(all(unix, feature = "cli"))]
#![allow(clippy::unwrap_used)]

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
async fn a_newer_log_is_refused_by_every_verb_and_left_untouched() {
    let dir = two_sessions().await;
    let log = log_file(dir.path());
    let mut bytes = fs::read(&log).unwrap();
    bytes[8..12].copy_from_slice(&9_u32.to_le_bytes());
    let sum = crc32fast::hash(&bytes[..24]);
    bytes[24..28].copy_from_slice(&sum.to_le_bytes());
    fs::write(&log, bytes).unwrap();
    let document = dir.path().join("document");
    fs::write(
        &document,
        r#"{"format":"backstop-state","version":1,"sessions":[{"session":"x","revision":1,"memory":{}}]}"#,
    )
    .unwrap();
    let before = tree(dir.path());
    for args in [&["verify"][..], &["repair"], &["export"], &["import", document.to_str().unwrap()]] {
        let refused = state(dir.path(), args);
        assert_eq!(refused.status.code(), Some(3), "{args:?}: {refused:?}");
        assert!(err(&refused).contains("format 9"), "{args:?}: {refused:?}");
    }
    let mut after = tree(dir.path());
    after.insert(dir.path().join("backstop/lock"), before[&dir.path().join("backstop/lock")].clone());
    assert_eq!(after, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_the_directory_is_named_at_once() {
    let dir = two_sessions().await;
    let exported = state(dir.path(), &["export"]);
    let (_held, _) = FileStore::open(dir.path(), FileStoreOptions::default()).unwrap();
    let document = dir.path().join("document");
    fs::write(&document, exported.stdout).unwrap();
    let pipe = || {
        let mut pipe = Command::new(env!("CARGO_BIN_EXE_backstop"));
        pipe.arg("--state-dir").arg(dir.path()).arg("pipe").stdin(Stdio::null()).output().unwrap()
    };
    let import = ["import", "--replace", document.to_str().unwrap()];
    let refused = [state(dir.path(), &["repair"]), state(dir.path(), &import), pipe()];
    for output in &refused {
        assert_eq!(output.status.code(), Some(4), "{output:?}");
        assert!(err(output).contains(&format!("process {}", std::process::id())), "{output:?}");
        assert!(err(output).contains(dir.path().to_str().unwrap()), "{output:?}");
    }
    for verb in ["verify", "export"] {
        assert_eq!(state(dir.path(), &[verb]).status.code(), Some(0), "looking works beside it");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_exported_is_imported_into_an_empty_directory_and_goes_on_there() {
    let dir = two_sessions().await;
    let file = dir.path().join("all.json");
    let exported = state(dir.path(), &["export", "--output", file.to_str().unwrap()]);
    assert_eq!(exported.status.code(), Some(0), "{exported:?}");
    assert!(err(&exported).contains("2 sessions written to"), "{exported:?}");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let document: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    assert_eq!((&document["format"], &document["version"]), (&"backstop-state".into(), &1.into()));
    assert_eq!(document["sessions"].as_array().unwrap().len(), 2);
    let again = state(dir.path(), &["export", "--output", file.to_str().unwrap()]);
    assert_eq!(again.status.code(), Some(1), "{again:?}");
    assert!(err(&again).contains("exists already"), "{again:?}");

    let other = TempDir::new().unwrap();
    let there = other.path().join("deep/state");
    let imported = state(&there, &["import", file.to_str().unwrap()]);
    assert_eq!(imported.status.code(), Some(0), "{imported:?}");
    assert!(out(&imported).contains("2 sessions imported: 2 new"), "{imported:?}");
    assert_eq!(
        fs::read(there.join("recovery-gone.json")).unwrap(),
        fs::read(dir.path().join("recovery-gone.json")).unwrap()
    );
    assert_eq!(state(&there, &["verify"]).status.code(), Some(0));
    let once_more = state(&there, &["import", file.to_str().unwrap()]);
    assert!(
        out(&once_more).contains("0 sessions imported") && out(&once_more).contains("2 were there"),
        "{once_more:?}"
    );
    let engine = engine(&there).await;
    assert_eq!(engine.open_episodes(), [id("open")]);
    engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conflict_changes_nothing_unless_the_documents_sessions_are_to_win() {
    let (one, other) = (two_sessions().await, two_sessions().await);
    let engine = engine(other.path()).await;
    abort(&engine, "theirs").await;
    engine.shutdown().await;
    let file = one.path().join("all.json");
    fs::write(&file, state(one.path(), &["export"]).stdout).unwrap();
    let before = tree(other.path());
    let refused = state(other.path(), &["import", file.to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    assert!(err(&refused).contains("\"gone\", \"open\"") && err(&refused).contains("--replace"), "{refused:?}");
    assert_eq!(tree(other.path()), before);
    let replaced = json(&state(other.path(), &["import", "--json", "--replace", file.to_str().unwrap()]));
    assert_eq!((&replaced["added"], &replaced["replaced"]), (&0.into(), &2.into()), "{replaced}");
    assert_eq!(sessions(other.path()), ["gone", "open", "theirs"]);
    let shown = fs::read(other.path().join("recovery-gone.json")).unwrap();
    assert_eq!(shown, fs::read(one.path().join("recovery-gone.json")).unwrap());
}

#[test]
fn a_document_that_is_none_is_refused_before_anything_is_touched() {
    let dir = TempDir::new().unwrap();
    let there = dir.path().join("state");
    let cases = [
        ("", "does not read"),
        ("{}", "no export"),
        ("[1,2", "does not read"),
        (r#"{"format":"backstop-state","version":99,"sessions":"?"}"#, "version 99"),
        ("{\"format\":\"backstop-state\",\"version\":1,\"sessions\":[\n{\"session\":\"\",\"revision\":1}]}", "line 2"),
        (r#"{"format":"backstop-state","version":1,"sessions":[{"session":"a","revision":-1,"memory":{}}]}"#, "line 1"),
    ];
    for (text, why) in cases {
        let file = dir.path().join("document");
        fs::write(&file, text).unwrap();
        let refused = state(&there, &["import", file.to_str().unwrap()]);
        assert_eq!(refused.status.code(), Some(1), "{text}: {refused:?}");
        assert!(err(&refused).contains(why), "{text}: {refused:?}");
        let piped = command(&there, &["import", "-"]).stdin(fs::File::open(&file).unwrap()).output().unwrap();
        assert_eq!(piped.status.code(), Some(1), "{piped:?}");
    }
    assert_eq!(state(&there, &["import", "/nowhere/at/all"]).status.code(), Some(1));
    assert!(!there.exists());
}

#[test]
fn hostile_ids_in_a_document_stay_in_the_directory() {
    let dir = TempDir::new().unwrap();
    let there = dir.path().join("a/state");
    let ids = ["../../escaped", "/etc/passwd", "a\u{0}b", "CON", "x/../../y", "\u{1b}[2J"];
    let lines: Vec<String> = ids
        .iter()
        .flat_map(|id| {
            let line = |of: &str| serde_json::json!({"session": id, "of": of, "revision": 1, "memory": {}}).to_string();
            [line("host"), line("exec")]
        })
        .collect();
    let document = format!(r#"{{"format":"backstop-state","version":1,"sessions":[{}]}}"#, lines.join(","));
    let file = dir.path().join("document");
    fs::write(&file, document).unwrap();
    let imported = state(&there, &["import", file.to_str().unwrap()]);
    assert_eq!(imported.status.code(), Some(0), "{imported:?}");
    assert_eq!(sessions(&there).len(), ids.len());
    let all = tree(dir.path());
    assert!(all.keys().all(|path| path.starts_with(&there) || *path == file), "{:?}", all.keys());
    assert_eq!(there.join("backstop/exec").read_dir().unwrap().count(), ids.len());
    let shown = state(&there, &["verify"]);
    assert!(!out(&shown).contains('\u{1b}') && shown.status.success(), "{shown:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn links_lead_nowhere() {
    let dir = two_sessions().await;
    let outside = TempDir::new().unwrap();
    let canary = outside.path().join("canary");
    fs::write(&canary, "canary").unwrap();
    // What a repair writes.
    symlink(outside.path(), dir.path().join("backstop/backup.new")).unwrap();
    symlink(&canary, dir.path().join("backstop/log.new")).unwrap();
    symlink(&canary, dir.path().join("recovery-.new")).unwrap();
    fs::remove_file(dir.path().join("recovery-gone.json")).unwrap();
    symlink(&canary, dir.path().join("recovery-gone.json")).unwrap();
    flip(dir.path());
    let repaired = state(dir.path(), &["repair"]);
    assert_eq!(repaired.status.code(), Some(0), "{repaired:?}");
    assert!(dir.path().join("recovery-gone.json").symlink_metadata().unwrap().is_file());
    // What an export writes.
    let link = outside.path().join("link.json");
    symlink(&canary, &link).unwrap();
    symlink(&canary, outside.path().join("new.json.part")).unwrap();
    assert_eq!(state(dir.path(), &["export", "-o", link.to_str().unwrap()]).status.code(), Some(1));
    let new = outside.path().join("new.json");
    assert_eq!(state(dir.path(), &["export", "-o", new.to_str().unwrap()]).status.code(), Some(0));
    // The directory itself.
    let way = outside.path().join("way");
    symlink(dir.path(), &way).unwrap();
    let before = tree(dir.path());
    for args in [&["verify"][..], &["repair"], &["export"], &["import", new.to_str().unwrap()]] {
        let refused = state(&way, args);
        assert_eq!(refused.status.code(), Some(3), "{args:?}: {refused:?}");
        assert!(err(&refused).contains("symbolic link"), "{args:?}: {refused:?}");
    }
    assert_eq!(tree(dir.path()), before);
    assert_eq!(fs::read_to_string(&canary).unwrap(), "canary");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_of_somebody_else_where_everybody_may_write_is_refused() {
    let dir = two_sessions().await;
    let document = TempDir::new().unwrap();
    let file = document.path().join("document");
    fs::write(&file, state(dir.path(), &["export"]).stdout).unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let nobody = 65_534;
    if std::os::unix::fs::chown(dir.path(), Some(nobody), None).is_err() {
        eprintln!("skipped: only root can give a directory away");
        return;
    }
    let before = tree(dir.path());
    for args in [&["verify"][..], &["repair"], &["export"], &["import", file.to_str().unwrap()]] {
        let refused = state(dir.path(), args);
        assert_eq!(refused.status.code(), Some(3), "{args:?}: {refused:?}");
        assert!(err(&refused).contains("no safe place"), "{args:?}: {refused:?}");
    }
    assert_eq!(tree(dir.path()), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_repair_and_import_write_is_private_whatever_the_umask() {
    let source = two_sessions().await;
    let document = source.path().join("document");
    fs::write(&document, state(source.path(), &["export"]).stdout).unwrap();
    for umask in ["000", "077"] {
        let dir = TempDir::new().unwrap();
        let there = dir.path().join("state");
        let run = |args: &[&str]| {
            let made = command(&there, args);
            let mut shell = Command::new("sh");
            shell.args(["-c", &format!("umask {umask}; exec \"$@\""), "sh"]);
            shell.arg(made.get_program()).args(made.get_args()).output().unwrap()
        };
        assert_eq!(run(&["import", document.to_str().unwrap()]).status.code(), Some(0));
        flip(&there);
        assert_eq!(run(&["repair"]).status.code(), Some(0));
        assert!(there.join("backstop/backup-1").is_dir());
        for path in tree(&there).keys().chain([&there, &there.join("backstop"), &there.join("backstop/backup-1")]) {
            let meta = path.metadata().unwrap();
            let expected = if meta.is_dir() { 0o700 } else { 0o600 };
            assert_eq!(meta.permissions().mode() & 0o777, expected, "{} under {umask}", path.display());
        }
    }
}

#[test]
fn the_sessions_of_exec_are_verified_repaired_exported_and_imported_too() {
    let dir = TempDir::new().unwrap();
    let config = dir.path().join("fast.yaml");
    fs::write(&config, "session_error: [{strategy: retry, config: {max_retries: 1, backoff_ms: 1}}, abort]\n").unwrap();
    let there = dir.path().join("state");
    let failed = Command::new(env!("CARGO_BIN_EXE_backstop"))
        .arg("--state-dir")
        .arg(&there)
        .arg("--config")
        .arg(&config)
        .args(["exec", "--session", "job", "--", "sh", "-c", "echo '503 Service Unavailable' >&2; exit 1"])
        .output()
        .unwrap();
    assert_eq!(failed.status.code(), Some(80), "{failed:?}");
    let exported = json(&state(&there, &["export"]));
    assert_eq!((&exported["sessions"][0]["session"], &exported["sessions"][0]["of"]), (&"job".into(), &"exec".into()));
    let whole = state(&there, &["verify"]);
    assert!(whole.status.success() && out(&whole).contains("1 session of exec: nothing is wrong"), "{whole:?}");
    let own = there.join("backstop/exec/job");
    flip(&own);
    assert_eq!(state(&there, &["verify"]).status.code(), Some(1));
    let repaired = state(&there, &["repair"]);
    assert_eq!(repaired.status.code(), Some(0), "{repaired:?}");
    assert_eq!(sessions(&own), ["job"], "its readable copy made up for it");

    let document = dir.path().join("document");
    fs::write(&document, exported.to_string()).unwrap();
    let other = dir.path().join("other");
    assert_eq!(state(&other, &["import", document.to_str().unwrap()]).status.code(), Some(0));
    assert_eq!(sessions(&other.join("backstop/exec/job")), ["job"]);
    assert!(sessions(&other).is_empty());
}

/// Killed as soon as each of its works is seen, a repair leaves the log as it was or repaired.
#[tokio::test(flavor = "multi_thread")]
async fn a_repair_that_is_killed_leaves_nothing_broken() {
    let dir = two_sessions().await;
    let own = dir.path().join("backstop");
    flip(dir.path());
    let known = sessions(dir.path());
    for seen in ["backup.new", "backup-1", "damaged-", "log.new", "log-00000003"] {
        let mut repair = command(dir.path(), &["repair"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let is_there =
            || own.read_dir().unwrap().flatten().any(|name| name.file_name().to_str().unwrap().contains(seen));
        while !is_there() && repair.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        let _ = repair.kill();
        repair.wait().unwrap();
        let now = sessions(dir.path());
        assert!(known.iter().all(|session| now.contains(session)), "after {seen}: {now:?}");
    }
    let repaired = state(dir.path(), &["repair"]);
    assert_eq!(repaired.status.code(), Some(0), "{repaired:?}");
    assert_eq!(state(dir.path(), &["verify"]).status.code(), Some(0));
    assert_eq!(sessions(dir.path()), ["gone", "open"]);
    assert!(!own.join("backup.new").exists());
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
