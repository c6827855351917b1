//! Other programs, other users, other processes.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use backstop::policy::Verdict;
use backstop::state::{FileStore, FileStoreOptions, RecoveryStateStore, StateError, StateRecord};

use super::crash::{child, said};
use super::{ended, log_file, names, open, record, revisions, session};

fn refused(dir: &Path) -> StateError {
    FileStore::open(dir, FileStoreOptions::default()).err().unwrap()
}

#[test]
fn a_second_process_is_refused_by_name_can_look_and_gets_in_after_a_kill() {
    let dir = tempfile::tempdir().unwrap();
    open(dir.path()).0.append(&[record("a", 1)]).unwrap();
    let mut holder = child("hold", dir.path()).spawn().unwrap();
    assert_eq!(said(&mut holder).next().unwrap(), "held");
    let error = refused(dir.path());
    assert!(matches!(error, StateError::Locked { holder: Some(pid), .. } if pid == holder.id()), "{error}");
    let look = FileStore::inspect(dir.path()).unwrap();
    assert_eq!(look.list().len(), 1);
    assert_eq!(look.load(&session("a")), Some(record("a", 1)));
    holder.kill().unwrap();
    holder.wait().unwrap();
    open(dir.path());
}

#[test]
fn two_stores_of_one_process_do_not_share_a_directory() {
    let dir = tempfile::tempdir().unwrap();
    let _first = open(dir.path());
    assert!(matches!(refused(dir.path()), StateError::Locked { .. }));
}

#[test]
fn files_are_private_whatever_the_umask() {
    for umask in ["000", "022", "077", "277"] {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("a/state");
        let made = child("make", &state);
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("umask {umask}; exec \"$@\""), "sh"]).arg(made.get_program()).args(made.get_args());
        shell.envs(made.get_envs().filter_map(|(name, value)| Some((name, value?))));
        assert!(shell.output().unwrap().status.success());
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        if umask != "277" {
            assert_eq!(mode(&state), 0o700);
        }
        assert_eq!(mode(&state.join("backstop")), 0o700);
        for file in ["recovery-s1.json", "backstop/lock", "backstop/log-00000001"] {
            assert_eq!(mode(&state.join(file)), 0o600, "{file} under umask {umask}");
        }
    }
}

#[test]
fn a_state_directory_that_is_a_link_is_refused_and_nothing_written_behind_it() {
    let dir = tempfile::tempdir().unwrap();
    let (target, link) = (dir.path().join("target"), dir.path().join("link"));
    fs::create_dir(&target).unwrap();
    symlink(&target, &link).unwrap();
    for path in [link.clone(), link.join("")] {
        assert!(matches!(refused(&path), StateError::Unsafe { .. }));
    }
    symlink(&target, dir.path().join("backstop")).unwrap();
    assert!(matches!(refused(dir.path()), StateError::Unsafe { .. }));
    assert!(names(&target).is_empty());
}

#[test]
fn links_in_the_place_of_our_files_lead_nowhere() {
    let dir = tempfile::tempdir().unwrap();
    let canary = dir.path().join("canary");
    fs::write(&canary, "canary").unwrap();
    let state = dir.path().join("state");
    open(&state).0.append(&[record("a", 1)]).unwrap();

    let log = log_file(&state);
    fs::remove_file(&log).unwrap();
    symlink(&canary, &log).unwrap();
    for name in ["recovery-s1.json", "recovery-.new", "recovery-s2.json", "backstop/log.new"] {
        symlink(&canary, state.join(name)).unwrap();
    }
    let (mut store, _) = open(&state);
    let memory = ended(Verdict::Cancelled, vec![]);
    store.append(&[StateRecord::new(session("s1"), 1, &memory)]).unwrap();
    store.append(&[StateRecord::forgotten(session("s2"), 1)]).unwrap();
    store.refresh_views(10).unwrap();
    drop(store);
    assert!(state.join("recovery-s1.json").symlink_metadata().unwrap().is_file());

    fs::remove_file(state.join("backstop/lock")).unwrap();
    symlink(&canary, state.join("backstop/lock")).unwrap();
    assert!(matches!(refused(&state), StateError::Unsafe { .. }));
    assert_eq!(fs::read_to_string(&canary).unwrap(), "canary");
}

#[test]
fn a_directory_of_somebody_else_where_everybody_may_write_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let nobody = 65_534;
    if std::os::unix::fs::chown(dir.path(), Some(nobody), None).is_err() {
        eprintln!("skipped: only root can give a directory away");
        return;
    }
    assert!(matches!(refused(dir.path()), StateError::Unsafe { .. }));
    assert!(names(dir.path()).is_empty());
}

#[test]
fn other_programs_files_beside_ours_are_never_touched() {
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let theirs = ["dispatch.json", "recovery.json", "recovery-codes.txt", "log-00000001", "lock", "a.json.damaged-1"];
    for name in theirs {
        fs::write(dir.path().join(name), name).unwrap();
        fs::set_permissions(dir.path().join(name), fs::Permissions::from_mode(0o444)).unwrap();
    }
    let (mut store, notes) = open(dir.path());
    assert_eq!(notes, []);
    store.append(&[StateRecord::new(session("s1"), 1, &ended(Verdict::Cancelled, vec![]))]).unwrap();
    store.refresh_views(10).unwrap();
    for name in theirs {
        let path = dir.path().join(name);
        assert_eq!(fs::read_to_string(&path).unwrap(), name);
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o444);
    }
    assert_eq!(dir.path().metadata().unwrap().permissions().mode() & 0o777, 0o755);
    assert_eq!(names(dir.path()).len(), theirs.len() + 2);
}

#[test]
fn looking_changes_nothing_and_makes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let missing = dir.path().join("missing");
    assert!(FileStore::inspect(&missing).unwrap().list().is_empty());
    assert!(!missing.exists());
    open(dir.path()).0.append(&[record("a", 1)]).unwrap();
    let mut torn = fs::read(log_file(dir.path())).unwrap();
    torn.extend([7; 9]);
    fs::write(log_file(dir.path()), &torn).unwrap();
    assert_eq!(FileStore::inspect(dir.path()).unwrap().list().len(), 1);
    assert_eq!(fs::read(log_file(dir.path())).unwrap(), torn);
    assert_eq!(revisions(&mut open(dir.path()).0).len(), 1);
}
