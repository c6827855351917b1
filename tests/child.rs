//! What `exec` promises about the one child that it runs, shown with real processes.
#![cfg(all(unix, feature = "cli"))]
#![allow(clippy::unwrap_used)]

use std::io::{self, Write};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use backstop::client::command::{
    ChildOutcome, ChildSpec, Control, EndedBy, Exit, Limits, Output, Outputs, StartError, Stdin, run,
};

/// A limit that no run of these tests comes near, however slow the machine is.
const AMPLE: Duration = Duration::from_secs(120);

fn sh(script: &str) -> ChildSpec {
    ChildSpec::new("sh", ["-c", script])
}

fn python(script: &str) -> ChildSpec {
    ChildSpec::new("python3", ["-c", script])
}

/// A time-out that will be met, long enough for a child to start and speak on a busy machine.
const SHORT: Duration = Duration::from_secs(3);

/// Limits that let only the one under test act.
fn limits() -> Limits {
    Limits { grace: AMPLE, interrupt_grace: AMPLE, drain: AMPLE, ..Limits::default() }
}

async fn outcome(spec: ChildSpec) -> ChildOutcome {
    run(&spec, Outputs::discard(), Control::new().watch()).await.unwrap()
}

/// A writer whose bytes can be read afterwards, and that can act on what passes.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<u8>>>);

impl Seen {
    fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap().clone()
    }
}

impl Write for Seen {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Calls back as soon as the child has said something: the sign that it is ready.
struct When<F>(F);

impl<F: FnMut()> Write for When<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (self.0)();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn when_ready(act: impl FnMut() + Send + 'static) -> Outputs {
    Outputs { stdout: Output::Writer(Box::new(When(act))), stderr: Output::Discard }
}

/// Whether a process still does something: a zombie only waits for its parent.
fn alive(pid: &str) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/status", pid.trim()));
    status.is_ok_and(|status| !status.contains("State:\tZ"))
}

/// Even a killed process lives on until the system gets round to it.
fn dies(pid: &str) {
    let begun = std::time::Instant::now();
    while alive(pid) {
        assert!(begun.elapsed() < AMPLE, "{pid} lives on");
        std::thread::yield_now();
    }
}

#[tokio::test]
async fn both_streams_pass_through_untouched_and_their_tails_are_kept() {
    let (out, err) = (Seen::default(), Seen::default());
    let outputs =
        Outputs { stdout: Output::Writer(Box::new(out.clone())), stderr: Output::Writer(Box::new(err.clone())) };
    let spec = python(
        r"import sys; sys.stdout.buffer.write(bytes(range(256))*3); sys.stderr.write('\x1b[31mred'); sys.exit(7)",
    );
    let outcome = run(&spec, outputs, Control::new().watch()).await.unwrap();
    let every_byte: Vec<u8> = (0..=255).cycle().take(768).collect();
    assert_eq!((outcome.exit, outcome.ended_by), (Exit::Code(7), EndedBy::Own));
    assert_eq!((out.bytes(), outcome.stdout.tail), (every_byte.clone(), every_byte));
    assert_eq!((err.bytes(), outcome.stderr.text()), (b"\x1b[31mred".to_vec(), "\u{1b}[31mred".into()));
}

#[tokio::test]
async fn output_is_passed_on_while_the_child_still_runs() {
    // The child ends only once its first words, without a line break, have come out on our side.
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("seen");
    let spec = sh(&format!("printf working; while [ ! -e '{}' ]; do sleep 0.02; done; exit 5", mark.display()));
    let outputs = when_ready(move || std::fs::write(&mark, "").unwrap());
    let spec = spec.with_limits(Limits { turn_timeout: Some(AMPLE), ..limits() });
    assert_eq!(run(&spec, outputs, Control::new().watch()).await.unwrap().exit, Exit::Code(5));
}

