//! What becomes of a command when `backstop` itself is killed, and of one that the deadline finds at work.

use std::process::Command;

use crate::support::{Dir, is_alive, signal, wait_until_dead};

/// Says who it is, then works on.
const WORKS: &str = "echo $$ > pid; exec sleep 600";

#[cfg(target_os = "linux")]
#[test]
fn the_command_dies_with_it() {
    let dir = Dir::new();
    let run = dir.start(dir.exec(&["--no-state"], &["sh", "-c", WORKS]));
    let command = dir.wait_for_line("pid");
    run.signal("KILL");
    wait_until_dead(&command);
    assert_eq!(run.end().code, None);
}

#[cfg(target_os = "linux")]
#[test]
fn the_next_start_ends_what_the_command_had_started() {
    let dir = Dir::new();
    let helper = "(trap '' TERM; sh -c 'echo $PPID > helper'; exec sleep 600) & wait";
    let options = ["--session", "s"];
    let run = dir.start(dir.exec(&options, &["sh", "-c", &format!("{helper}; {WORKS}")]));
    let helper = dir.wait_for_line("helper");
    run.signal("KILL");
    assert_eq!(run.end().code, None);
    assert!(is_alive(&helper), "only the command itself dies at once");
    let ran = dir.run(&options, &["true"]);
    ran.expect(0).says("an earlier run was killed");
    assert!(!is_alive(&helper));
    let ran = dir.run(&options, &["true"]);
    assert!(!ran.expect(0).stderr.contains("earlier run"), "{ran:#?}");
}

#[test]
fn what_a_command_leaves_on_purpose_is_left_alone() {
    let dir = Dir::new();
    let leaves = "sleep 600 > /dev/null 2>&1 & echo $! > pid";
    dir.run(&["--session", "s"], &["sh", "-c", leaves]).expect(0);
    dir.run(&["--session", "s"], &["true"]).expect(0);
    let left = dir.wait_for_line("pid");
    assert!(is_alive(&left));
    signal("KILL", &left);
}

#[test]
fn a_deadline_lets_the_command_clean_up() {
    let dir = Dir::new();
    let cleans = "trap 'echo clean > cleaned; exit 3' TERM; echo > begun; while :; do sleep 0.05; done";
    let ran = dir.run(&["--deadline", "2s"], &["sh", "-c", cleans]);
    ran.expect(83).reports("verdict", "exhausted").reports("tries", 1);
    assert_eq!(dir.read("cleaned"), "clean\n");
    assert_eq!(ran.report["command"]["exit_code"], 3);
}

#[test]
fn a_command_that_does_not_heed_its_deadline_is_killed_after_the_grace() {
    let dir = Dir::new();
    let deaf = "trap '' TERM; echo $$ > pid; while :; do sleep 0.05; done";
    let ran = dir.run(&["--deadline", "2s"], &["sh", "-c", deaf]);
    ran.expect(83);
    assert_eq!(ran.report["command"]["signal"], "SIGKILL");
    wait_until_dead(&dir.wait_for_line("pid"));
}

#[test]
fn what_cannot_be_started_is_told_as_ever() {
    let dir = Dir::new();
    dir.file("plain", "#!/bin/sh\n");
    dir.run(&[], &["no-such-agent"]).expect(127).says("cannot find the program no-such-agent: No such file");
    dir.run(&[], &["./plain"]).expect(126).says("cannot execute ./plain: Permission denied");
    dir.run(&[], &["/"]).expect(126).says("cannot execute /");
    // Its own exit codes are its own.
    dir.file("off.yaml", "enabled: false");
    let ran = dir.run(&["--config", "off.yaml"], &["sh", "-c", "exit 127"]);
    assert!(!ran.expect(127).stderr.contains("cannot find"), "{ran:#?}");
}

/// The hidden verb adds nothing to what the command finds.
#[test]
fn the_command_finds_its_arguments_signals_and_group_as_ever() {
    let dir = Dir::new();
    dir.file("looks.py", "import os, sys\nprint(sys.argv[1:], os.getpgrp() == os.getpid())\n");
    let ran = dir.run(&[], &["python3", "looks.py", "--json", "__child", ""]);
    assert!(ran.expect(0).stdout.starts_with("['--json', '__child', ''] True\n"), "{ran:#?}");
    let masks = ["-c", "grep -E 'SigIgn|SigBlk' /proc/self/status"];
    let alone = Command::new("sh").args(masks).output().unwrap();
    let ran = dir.run(&[], &["sh", masks[0], masks[1]]);
    assert_eq!(ran.expect(0).stdout, String::from_utf8_lossy(&alone.stdout), "{ran:#?}");
}
