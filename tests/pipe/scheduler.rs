use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::Dir;

#[test]
fn a_python_scheduler_drives_200_sessions_at_once() {
    let dir = Dir::new();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pipe/scheduler.py");
    let mut command = Command::new("python3");
    command.arg(script).args(["200", env!("CARGO_BIN_EXE_backstop"), "pipe", "--config", "fast.yaml"]);
    let output = command.current_dir(dir.0.path()).stderr(Stdio::inherit()).output().unwrap();
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(summary, json!({"code": 0, "recovered": 150, "worked": 50, "counted": 150}));
}
