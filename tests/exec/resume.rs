//! A run that is ended in the middle goes on where it was, its budget kept.

use crate::support::{Dir, Running, signal, wait_until_dead};

/// Four redos, two seconds before each.
const CONFIG: &str = "session_error: [{strategy: retry, config: {max_retries: 4, backoff_ms: 2000, backoff_factor: 1, \
                      jitter: false}}]\n";

const SESSION: [&str; 4] = ["--config", "slow.yaml", "--session", "s"];

/// Fails for ever, and counts.
const FAILS: &str = "echo x >> starts; echo Overloaded, status 529 >&2; exit 1";

/// Hangs in its second try, after it has said so.
const HANGS: &str = "echo x >> starts; [ $BACKSTOP_ATTEMPT = 1 ] || { echo $$ > pid; exec sleep 600; }
    echo Overloaded, status 529 >&2; exit 1";

fn prepared() -> Dir {
    let dir = Dir::new();
    dir.file("slow.yaml", CONFIG);
    dir
}

fn starts(dir: &Dir) -> usize {
    dir.read("starts").lines().count()
}

/// Goes on with an agent that fails for ever: the chain's four redos are four in all.
fn rest_of_the_budget(dir: &Dir) {
    let ran = dir.run(&SESSION, &["sh", "-c", FAILS]);
    ran.expect(81).says("going on with session s: overloaded").reports("verdict", "exhausted");
    assert_eq!(starts(dir), 5, "the first try and four redos, over both runs: {ran:#?}");
}

fn in_a_wait(dir: &Dir) -> Running<'_> {
    let mut run = dir.start(dir.exec(&SESSION, &["sh", "-c", FAILS]));
    run.wait_for("try 2 failed");
    run.wait_for("attempt 2 of 4");
    run
}

#[test]
fn killed_in_a_wait_it_goes_on_with_its_budget_kept() {
    let dir = prepared();
    let run = in_a_wait(&dir);
    run.signal("KILL");
    assert_eq!(run.end().code, None);
    rest_of_the_budget(&dir);
}

#[test]
fn suspended_in_a_wait_it_goes_on_with_its_budget_kept() {
    let dir = prepared();
    let run = in_a_wait(&dir);
    run.signal("TERM");
    let ran = run.end();
    ran.expect(143).reports("verdict", "suspended").says("go on with: backstop exec --session s");
    rest_of_the_budget(&dir);
}

#[test]
fn killed_in_a_try_it_counts_that_try_once() {
    let dir = prepared();
    let run = dir.start(dir.exec(&SESSION, &["sh", "-c", HANGS]));
    let orphan = dir.wait_for_line("pid");
    run.signal("KILL");
    // Nobody was left to end it.
    signal("KILL", &orphan);
    run.end();
    rest_of_the_budget(&dir);
}

#[test]
fn suspended_in_a_try_it_ends_the_command_and_counts_that_try_once() {
    let dir = prepared();
    let run = dir.start(dir.exec(&SESSION, &["sh", "-c", HANGS]));
    let child = dir.wait_for_line("pid");
    run.signal("TERM");
    run.end().expect(143).says("go on with");
    wait_until_dead(&child);
    rest_of_the_budget(&dir);
}

#[test]
fn a_program_that_cannot_be_started_does_not_cost_the_episode() {
    let dir = prepared();
    let run = in_a_wait(&dir);
    run.signal("TERM");
    run.end().expect(143);
    dir.run(&SESSION, &["./mistyped"]).expect(127).says("go on with");
    // The mistyped run's redo counts: nobody can know that it did nothing.
    let ran = dir.run(&SESSION, &["sh", "-c", "echo ok"]);
    ran.expect(0).reports("verdict", "recovered").reports("tries", 1);
}

#[test]
fn without_state_nothing_is_written_and_it_says_so() {
    let dir = prepared();
    let mut run = dir.start(dir.exec(&[&SESSION[..], &["--no-state"]].concat(), &["sh", "-c", FAILS]));
    run.wait_for("waiting 2 s");
    run.signal("TERM");
    run.end().expect(143).says("nothing was kept on disk");
    assert!(!dir.has(".rolebox"));
}
