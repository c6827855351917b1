//! The examples run, and say what they are there to show.
#![allow(clippy::unwrap_used)]
use std::process::Command;

/// What an example prints. `cargo test` builds all of them; a single test target needs `--examples` beside it.
fn said(example: &str) -> String {
    let test = std::env::current_exe().unwrap();
    let built = test.parent().and_then(|deps| deps.parent()).unwrap().join("examples").join(example);
    assert!(built.exists(), "{} is not built: cargo build --examples", built.display());
    let dir = tempfile::tempdir().unwrap();
    let output = Command::new(built).current_dir(dir.path()).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{example}: {said}{}", String::from_utf8_lossy(&output.stderr));
    said
}

#[test]
fn each_shows_what_it_is_there_for() {
    for (example, shown) in [
        ("quickstart", "recovered (verified) after 3 attempts"),
        ("custom_strategy", "connected"),
        ("open_loop", "alpha: recovered (verified) after 3 tries"),
        ("embedded", "worker-1: worked in life 3"),
        ("fleet", "\"recovered\": "),
        ("self_healing_loop", "tests that fail at the end: 0"),
    ] {
        let said = said(example);
        assert!(said.contains(shown), "{example}: {said}");
    }
}
