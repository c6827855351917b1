//! Where the sessions of `exec` live: each in a state directory of its own.
//!
//! A state directory belongs to one process at a time, but an orchestrator starts many commands in one
//! working directory at once. So each session gets `STATE_DIR/backstop/exec/<id>/`: different sessions never
//! meet, and one session that runs twice is refused.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::SessionId;
use crate::state::file_stem;

/// How many leftovers one run looks at: a start must stay cheap.
const SWEEP: usize = 200;

/// The state directory of one `exec` session.
pub(in crate::cli) fn directory(state_dir: &Path, session: &SessionId) -> PathBuf {
    home(state_dir).join(file_stem(session))
}

/// The state directories of all `exec` sessions, in the order of their names.
pub(in crate::cli) fn directories(state_dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(home(state_dir)) else { return vec![] };
    // A link is no session's: it would lead elsewhere.
    let dirs = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let mut found: Vec<PathBuf> = dirs.map(|entry| entry.path()).collect();
    found.sort();
    found
}

fn home(state_dir: &Path) -> PathBuf {
    state_dir.join("backstop").join("exec")
}

/// A name for a run that was given none: unique on this machine, sorted by time.
pub(super) fn fresh() -> SessionId {
    let millis = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_millis();
    let name = format!("run-{millis}-{}", std::process::id());
    SessionId::new(name).expect("the name is not empty")
}

/// Removes what nobody can need any more: a session that ended well and has no name of its own.
pub(super) fn forget(state_dir: &Path, session: &SessionId) {
    if let Err(error) = fs::remove_dir_all(directory(state_dir, session)) {
        tracing::debug!(%error, "the session's state was not removed");
    }
}

/// Removes sessions that nothing was written to for longer than `retention` and that nobody runs.
pub(super) fn sweep(state_dir: &Path, retention: Duration) {
    let now = SystemTime::now();
    for dir in directories(state_dir).into_iter().take(SWEEP) {
        let lock = dir.join("backstop").join("lock");
        let is_old = |age: Duration| age > retention;
        if !last_written(&dir).and_then(|at| now.duration_since(at).ok()).is_some_and(is_old) {
            continue;
        }
        // Held until it is removed, so that nobody starts to use it meanwhile.
        let Ok(held) = File::open(&lock) else { continue };
        if held.try_lock().is_ok()
            && let Err(error) = fs::remove_dir_all(&dir)
        {
            tracing::debug!(%error, "an old session's state was not removed");
        }
    }
}

fn last_written(dir: &Path) -> Option<SystemTime> {
    let files = fs::read_dir(dir.join("backstop")).ok()?;
    files.flatten().filter_map(|file| file.metadata().ok()?.modified().ok()).max()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn no_session_id_leaves_the_state_directory() {
        let state = Path::new("/state");
        let dir = directory(state, &SessionId::new("../../etc/passwd").unwrap());
        assert_eq!(dir.parent().unwrap(), Path::new("/state/backstop/exec"));
    }

    #[test]
    fn only_old_sessions_that_nobody_runs_are_swept() {
        let state = tempfile::tempdir().unwrap();
        let make = |id: &str| {
            let own = directory(state.path(), &SessionId::new(id).unwrap()).join("backstop");
            fs::create_dir_all(&own).unwrap();
            File::create(own.join("lock")).unwrap()
        };
        let (_idle, running) = (make("idle"), make("running"));
        running.try_lock().unwrap();
        sweep(state.path(), Duration::from_secs(3_600));
        assert_eq!(directories(state.path()).len(), 2);
        let long_ago = SystemTime::now() - Duration::from_secs(7_200);
        for dir in directories(state.path()) {
            File::options().write(true).open(dir.join("backstop/lock")).unwrap().set_modified(long_ago).unwrap();
        }
        sweep(state.path(), Duration::from_secs(3_600));
        assert_eq!(directories(state.path()), [state.path().join("backstop/exec/running")]);
    }
}