#[tokio::test]
async fn a_flood_of_100_mb_leaves_only_its_tail() {
    let folder = tempfile::tempdir().unwrap();
    let passed = folder.path().join("passed");
    let spec = python(
        "import sys\nline = b'x' * 99 + b'\\n'\nfor _ in range(1000): sys.stdout.buffer.write(line * 1000)\nsys.stdout.write('the end')",
    );
    let outputs =
        Outputs { stdout: Output::Writer(Box::new(std::fs::File::create(&passed).unwrap())), ..Outputs::discard() };
    let outcome = run(&spec, outputs, Control::new().watch()).await.unwrap();
    assert_eq!(outcome.stdout.bytes, 100_000_007);
    assert_eq!(std::fs::metadata(&passed).unwrap().len(), 100_000_007);
    let tail = &outcome.stdout.tail;
    assert!(
        (64 * 1024 - 100..=64 * 1024).contains(&tail.len()),
        "all but the line whose start is gone: {}",
        tail.len()
    );
    assert!(tail.starts_with(&[b'x'; 99]) && tail[99] == b'\n' && tail.ends_with(b"x\nthe end"));
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak_kb: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(peak_kb < 80_000, "the test program used {peak_kb} kB");
}

#[tokio::test]
async fn stdin_is_the_same_at_every_run() {
    let input: Arc<[u8]> = (0..=255).cycle().take(300_000).collect();
    let spec = sh("cksum").with_stdin(Stdin::Replay(input));
    let (first, second) = (outcome(spec.clone()).await, outcome(spec).await);
    assert!(first.stdout.text().contains(" 300000"), "{}", first.stdout.text());
    assert_eq!(first.stdout, second.stdout);
}

#[tokio::test]
async fn a_child_that_does_not_read_its_stdin_is_none_the_worse() {
    let input: Arc<[u8]> = vec![b'x'; 1_000_000].into();
    assert_eq!(outcome(sh("exit 0").with_stdin(Stdin::Replay(input))).await.exit, Exit::Code(0));
    assert_eq!(outcome(sh("cat")).await.stdout.bytes, 0, "without input there is an end of input at once");
}

#[tokio::test]
async fn a_silent_child_is_ended_by_the_idle_timeout() {
    let limits = Limits { idle_timeout: Some(SHORT), turn_timeout: Some(AMPLE), ..limits() };
    let outcome = outcome(sh("echo begun; sleep 1000").with_limits(limits)).await;
    assert_eq!(outcome.ended_by, EndedBy::IdleTimeout);
    assert_eq!(outcome.limit, Some(SHORT));
    assert_eq!(outcome.exit, Exit::Signal("SIGTERM".into()));
    assert_eq!(outcome.stdout.text(), "begun\n");
}

#[tokio::test]
async fn a_child_that_talks_is_ended_by_the_turn_timeout_only() {
    let limits = Limits { idle_timeout: Some(AMPLE), turn_timeout: Some(Duration::from_millis(500)), ..limits() };
    let outcome = outcome(sh("while :; do echo busy; sleep 0.05; done").with_limits(limits)).await;
    assert_eq!(outcome.ended_by, EndedBy::TurnTimeout);
}

#[tokio::test]
async fn a_child_that_ignores_sigterm_is_killed_after_the_grace() {
    let limits = Limits { idle_timeout: Some(SHORT), grace: Duration::from_millis(200), ..limits() };
    let deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True)\nwhile True: time.sleep(9)";
    let outcome = outcome(python(deaf).with_limits(limits)).await;
    assert_eq!((outcome.ended_by, outcome.exit), (EndedBy::IdleTimeout, Exit::Signal("SIGKILL".into())));
    assert_eq!(outcome.stdout.text(), "deaf\n");
}

#[tokio::test]
async fn a_stopped_child_can_still_be_ended() {
    let limits = Limits { idle_timeout: Some(SHORT), ..limits() };
    let outcome = outcome(sh("trap 'exit 9' TERM; kill -STOP $$").with_limits(limits)).await;
    assert_eq!((outcome.ended_by, outcome.exit), (EndedBy::IdleTimeout, Exit::Code(9)));
}

#[tokio::test]
async fn a_blocked_reader_of_ours_does_not_count_as_the_childs_silence() {
    // The first write to our side blocks for longer than the idle time-out; the child is fine.
    let mut pause = Some(SHORT * 2);
    let outputs = when_ready(move || std::thread::sleep(pause.take().unwrap_or_default()));
    let limits = Limits { idle_timeout: Some(SHORT), ..limits() };
    let spec = python("print('x' * 500_000, flush=True)").with_limits(limits);
    let outcome = run(&spec, outputs, Control::new().watch()).await.unwrap();
    assert_eq!((outcome.ended_by, outcome.stdout.bytes), (EndedBy::Own, 500_001));
}

