//! What a run leaves behind when this process is killed: only the command itself dies with it, so the next
//! start ends the rest of its group.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Pid;

use super::group::Group;

/// A file that names the group while it runs.
pub(super) struct Marker(PathBuf);

impl Marker {
    /// # Errors
    ///
    /// The system's.
    pub fn set(path: &Path, group: &Group) -> io::Result<Self> {
        // Whatever lies there is not written through.
        let _not_there = fs::remove_file(path);
        let mut file = File::options().write(true).create_new(true).mode(0o600).open(path)?;
        writeln!(file, "{} {}", group.leader().as_raw_nonzero(), boot())?;
        Ok(Self(path.to_owned()))
    }
}

impl Drop for Marker {
    fn drop(&mut self) {
        let _gone = fs::remove_file(&self.0);
    }
}

/// Ends what is left of a run whose [`ChildSpec::marker`](super::ChildSpec::marker) still stands, if a member
/// of its group has this variable in its environment: the group's number may be somebody else's by now.
/// Members get SIGTERM, then SIGKILL after `grace`. Tells whether there was anything to end.
pub async fn end_leftovers(marker: &Path, variable: (&str, &str), grace: Duration) -> bool {
    let Ok(text) = fs::read_to_string(marker) else { return false };
    let _ = fs::remove_file(marker);
    let mut words = text.split_whitespace();
    let leader = words.next().and_then(|word| word.parse().ok()).filter(|leader| *leader > 1).and_then(Pid::from_raw);
    let (Some(leader), true) = (leader, words.next().unwrap_or_default() == boot()) else { return false };
    let wanted = format!("{}={}", variable.0, variable.1);
    let is_ours = |process: &Process| process.has(&wanted);
    if !members(leader).into_iter().flatten().any(|process| is_ours(&process)) {
        return false;
    }
    let mut group = Group::of_leader(leader);
    group.reaped();
    group.send(super::ending::Send::Terminate);
    group.end_leftovers(grace).await;
    true
}

/// What tells this start of the machine from others.
fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// A process of a group that still works.
pub(super) struct Process(PathBuf);

impl Process {
    fn has(&self, wanted: &str) -> bool {
        let environment = fs::read(self.0.join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
    }
}

/// The group's members that are not merely waiting to be collected; `None` where the system does not say.
pub(super) fn members(leader: Pid) -> Option<Vec<Process>> {
    let is_member = |path: &Path| {
        let stat = fs::read_to_string(path.join("stat")).ok()?;
        // The name may hold anything, so what follows its last bracket counts: state, parent, group.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
        let (state, group) = (fields.next()?, fields.nth(1)?);
        Some(!matches!(state, "Z" | "X") && group.parse() == Ok(leader.as_raw_nonzero().get()))
    };
    let processes = fs::read_dir("/proc")
        .ok()?
        .flatten()
        .filter(|entry| entry.file_name().to_str().is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_digit())));
    let mut seen = false;
    let living = processes.map(|entry| entry.path()).inspect(|_| seen = true);
    let living = living.filter(|path| is_member(path) == Some(true)).map(Process).collect();
    seen.then_some(living)
}
