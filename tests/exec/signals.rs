//! Ctrl-C and SIGTERM.

use crate::support::{Dir, corpus, is_alive, signal, wait_until_dead};

/// Says that it runs, then sleeps in a way that a signal ends at once.
const SLEEPS: &str = "echo $$ > pid; exec sleep 600";

/// Long waits, so that a signal arrives in one.
const SLOW: &str = "session_error: [{strategy: retry, config: {max_retries: 3, backoff_ms: 200000, \
                    max_backoff_ms: 200000, jitter: false}}]";

#[test]
fn ctrl_c_cancels_the_command_and_nothing_is_recovered() {
    let dir = Dir::new();
    let run = dir.start(dir.exec(&["--config", "fast.yaml"], &["sh", "-c", SLEEPS]));
    dir.wait_for_line("pid");
    run.signal("INT");
    let ran = run.end();
    ran.expect(130).reports("verdict", "cancelled").reports("tries", 1).reports("attempts", 0);
    assert_eq!(ran.report["command"]["signal"], "SIGINT");
}

#[test]
fn ctrl_c_in_a_wait_ends_it() {
    let dir = Dir::new();
    dir.file("slow.yaml", SLOW);
    dir.file("error", &corpus("a052"));
    let options = ["--config", "slow.yaml", "--session", "s"];
    let mut run = dir.start(dir.exec(&options, &["sh", "-c", "cat error >&2; exit 1"]));
    run.wait_for("waiting 3 min 20 s");
    run.signal("INT");
    run.end().expect(130).reports("verdict", "cancelled").reports("tries", 1);
    // It is over, not suspended.
    dir.run(&options, &["true"]).expect(0).reports("verdict", "worked");
}

#[test]
fn a_second_ctrl_c_kills_a_command_that_does_not_listen() {
    let dir = Dir::new();
    let deaf = "trap '' INT TERM; echo $$ > pid; while :; do sleep 1; done";
    let run = dir.start(dir.exec(&[], &["sh", "-c", deaf]));
    dir.wait_for_line("pid");
    run.signal("INT");
    // Sent until it is over: two signals that arrive as one count as one.
    let id = dir.wait_for_line("pid");
    while is_alive(&id) {
        std::thread::sleep(std::time::Duration::from_millis(200));
        run.signal("INT");
    }
    run.end().expect(130).reports("verdict", "cancelled");
}

#[test]
fn an_interrupt_in_a_hook_ends_the_hook_too() {
    let dir = Dir::new();
    dir.file("compact.yaml", "session_error: [compact, abort]");
    let options = ["--config", "compact.yaml", "--on-compact", "echo $$ > pid; exec sleep 600"];
    let run = dir.start(dir.exec(&options, &["sh", "-c", "echo Overloaded, status 529 >&2; exit 1"]));
    let hook = dir.wait_for_line("pid");
    run.signal("INT");
    run.end().expect(130).reports("verdict", "cancelled");
    wait_until_dead(&hook);
}

#[test]
fn sigterm_suspends_the_first_try_too() {
    let dir = Dir::new();
    let options = ["--session", "s"];
    let run = dir.start(dir.exec(&options, &["sh", "-c", SLEEPS]));
    dir.wait_for_line("pid");
    run.signal("TERM");
    run.end().expect(143).reports("verdict", "suspended").says("the next run starts anew");
    dir.run(&options, &["true"]).expect(0).reports("verdict", "worked");
}

#[test]
fn nothing_keeps_a_second_sigterm_from_ending_it() {
    let dir = Dir::new();
    let deaf = "trap '' TERM; echo $$ > pid; while :; do sleep 1; done";
    let run = dir.start(dir.exec(&[], &["sh", "-c", deaf]));
    let id = dir.wait_for_line("pid");
    run.signal("TERM");
    while is_alive(&id) {
        std::thread::sleep(std::time::Duration::from_millis(200));
        run.signal("TERM");
    }
    run.end().expect(143);
}

#[test]
fn whoever_takes_no_output_cannot_keep_it_from_ending() {
    let dir = Dir::new();
    let floods = "trap '' TERM; echo > floods; while :; do echo a line of output that nobody reads; done";
    let mut exec = dir.exec(&[], &["sh", "-c", floods]);
    let mut child = exec.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null()).spawn().unwrap();
    dir.wait_for_line("floods");
    let id = child.id().to_string();
    while is_alive(&id) {
        signal("TERM", &id);
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
    // Its end was not waited for, and its output not read.
    assert_eq!(child.wait().unwrap().code(), Some(143));
}
