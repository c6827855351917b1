//! A `backstop pipe` to talk to.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::Value;

/// A wait that only a broken test reaches.
const AMPLE: Duration = Duration::from_secs(120);

/// The built-in steps with short exact waits.
pub const FAST: &str = "
session_error:
  - {strategy: retry, config: {max_retries: 3, backoff_ms: 20, backoff_factor: 1, jitter: false}}
  - abort
";

pub struct Dir(pub tempfile::TempDir);

impl Dir {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("fast.yaml"), FAST).unwrap();
        Self(dir)
    }

    pub fn backstop(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_backstop"));
        command.current_dir(self.0.path()).args(["pipe", "--config", "fast.yaml"]);
        command
    }

    pub fn pipe(&self, options: &[&str]) -> Pipe {
        let mut command = self.backstop();
        let mut child = command.args(options).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (sender, answers) = channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || stdout.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        Pipe { stdin: child.stdin.take(), child, answers }
    }
}

pub struct Pipe {
    child: Child,
    stdin: Option<ChildStdin>,
    answers: Receiver<String>,
}

impl Pipe {
    pub fn send(&mut self, lines: &str) {
        self.stdin.as_mut().unwrap().write_all(format!("{lines}\n").as_bytes()).unwrap();
    }

    /// The next answer.
    #[track_caller]
    pub fn hear(&self) -> Value {
        serde_json::from_str(&self.answers.recv_timeout(AMPLE).expect("no answer")).unwrap()
    }

    #[track_caller]
    pub fn ask(&mut self, line: &str) -> Value {
        self.send(line);
        self.hear()
    }

    pub fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([&format!("-{name}"), &id]).status().unwrap().success());
    }

    /// Ends the input, unless it was ended, and waits; gives the exit code and what was still said.
    pub fn end(mut self) -> (Option<i32>, Vec<Value>) {
        drop(self.stdin.take());
        self.wait()
    }

    /// Waits for its end with the input left open.
    pub fn wait(mut self) -> (Option<i32>, Vec<Value>) {
        let rest = self.answers.iter().map(|line| serde_json::from_str(&line).unwrap()).collect();
        (self.child.wait().unwrap().code(), rest)
    }
}
