//! This test program again, as a process that is killed, starved or lied to.

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const ROLE: &str = "DURABILITY_ROLE";
const DIR: &str = "DURABILITY_DIR";

/// A process that plays a role of `the_child_plays_its_role` in this directory.
pub fn child(role: &str, dir: &Path) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    play(&mut command, role, dir);
    command
}

/// The same behind a program that sets the scene, such as `setpriv` or `sh`.
pub fn behind(program: &str, args: &[&str], role: &str, dir: &Path) -> Command {
    let mut command = Command::new(program);
    command.args(args).arg(env::current_exe().unwrap());
    play(&mut command, role, dir);
    command
}

fn play(command: &mut Command, role: &str, dir: &Path) {
    command.args(["--exact", "child::the_child_plays_its_role", "--nocapture", "--test-threads=1"]);
    command.env(ROLE, role).env(DIR, dir).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
}

/// Its lines that are meant for the parent.
pub fn said(child: &mut Child) -> impl Iterator<Item = String> + use<> {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    lines.map_while(Result::ok).filter_map(|line| Some(line.split_once("say ")?.1.to_owned()))
}

/// Runs it to its end; what it said, and whether it ended well.
pub fn whole(mut command: Command) -> (Vec<String>, bool) {
    let mut child = command.spawn().unwrap();
    let lines = said(&mut child).collect();
    (lines, child.wait().unwrap().success())
}

/// One write, so that a kill leaves whole lines.
pub fn say(what: impl std::fmt::Display) {
    let line = format!("say {what}\n");
    let mut out = std::io::stdout().lock();
    out.write_all(line.as_bytes()).unwrap();
    out.flush().unwrap();
}

#[test]
fn the_child_plays_its_role() {
    let (Ok(role), Ok(dir)) = (env::var(ROLE), env::var(DIR)) else { return };
    let dir = PathBuf::from(dir);
    match role.split_once(' ').unwrap_or((&role, "")) {
        ("recover", seed) => super::load::recover_for_ever(&dir, seed.parse().unwrap()),
        ("store", _) => super::load::save_for_ever(&dir),
        ("save", _) => super::load::save_a_little(&dir),
        ("slow", _) => super::slow::shut_down_in_the_middle(&dir),
        ("fault", kind) => super::faults::live_through(kind, &dir),
        other => panic!("no role {other:?}"),
    }
}