#[tokio::test]
async fn a_signal_from_outside_is_named() {
    let outcome = outcome(sh("kill -SEGV $$")).await;
    assert_eq!((outcome.exit, outcome.ended_by), (Exit::Signal("SIGSEGV".into()), EndedBy::Own));
}

#[tokio::test]
async fn a_grandchild_that_keeps_the_pipe_does_not_hold_us_and_is_left_alive() {
    let limits = Limits { drain: Duration::from_millis(100), ..limits() };
    let spec = python(
        "import subprocess, sys\np = subprocess.Popen(['sleep', '1000'])\nsys.stdout.write('y' * 60_000 + f'\\n{p.pid}')",
    );
    let outcome = outcome(spec.with_limits(limits)).await;
    assert_eq!((outcome.exit, outcome.stdout.bytes > 60_000), (Exit::Code(0), true));
    let text = outcome.stdout.text().into_owned();
    let pid = text.lines().last().unwrap();
    assert!(alive(pid), "what an agent starts on purpose goes on");
    Command::new("kill").args(["-9", pid]).status().unwrap();
}

#[tokio::test]
async fn a_grandchild_that_finishes_the_output_is_waited_for() {
    let outcome = outcome(sh("(sleep 0.2; echo late) & echo early").with_limits(limits())).await;
    assert_eq!(outcome.stdout.text(), "early\nlate\n");
}

#[tokio::test]
async fn when_the_wrapper_is_killed_the_real_agent_is_ended_too() {
    let spec = sh("sleep 1000 & echo $!; kill -KILL $$");
    let outcome = outcome(spec.with_limits(limits())).await;
    assert_eq!((&outcome.exit, outcome.ended_by), (&Exit::Signal("SIGKILL".into()), EndedBy::Own));
    dies(&outcome.stdout.text());
}

#[tokio::test]
async fn a_grandchild_that_ignores_sigterm_does_not_outlive_a_timeout() {
    let limits = Limits { idle_timeout: Some(SHORT), grace: Duration::from_millis(200), ..limits() };
    let spec = sh("(trap '' TERM; while :; do sleep 0.1; done) & echo $!; wait").with_limits(limits);
    let outcome = outcome(spec).await;
    assert_eq!((&outcome.exit, outcome.ended_by), (&Exit::Signal("SIGTERM".into()), EndedBy::IdleTimeout));
    dies(&outcome.stdout.text());
}

#[tokio::test]
async fn cancelling_interrupts_the_whole_group() {
    // Both the child and its own child write down the signal that reached them.
    let script = r#"
        trap 'wait; echo outer; exit 130' INT
        python3 -c 'import os, signal, time
def note(*_):
    os.write(1, b"inner\n"); os._exit(0)
signal.signal(signal.SIGINT, note); os.write(1, b"ready\n")
while True: time.sleep(9)' &
        wait"#;
    let control = Control::new();
    let (asked, seen) = (control.clone(), Seen::default());
    let mut once = Some(());
    let cancel = When(move || once.take().into_iter().for_each(|()| asked.cancel()));
    let stdout = Output::Writer(Box::new(Both(cancel, seen.clone())));
    let outputs = Outputs { stdout, stderr: Output::Discard };
    let outcome = run(&sh(script).with_limits(limits()), outputs, control.watch()).await.unwrap();
    assert_eq!((outcome.ended_by, outcome.exit), (EndedBy::Cancelled, Exit::Code(130)));
    assert_eq!(String::from_utf8(seen.bytes()).unwrap(), "ready\ninner\nouter\n");
}

struct Both<A, B>(A, B);

impl<A: Write, B: Write> Write for Both<A, B> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.1.write_all(bytes)?;
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn cancelling_twice_kills() {
    let control = Control::new();
    let asked = control.clone();
    let outputs = when_ready(move || (0..2).for_each(|_| asked.cancel()));
    let deaf = sh("trap '' INT TERM; echo ready; while :; do sleep 0.1; done").with_limits(limits());
    let outcome = run(&deaf, outputs, control.watch()).await.unwrap();
    assert_eq!((outcome.ended_by, outcome.exit), (EndedBy::Cancelled, Exit::Signal("SIGKILL".into())));
}

