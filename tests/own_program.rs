//! Promises about a whole program: its signals and its own streams. Each test runs this file's program
//! once more, and looks at that from outside.
#![cfg(all(unix, feature = "cli"))]
#![allow(clippy::unwrap_used)]

use std::process::{Command, Output};
use std::time::Duration;

use backstop::client::command::{ChildSpec, Control, Limits, Outputs, listen, run};

const INSIDE: &str = "BACKSTOP_TEST_INSIDE";

/// Whether this is the inner program; then the test's work is done in here.
fn inside<F: Future<Output = ()>>(work: impl FnOnce() -> F) -> bool {
    let inside = std::env::var_os(INSIDE).is_some();
    if inside {
        tokio::runtime::Runtime::new().unwrap().block_on(work());
    }
    inside
}

/// Runs one test of this program again, started by this shell script.
fn again(test: &str, script: &str) -> Output {
    let output = Command::new("sh")
        .args(["-c", script])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, "1")
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    output
}

fn sh(script: &str) -> ChildSpec {
    let limits = Limits { turn_timeout: Some(Duration::from_secs(120)), ..Limits::default() };
    ChildSpec::new("sh", ["-c", script]).with_limits(limits)
}

async fn disposition_of_sigint() -> String {
    let ask = "import signal; print('ignored' if signal.getsignal(signal.SIGINT) == signal.SIG_IGN else 'default')";
    let outcome = run(&ChildSpec::new("python3", ["-c", ask]), Outputs::discard(), Control::new().watch()).await;
    outcome.unwrap().stdout.text().trim().to_owned()
}

#[test]
fn a_child_does_not_inherit_an_ignored_sigint() {
    let work = || async {
        let before = disposition_of_sigint().await;
        listen(&Control::new()).unwrap();
        println!("before: {before}, after: {}", disposition_of_sigint().await);
    };
    if !inside(work) {
        let output = again("a_child_does_not_inherit_an_ignored_sigint", r#"trap '' INT; exec "$0" "$@""#);
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains("before: ignored, after: default"), "{text}");
    }
}

#[test]
fn the_programs_own_signals_cancel_and_suspend() {
    let work = || async {
        for signal in ["INT", "TERM", "HUP"] {
            let control = Control::new();
            listen(&control).unwrap();
            let spec = sh(&format!("kill -{signal} $PPID; sleep 1000"));
            let outcome = run(&spec, Outputs::discard(), control.watch()).await.unwrap();
            println!("{signal}: {:?} {}", outcome.ended_by, outcome.exit);
        }
    };
    if !inside(work) {
        let output = again("the_programs_own_signals_cancel_and_suspend", r#"exec "$0" "$@""#);
        let text = String::from_utf8(output.stdout).unwrap();
        for line in ["INT: Cancelled", "TERM: Suspended", "HUP: Suspended"] {
            assert!(text.contains(line), "{line}: {text}");
        }
    }
}

#[test]
fn what_the_child_says_comes_out_of_our_own_streams() {
    let work = || async {
        let spec = sh("printf 'to \\377out'; printf 'to err' >&2");
        run(&spec, Outputs::default(), Control::new().watch()).await.unwrap();
        run(&sh("echo helper"), Outputs::to_stderr(), Control::new().watch()).await.unwrap();
    };
    if !inside(work) {
        let output = again("what_the_child_says_comes_out_of_our_own_streams", r#"exec "$0" "$@""#);
        let holds = |stream: &[u8], text: &[u8]| stream.windows(text.len()).any(|window| window == text);
        assert!(holds(&output.stdout, b"to \xffout") && !holds(&output.stdout, b"helper"), "{output:?}");
        assert!(holds(&output.stderr, b"to errhelper\n"), "{output:?}");
    }
}

#[test]
fn a_closed_stdout_of_ours_is_noticed_and_survived() {
    let work = || async {
        let outcome = run(&sh("head -c 300000 /dev/zero; exit 4"), Outputs::default(), Control::new().watch()).await;
        let outcome = outcome.unwrap();
        eprintln!("{} bytes, {}, closed: {}", outcome.stdout.bytes, outcome.exit, outcome.stdout.sink_closed);
    };
    if !inside(work) {
        // The harness itself would stumble over a closed stdout, so it keeps its own lines short of it.
        let script = r#"{ "$0" "$@" 2>&3 | head -c 1000 >/dev/null; } 3>&2"#;
        let output = again("a_closed_stdout_of_ours_is_noticed_and_survived", script);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(text.contains("300000 bytes, exit code 4, closed: true"), "{text}");
    }
}
