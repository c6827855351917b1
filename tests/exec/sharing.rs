//! Many runs in one directory.

use crate::support::Dir;

#[test]
fn any_number_of_different_sessions_share_a_state_directory() {
    let dir = Dir::new();
    let agent = |number: usize| {
        format!("if [ -e again{number} ]; then echo ok; else touch again{number}; echo 529 Overloaded >&2; exit 1; fi")
    };
    let runs: Vec<_> = (0..6)
        .map(|number| {
            let mut exec = dir.backstop();
            exec.args(["exec", "--config", "fast.yaml", "--", "sh", "-c", &agent(number)]);
            dir.start(exec)
        })
        .collect();
    for run in runs {
        let ran = run.end();
        ran.expect(0).says("recovered (verified); 2 tries");
    }
}

#[test]
fn a_session_that_runs_already_is_refused_by_name() {
    let dir = Dir::new();
    let options = ["--session", "Night run"];
    let first = dir.start(dir.exec(&options, &["sh", "-c", "echo > runs; exec sleep 600"]));
    dir.wait_for_line("runs");
    let second = dir.run(&options, &["true"]);
    second.expect(4).says("session Night run runs already in process").says(".rolebox/state/backstop/exec/");
    first.signal("TERM");
    first.end().expect(143);
    dir.run(&options, &["true"]).expect(0);
}

#[test]
fn a_run_without_a_name_leaves_nothing_behind_when_it_ends_well() {
    let dir = Dir::new();
    dir.run(&[], &["true"]).expect(0);
    assert_eq!(std::fs::read_dir(dir.path(".rolebox/state/backstop/exec")).unwrap().count(), 0);
    dir.run(&["--session", "named"], &["true"]).expect(0);
    assert_eq!(std::fs::read_dir(dir.path(".rolebox/state/backstop/exec")).unwrap().count(), 1);
}