#[tokio::test]
async fn suspending_terminates() {
    let control = Control::new();
    let asked = control.clone();
    let outputs = when_ready(move || asked.suspend());
    let spec = sh("trap 'exit 3' TERM; echo ready; while :; do sleep 0.1; done").with_limits(limits());
    let outcome = run(&spec, outputs, control.watch()).await.unwrap();
    assert_eq!((outcome.ended_by, outcome.exit), (EndedBy::Suspended, Exit::Code(3)));
}

#[tokio::test]
async fn nothing_is_started_after_a_cancel() {
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("started");
    let control = Control::new();
    control.cancel();
    let spec = sh(&format!("touch '{}'", mark.display()));
    let outcome = run(&spec, Outputs::discard(), control.watch()).await.unwrap();
    assert_eq!((outcome.exit, outcome.ended_by), (Exit::NotStarted, EndedBy::Cancelled));
    assert!(!mark.exists());
}

#[tokio::test]
async fn a_closed_output_of_ours_lets_the_child_finish() {
    let (reader, writer) = io::pipe().unwrap();
    drop(reader);
    let outputs = Outputs { stdout: Output::Writer(Box::new(writer)), stderr: Output::Discard };
    let spec = python("import sys; sys.stdout.write('z' * 1_000_000); sys.stdout.flush(); sys.exit(4)");
    let outcome = run(&spec, outputs, Control::new().watch()).await.unwrap();
    assert_eq!((outcome.exit, outcome.stdout.bytes, outcome.stdout.sink_closed), (Exit::Code(4), 1_000_000, true));
}

#[tokio::test]
async fn a_dropped_run_leaves_no_process_behind() {
    let (told, mut ready) = tokio::sync::mpsc::unbounded_channel();
    let seen = Seen::default();
    let outputs = Outputs {
        stdout: Output::Writer(Box::new(Both(When(move || told.send(()).unwrap()), seen.clone()))),
        stderr: Output::Discard,
    };
    let spec = sh("sleep 1000 & echo $!; wait");
    tokio::select! {
        _ = run(&spec, outputs, Control::new().watch()) => unreachable!("it runs for ever"),
        _ = ready.recv() => {}
    }
    let pid = String::from_utf8(seen.bytes()).unwrap();
    dies(&pid);
}

#[tokio::test]
async fn what_cannot_be_started_is_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let plain = folder.path().join("plain");
    std::fs::write(&plain, "no program").unwrap();
    let broken = folder.path().join("broken");
    std::fs::write(&broken, "#!/no/such/interpreter\n").unwrap();
    Command::new("chmod").arg("+x").arg(&broken).status().unwrap();
    let start = async |program: &Path| {
        let spec = ChildSpec::new(program, [""; 0]);
        run(&spec, Outputs::discard(), Control::new().watch()).await.unwrap_err()
    };
    let missing = start(Path::new("no-such-program-anywhere")).await;
    assert!(matches!(missing, StartError::NotFound { .. }) && missing.exit_code() == 127, "{missing:?}");
    let forbidden = start(&plain).await;
    assert!(matches!(forbidden, StartError::NotExecutable { .. }) && forbidden.exit_code() == 126, "{forbidden:?}");
    assert!(matches!(start(&broken).await, StartError::NotExecutable { .. }));
    let nowhere = ChildSpec { directory: Some(folder.path().join("gone")), ..sh("true") };
    let error = run(&nowhere, Outputs::discard(), Control::new().watch()).await.unwrap_err();
    assert!(matches!(error, StartError::Directory { .. }), "{error:?}");
}

#[tokio::test]
async fn variables_are_set_and_removed() {
    let spec =
        sh("echo \"$GIVEN-${HOME-none}\"").with_env([("GIVEN".into(), Some("yes".into())), ("HOME".into(), None)]);
    assert_eq!(outcome(spec).await.stdout.text(), "yes-none\n");
}
