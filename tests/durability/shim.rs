//! The system itself fails or kills, at each call in turn.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use backstop::state::{FileStore, FileStoreOptions, RecoveryStateStore, StateNote};

use super::child::{child, whole};

/// The shim, built once; `None` where there is no C compiler.
pub fn shim() -> Option<&'static Path> {
    static SHIM: OnceLock<Option<PathBuf>> = OnceLock::new();
    let build = || {
        let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("shim-{}.so", std::process::id()));
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/durability/shim.c");
        let mut cc = Command::new("cc");
        cc.args(["-shared", "-fPIC", "-O1", "-w", "-o"]).arg(&library).arg(source).arg("-ldl");
        let built = cc.status();
        built.is_ok_and(|status| status.success()).then_some(library)
    };
    let found = SHIM.get_or_init(build).as_deref();
    if found.is_none() {
        eprintln!("skipped: no `cc` that builds tests/durability/shim.c");
    }
    found
}

/// Runs a child that saves, its calls in the state directory met by this from the `at`-th on; what it
/// said, and how it ended.
fn meet(shim: &Path, what: &str, at: usize, dir: &Path) -> (Vec<String>, bool) {
    let mut command = child("save", dir);
    command.env("LD_PRELOAD", shim).env("SHIM_DO", what).env("SHIM_AT", at.to_string());
    command.env("SHIM_DIR", dir.join("state"));
    whole(command)
}

/// Everything acknowledged is there, and at most what was tried; nothing is left over.
fn check(dir: &Path, said: &[String], context: &str) {
    let mut acked: BTreeMap<String, u64> = BTreeMap::new();
    for line in said.iter().filter_map(|line| line.strip_prefix("acked ")) {
        let (session, revision) = line.split_once(' ').unwrap();
        acked.insert(session.to_owned(), revision.parse().unwrap());
    }
    let (mut store, notes) = FileStore::open(dir.join("state"), FileStoreOptions::default()).unwrap();
    let harmless = |note: &StateNote| matches!(note, StateNote::TornTail { .. });
    assert!(notes.iter().all(harmless), "{context}: {notes:?}");
    let there: BTreeMap<String, u64> =
        store.list().unwrap().into_iter().map(|line| (line.session.as_str().to_owned(), line.revision)).collect();
    for (session, revision) in &acked {
        assert!(there.get(session) >= Some(revision), "{context}: {session} {revision} is lost: {there:?}");
    }
    let last = acked.get("a").copied().unwrap_or(0);
    assert!(there.values().all(|revision| *revision <= last + 1), "{context}: {there:?} after {last}");
    while store.refresh_views(10).unwrap() > 0 {}
    drop(store);
    let names = |sub: &str| {
        let entries = std::fs::read_dir(dir.join(sub)).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(names("state/backstop").len(), 2, "{context}: a lock and a log, and nothing left over");
    assert!(!names("state").iter().any(|name| name.ends_with(".new")), "{context}");
}

/// Goes on to the next call until a run meets nothing; how many calls there were.
fn at_each_call(what: &str, check_run: impl Fn(&Path, &[String], bool, &str)) -> usize {
    let Some(shim) = shim() else { return 0 };
    for at in 1.. {
        let dir = super::scratch();
        let (said, ended_well) = meet(shim, what, at, dir.path());
        let context = format!("{what} at call {at}");
        let was_met = said.iter().any(|line| line == "met");
        if !was_met {
            assert!(ended_well && said.last().is_some_and(|line| line == "done"), "{context}: {said:?}");
        }
        check_run(dir.path(), &said, ended_well, &context);
        if !was_met {
            return at - 1;
        }
    }
    0
}

#[test]
fn a_kill_at_any_call_loses_nothing() {
    for what in ["kill", "half"] {
        let calls = at_each_call(what, |dir, said, _, context| check(dir, said, context));
        assert!(calls == 0 || calls > 50, "{calls} calls are too few to be all");
        println!("{what}: {calls} calls");
    }
}

/// EIO, ENOSPC, EACCES, EROFS, EMFILE, EINTR, and a write that does half.
#[test]
fn an_error_at_any_call_is_told_and_loses_nothing() {
    for what in ["5", "28", "13", "30", "24", "4", "short"] {
        let calls = at_each_call(what, |dir, said, ended_well, context| {
            assert!(ended_well, "{context}: {said:?}");
            let is_named = |line: &&String| line.starts_with("error ") || line.starts_with("refused ");
            for line in said.iter().filter(is_named) {
                assert!(line.contains("/state"), "{context}: it names no file: {line}");
            }
            assert!(said.iter().filter(is_named).count() <= 2, "{context}: {said:?}");
            check(dir, said, context);
        });
        println!("{what}: {calls} calls");
    }
}

/// A start that finds directories and no log does not know whether their names are durable: the process that
/// made them may have been killed before it synced them.
#[test]
fn directories_that_a_killed_process_made_are_made_durable() {
    let Some(shim) = shim() else { return };
    let refused_for_the_way = |at: &usize| {
        let dir = super::scratch();
        std::fs::create_dir_all(dir.path().join("state/backstop")).unwrap();
        let (said, _) = meet(shim, "5", *at, dir.path());
        said.iter().any(|line| *line == format!("refused cannot open {}", dir.path().join("state").display()))
    };
    assert!((1..20).any(|at| refused_for_the_way(&at)), "no start syncs them");
}
