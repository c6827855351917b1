//! What `backstop sessions` promises: looking beside a running process, and resetting.
#![cfg(feature = "cli")]
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::{Command, Output};

use backstop::{RecoveryEngine, Report, SessionId};
use serde_json::Value;
use tempfile::TempDir;

fn sessions(dir: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_backstop"));
    command.arg("--state-dir").arg(dir).arg("sessions").args(args).output().unwrap()
}

fn out(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

fn err(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}

fn id(name: &str) -> SessionId {
    SessionId::new(name).unwrap()
}

const HOSTILE: &str = "../x\u{1b}[2J\n\u{202e}";

/// An engine with one session in each state: about to redo, aborted, and with a hostile id.
async fn engine(dir: &Path) -> RecoveryEngine {
    let engine = RecoveryEngine::builder().state_dir(dir).spawn().await.unwrap();
    engine.report(&id("open"), Report::text("429 Too Many Requests")).await.unwrap();
    engine.report(&id(HOSTILE), Report::text("429 Too Many Requests")).await.unwrap();
    let mut directive = engine.report(&id("gone"), Report::text("503 overloaded")).await.unwrap();
    while directive.is_redo() {
        let report = Report::text("503 overloaded");
        directive = engine.report_redo(&id("gone"), report, Some(directive.seq)).await.unwrap();
    }
    engine
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_are_looked_at_beside_the_process_that_has_them() {
    let dir = TempDir::new().unwrap();
    let engine = engine(dir.path()).await;
    for list in [sessions(dir.path(), &[]), sessions(dir.path(), &["list"])] {
        assert_eq!(list.status.code(), Some(0), "{list:?}");
        let lines: Vec<&str> = out(&list).lines().collect();
        assert_eq!(lines.len(), 4, "{list:?}");
        let line = |start: &str| *lines.iter().find(|line| line.starts_with(start)).unwrap();
        assert!(line("open").contains("redoing"), "{list:?}");
        assert!(line("gone").contains("aborted") && line("gone").contains("aborted:"), "{list:?}");
        assert!(line(r"../x\u{1b}[2J\n\u{202e}").contains("redoing"));
        let columns: Vec<usize> = lines[1..].iter().filter_map(|line| line.find("redoing")).collect();
        assert!(columns.iter().all(|column| *column == lines[0].find("STATE").unwrap()), "{list:?}");
    }

    let shown = sessions(dir.path(), &["show", "gone"]);
    for part in ["session gone", "verdict     aborted", "session_error / overloaded", "1. retry", "2. compact"] {
        assert!(out(&shown).contains(part), "no {part:?} in:\n{}", out(&shown));
    }
    let shown = sessions(dir.path(), &["show", HOSTILE]);
    assert!(shown.status.success() && !out(&shown).contains('\u{1b}'), "{shown:?}");

    let list: Value = serde_json::from_slice(&sessions(dir.path(), &["list", "--json"]).stdout).unwrap();
    assert_eq!(list["sessions"].as_array().unwrap().len(), 3);
    let show: Value = serde_json::from_slice(&sessions(dir.path(), &["show", "open", "--json"]).stdout).unwrap();
    assert_eq!((&show["session"], &show["state"]["episode"]["phase"]), (&"open".into(), &"redoing".into()));
    engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reset_waits_for_no_lock_and_names_its_holder() {
    let dir = TempDir::new().unwrap();
    let engine = engine(dir.path()).await;
    let refused = sessions(dir.path(), &["reset", "open"]);
    assert_eq!(refused.status.code(), Some(4), "{refused:?}");
    assert!(err(&refused).contains(&format!("process {}", std::process::id())), "{refused:?}");
    assert!(err(&refused).contains("stop that process and try again"), "{refused:?}");

    engine.shutdown().await;
    assert!(dir.path().join("recovery-open.json").exists());
    for session in ["open", "gone"] {
        let reset = sessions(dir.path(), &["reset", session]);
        assert_eq!(reset.status.code(), Some(0), "{reset:?}");
    }
    let list: Value = serde_json::from_slice(&sessions(dir.path(), &["--json"]).stdout).unwrap();
    let open = |session: &Value| session["open"] == true || session.get("verdict").is_some();
    assert_eq!(list["sessions"].as_array().unwrap().iter().filter(|session| open(session)).count(), 1, "{list}");
    assert!(!dir.path().join("recovery-open.json").exists(), "its readable file goes too");

    // A new episode begins as if there had been none.
    let engine = RecoveryEngine::builder().state_dir(dir.path()).spawn().await.unwrap();
    let directive = engine.report(&id("gone"), Report::text("503 overloaded")).await.unwrap();
    assert!(directive.is_redo(), "{directive:?}");
    engine.shutdown().await;
}

#[test]
fn an_unknown_session_and_an_empty_place_are_no_accidents() {
    let dir = TempDir::new().unwrap();
    let nowhere = dir.path().join("nowhere");
    let list = sessions(&nowhere, &[]);
    assert_eq!(list.status.code(), Some(0));
    assert!(out(&list).starts_with("no sessions in "));
    for verb in ["show", "reset"] {
        let output = sessions(&nowhere, &[verb, "ghost"]);
        assert_eq!(output.status.code(), Some(1));
        assert!(err(&output).contains("no session \"ghost\""), "{output:?}");
        assert_eq!(sessions(&nowhere, &[verb, ""]).status.code(), Some(2));
    }
    assert!(!nowhere.exists(), "looking creates nothing");
}

#[cfg(unix)]
#[test]
fn a_place_that_cannot_be_used_has_its_own_exit_code() {
    let dir = TempDir::new().unwrap();
    std::fs::create_dir(dir.path().join("real")).unwrap();
    std::fs::create_dir(dir.path().join("real/backstop")).unwrap();
    std::os::unix::fs::symlink(dir.path().join("real"), dir.path().join("link")).unwrap();
    let list = sessions(&dir.path().join("link"), &[]);
    assert_eq!(list.status.code(), Some(3), "{list:?}");
    assert!(err(&list).contains("symbolic link"), "{list:?}");
}

#[cfg(unix)]
#[test]
fn the_sessions_of_exec_are_found_and_reset_as_well() {
    let dir = TempDir::new().unwrap();
    let config = dir.path().join("fast.yaml");
    let chain = "session_error: [{strategy: retry, config: {max_retries: 1, backoff_ms: 1}}, abort]\n";
    std::fs::write(&config, chain).unwrap();
    let failed = Command::new(env!("CARGO_BIN_EXE_backstop"))
        .arg("--state-dir")
        .arg(dir.path())
        .arg("--config")
        .arg(&config)
        .args(["exec", "--session", "job", "--", "sh", "-c", "echo '503 Service Unavailable' >&2; exit 1"])
        .output()
        .unwrap();
    assert_eq!(failed.status.code(), Some(80), "{failed:?}");
    let list = sessions(dir.path(), &[]);
    let line = out(&list).lines().find(|line| line.starts_with("job")).unwrap_or_else(|| panic!("{list:?}"));
    assert!(line.contains("exec") && line.contains("aborted"), "{list:?}");
    assert!(out(&sessions(dir.path(), &["show", "job"])).contains("1. retry"));
    assert_eq!(sessions(dir.path(), &["reset", "job"]).status.code(), Some(0));
    assert!(out(&sessions(dir.path(), &["show", "job"])).contains("at rest"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_journal_tells_what_was_decided_for_a_session_and_why() {
    let dir = TempDir::new().unwrap();
    let engine = engine(dir.path()).await;
    engine.shutdown().await;
    let told = sessions(dir.path(), &["journal", "gone"]);
    assert!(told.status.success(), "{told:?}");
    let lines: Vec<&str> = out(&told).lines().collect();
    assert!(lines[0].contains("chain_chosen") && lines[0].contains("chain: session_error"), "{told:?}");
    assert!(lines.last().unwrap().contains("ended") && out(&told).contains("because: "), "{told:?}");
    let json = sessions(dir.path(), &["journal", "gone", "--json"]);
    let json: Vec<Value> = out(&json).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((json.len(), &json[0]["session"]), (lines.len(), &"gone".into()));
    let hostile = sessions(dir.path(), &["journal", HOSTILE]);
    assert!(hostile.status.success() && !out(&hostile).contains('\u{1b}'), "{hostile:?}");
    let unknown = sessions(dir.path(), &["journal", "nobody"]);
    assert_eq!(unknown.status.code(), Some(1), "{unknown:?}");
    assert!(err(&unknown).contains("no lines of session \"nobody\""), "{unknown:?}");
}
