use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::support::Dir;

/// Runs a script of this project with a `backstop pipe` in a fresh directory.
fn script(interpreter: &str, script: &str, arguments: &[&str]) -> Output {
    let dir = Dir::new();
    let mut command = Command::new(interpreter);
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join(script)).args(arguments);
    command.args([env!("CARGO_BIN_EXE_backstop"), "pipe", "--config", "fast.yaml"]);
    command.current_dir(dir.0.path()).stderr(Stdio::inherit()).output().unwrap()
}

#[test]
fn a_python_scheduler_drives_200_sessions_at_once() {
    let output = script("python3", "tests/pipe/scheduler.py", &["200"]);
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(summary, json!({"code": 0, "recovered": 150, "worked": 50, "counted": 150}));
}

#[test]
fn the_readmes_hosts_drive_their_sessions() {
    for (interpreter, host, sessions) in
        [("python3", "examples/pipe/host.py", 2), ("node", "examples/pipe/host.mjs", 3)]
    {
        let output = script(interpreter, host, &[]);
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{host}: {said}");
        let recovered = said.lines().filter(|line| line.ends_with("recovered after 3 tries"));
        assert_eq!(recovered.count(), sessions, "{host}: {said}");
    }
}
