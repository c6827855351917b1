//! How a run ends, and its exit code.

use crate::support::{Dir, corpus};
use serde_json::Value;

const OFF: &str = "enabled: false";

#[test]
fn an_unhandled_failure_ends_as_the_command_did() {
    let dir = Dir::new();
    dir.file("off.yaml", OFF);
    let off = ["--config", "off.yaml"];
    dir.run(&off, &["sh", "-c", "echo out; exit 42"]).expect(42).reports("verdict", "unhandled").reports("tries", 1);
    dir.run(&off, &["sh", "-c", "kill -KILL $$"]).expect(137);
    // No script may take this for success.
    dir.run(&["--config", "off.yaml", "--empty-is-failure"], &["true"]).expect(1);
}

#[test]
fn every_verdict_has_its_own_code() {
    let dir = Dir::new();
    dir.file("error", &corpus("a052"));
    let fails = ["sh", "-c", "cat error >&2; exit 7"];
    dir.run(&["--config", "fast.yaml"], &fails).expect(80).reports("verdict", "aborted").reports("tries", 4);
    dir.file("short.yaml", "session_error: [{strategy: retry, config: {max_retries: 1, backoff_ms: 10}}]");
    let ran = dir.run(&["--config", "short.yaml"], &fails);
    ran.expect(81).reports("verdict", "exhausted").reports("tries", 2).says("; session run-");
    assert_eq!(ran.report["command"]["exit_code"], 7);
    dir.run(&["--config", "fast.yaml", "--max-attempts", "2"], &fails).expect(80).reports("tries", 3);
    dir.file("error", &corpus("a329"));
    dir.run(&[], &fails).expect(82).reports("verdict", "escalated").reports("kind", "auth");
}

#[test]
fn an_escalation_hands_everything_to_its_hook() {
    let dir = Dir::new();
    dir.file("error", &corpus("a329"));
    let hook = r#"cat > bundle; echo "$BACKSTOP_SESSION $BACKSTOP_KIND $BACKSTOP_VERDICT" > called"#;
    let options = ["--session", "night", "--on-escalate", hook];
    dir.run(&options, &["sh", "-c", "cat error >&2; exit 1"]).expect(82);
    assert_eq!(dir.read("called"), "night auth escalated\n");
    let bundle: Value = serde_json::from_str(&dir.read("bundle")).unwrap();
    assert_eq!(bundle["error"]["errorType"], "auth");
    assert!(bundle["notes"].as_array().is_some_and(|notes| !notes.is_empty()));
    assert!(bundle["resume"].as_str().unwrap().contains("--session night"));
}

#[test]
fn what_is_wrong_before_the_start_has_its_own_code() {
    let dir = Dir::new();
    dir.run(&["--turn-timeout", "soon"], &["true"]).expect(2).says("no span of time");
    dir.ended(dir.exec(&[], &[])).expect(2);
    dir.run(&["--failure-regex", "("], &["true"]).expect(2);
    dir.file("bad.yaml", "session_error:\n  - {strategy: retry, config: {backoff_factor: .nan}}\n");
    dir.run(&["--config", "bad.yaml"], &["true"]).expect(5).says("bad.yaml:2:48");
    dir.run(&["--config", "none.yaml"], &["true"]).expect(5).says("none.yaml");
    dir.run(&["--preset", "no-such"], &["true"]).expect(5).says("there are: claude");
    dir.run(&[], &["./no-such-program"]).expect(127).says("no-such-program");
    dir.run(&[], &["./fast.yaml"]).expect(126);
    dir.run(&["--state-dir", "fast.yaml"], &["true"]).expect(3);
    assert!(!dir.has("report.json") || dir.run(&[], &["true"]).code == Some(0));
}

#[test]
fn the_deadline_ends_a_try_and_everything() {
    let dir = Dir::new();
    let ran = dir.run(&["--deadline", "2s"], &["sh", "-c", "sleep 600"]);
    ran.expect(83).reports("verdict", "exhausted");
    // A wait that would pass it is not begun.
    dir.file("error", "Error: 429 Too many requests. Please try again in 100s.");
    dir.file("no.yaml", "session_error: [{strategy: retry, config: {backoff_ms: 10}}]");
    let ran = dir.run(&["--deadline", "50s", "--config", "no.yaml"], &["sh", "-c", "cat error >&2; exit 1"]);
    ran.expect(83).reports("tries", 1).says("is not begun");
}

#[test]
fn a_command_that_hangs_is_ended_and_run_again() {
    let dir = Dir::new();
    let agent = r#"if [ -e again ]; then echo ok; else touch again; sleep 600; fi"#;
    let ran = dir.run(&["--config", "fast.yaml", "--idle-timeout", "3s"], &["sh", "-c", agent]);
    ran.expect(0).reports("kind", "timeout").reports("tries", 2).says("silent for 3 s");
    assert_eq!(ran.stdout, "ok\n");
}

#[test]
fn a_command_that_a_signal_killed_is_run_again_where_the_chain_says_so() {
    let dir = Dir::new();
    let agent = r#"if [ -e again ]; then echo ok; else touch again; kill -SEGV $$; fi"#;
    let ran = dir.run(&["--config", "fast.yaml"], &["sh", "-c", agent]);
    ran.expect(0).reports("tries", 2).says("SIGSEGV");
}

#[test]
fn a_flood_of_output_passes_through_whole() {
    let dir = Dir::new();
    let flood =
        "import sys\nfor _ in range(1600): sys.stdout.write('x' * 65535 + '\\n')\nsys.exit('Error: 529 Overloaded')";
    dir.file("flood.py", flood);
    let agent = "if [ -e again ]; then echo ok; else touch again; exec python3 flood.py; fi";
    let ran = dir.run(&["--config", "fast.yaml"], &["sh", "-c", agent]);
    ran.expect(0).reports("kind", "overloaded").reports("tries", 2);
    assert_eq!(ran.stdout.len(), 1600 * 65536 + 3);
}

#[test]
fn json_on_stderr_ends_with_the_report() {
    let dir = Dir::new();
    dir.file("error", "429 Too Many Requests\n");
    let ran = dir.run(&["--config", "fast.yaml", "--json"], &["python3", "flaky.py", "error", "1"]);
    ran.expect(0);
    let lines: Vec<Value> = ran.stderr.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let events: Vec<&str> = lines.iter().map(|line| line["event"].as_str().unwrap()).collect();
    assert_eq!((events[0], events[1], *events.last().unwrap()), ("turn_failed", "opened", "report"));
    assert_eq!(lines.last().unwrap(), &ran.report);
}
