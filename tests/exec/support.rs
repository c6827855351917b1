//! A directory to run `backstop` in, and what came of it.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::Value;

/// A wait that only a broken test reaches, however slow the machine is.
pub const AMPLE: Duration = Duration::from_secs(120);

/// Short exact waits; the steps are those of the built-in chain.
pub const FAST: &str = "
session_error:
  - {strategy: retry, config: {max_retries: 3, backoff_ms: 20, backoff_factor: 1, jitter: false}}
  - compact
  - abort
";

/// Fails `argv[2]` times with the text of the file `argv[1]` on stderr, then prints `done`.
pub const FLAKY: &str = r#"
import os, sys
error, fails = sys.argv[1], int(sys.argv[2])
tries = int(open("tries").read()) + 1 if os.path.exists("tries") else 1
open("tries", "w").write(str(tries))
if tries <= fails:
    sys.stderr.write(open(error).read())
    sys.exit(1)
print("done")
"#;

/// A working directory of its own.
pub struct Dir(tempfile::TempDir);

impl Dir {
    pub fn new() -> Self {
        let dir = Self(tempfile::tempdir().unwrap());
        dir.file("fast.yaml", FAST);
        dir.file("flaky.py", FLAKY);
        dir
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn file(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    pub fn has(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    /// Waits until another process has written a whole line to this file, and gives it.
    pub fn wait_for_line(&self, name: &str) -> String {
        let start = Instant::now();
        loop {
            let text = fs::read_to_string(self.path(name)).unwrap_or_default();
            if let Some(line) = text.strip_suffix('\n') {
                return line.to_owned();
            }
            assert!(start.elapsed() < AMPLE, "nobody writes {name}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// `backstop` in this directory, with nothing on stdin.
    pub fn backstop(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_backstop"));
        command.current_dir(self.0.path()).stdin(Stdio::null());
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("BACKSTOP")) {
            command.env_remove(name);
        }
        command
    }

    /// `backstop exec` with a final report, ready to be started.
    pub fn exec(&self, options: &[&str], command: &[&str]) -> Command {
        let mut exec = self.backstop();
        exec.args(["exec", "--report", "report.json"]).args(options).arg("--").args(command);
        exec
    }

    /// Runs `backstop exec` to its end.
    pub fn run(&self, options: &[&str], command: &[&str]) -> Ran {
        self.ended(self.exec(options, command))
    }

    /// Runs a command made by [`exec`](Self::exec) to its end.
    pub fn ended(&self, mut command: Command) -> Ran {
        let output = command.output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ran {
            code: output.status.code(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
            report: self.report(),
        }
    }

    /// Starts a command made by [`exec`](Self::exec).
    pub fn start(&self, mut command: Command) -> Running<'_> {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (sender, lines) = channel();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        std::thread::spawn(move || stderr.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        Running { dir: self, child, lines, seen: String::new() }
    }

    fn report(&self) -> Value {
        let text = fs::read_to_string(self.path("report.json")).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }
}

/// How a run went.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    pub report: Value,
}

impl Ran {
    #[track_caller]
    pub fn expect(&self, code: i32) -> &Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        self
    }

    #[track_caller]
    pub fn says(&self, text: &str) -> &Self {
        assert!(self.stderr.contains(text), "stderr lacks {text:?}: {self:#?}");
        self
    }

    #[track_caller]
    pub fn reports(&self, field: &str, value: impl Into<Value>) -> &Self {
        assert_eq!(self.report[field], value.into(), "{field}: {self:#?}");
        self
    }
}

/// A run under way.
pub struct Running<'d> {
    dir: &'d Dir,
    child: Child,
    lines: Receiver<String>,
    seen: String,
}

impl Running<'_> {
    /// Waits until it says this on stderr.
    #[track_caller]
    pub fn wait_for(&mut self, text: &str) {
        while !self.seen.contains(text) {
            match self.lines.recv_timeout(AMPLE) {
                Ok(line) => self.seen += &(line + "\n"),
                Err(_) => panic!("it never said {text:?}: {}", self.seen),
            }
        }
    }

    pub fn signal(&self, name: &str) {
        signal(name, &self.child.id().to_string());
    }

    /// Waits for its end.
    pub fn end(mut self) -> Ran {
        let mut stdout = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
        let code = self.child.wait().unwrap().code();
        self.seen.extend(self.lines.iter().map(|line| line + "\n"));
        Ran { code, stdout, stderr: self.seen, report: self.dir.report() }
    }
}

pub fn signal(name: &str, process: &str) {
    assert!(Command::new("kill").args([&format!("-{name}"), process]).status().unwrap().success());
}

/// Whether a process of this id works; one that is dead but not yet collected does not.
pub fn is_alive(process: &str) -> bool {
    let state = Command::new("ps").args(["-o", "stat=", "-p", process]).output().unwrap();
    let state = String::from_utf8_lossy(&state.stdout).trim().to_owned();
    !state.is_empty() && !state.starts_with('Z')
}

/// Waits until it is dead.
#[track_caller]
pub fn wait_until_dead(process: &str) {
    let start = Instant::now();
    while is_alive(process) {
        assert!(start.elapsed() < AMPLE, "process {process} lives on");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A real error of the corpus, as a program would print it.
pub fn corpus(id: &str) -> String {
    let all = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/corpus/dev.jsonl")).unwrap();
    let lines = all.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut lines = lines;
    match lines.find(|line| line["id"] == id).unwrap_or_else(|| panic!("no {id}"))["input"].take() {
        Value::String(text) => text,
        object => object.to_string(),
    }
}
