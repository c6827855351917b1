//! What every store answers to batches that do not fit, and what a file store does when it cannot write.

use std::fs;

use backstop::policy::session::SessionMemory;
use backstop::state::{MemoryStore, NullStore, RecoveryStateStore, StateError, StateRecord};

use super::{open, record, revisions, session};

/// Both real stores, so that each promise is tested on both.
fn on_each_store(check: impl Fn(&mut dyn RecoveryStateStore)) {
    let dir = tempfile::tempdir().unwrap();
    check(&mut open(dir.path()).0);
    check(&mut MemoryStore::default());
}

#[test]
fn the_same_batch_twice_counts_once() {
    on_each_store(|store| {
        let batch = [record("a", 1), record("b", 1), record("a", 2)];
        store.append(&batch).unwrap();
        store.append(&batch).unwrap();
        assert_eq!(store.load(&session("a")).unwrap(), Some(record("a", 2)));
        assert_eq!(store.list().unwrap().len(), 2);
    });
}

#[test]
fn a_record_that_is_out_of_date_is_refused_and_nothing_of_its_batch_written() {
    on_each_store(|store| {
        store.append(&[record("a", 5)]).unwrap();
        for stale in [4, 5] {
            let late = StateRecord::new(session("a"), stale, &SessionMemory::default());
            let refused = store.append(&[record("b", 1), late]).unwrap_err();
            assert!(matches!(refused, StateError::Stale { known: 5, .. }), "{refused}");
        }
        assert_eq!(store.load(&session("a")).unwrap(), Some(record("a", 5)));
        assert_eq!(store.load(&session("b")).unwrap(), None);
    });
}

#[test]
fn a_record_beyond_the_limit_is_refused_by_name() {
    on_each_store(|store| {
        let mut large = record("a", 1);
        large.memory = Some(vec![b' '; StateRecord::MAX_BYTES].into());
        assert!(matches!(store.append(&[large]), Err(StateError::TooLarge { .. })));
        assert!(store.list().unwrap().is_empty());
    });
}

#[test]
fn what_is_forgotten_is_gone_after_a_restart_too() {
    on_each_store(|store| {
        store.append(&[record("a", 1), record("b", 1)]).unwrap();
        store.append(&[StateRecord::forgotten(session("a"), 2)]).unwrap();
        assert_eq!(store.load(&session("a")).unwrap(), None);
    });
    let dir = tempfile::tempdir().unwrap();
    let (mut store, _) = open(dir.path());
    store.append(&[record("a", 1), record("b", 1)]).unwrap();
    store.append(&[StateRecord::forgotten(session("a"), 2)]).unwrap();
    drop(store);
    assert_eq!(revisions(&mut open(dir.path()).0), [("b".to_owned(), 1)]);
}

#[test]
fn a_closed_store_says_so_and_its_directory_is_free() {
    on_each_store(|store| {
        store.close().unwrap();
        assert!(matches!(store.append(&[record("a", 1)]), Err(StateError::Closed)));
        assert!(matches!(store.load(&session("a")), Err(StateError::Closed)));
    });
    let dir = tempfile::tempdir().unwrap();
    let (mut store, _) = open(dir.path());
    store.close().unwrap();
    open(dir.path());
}

#[test]
fn the_null_store_keeps_nothing_and_takes_everything() {
    let mut store = NullStore;
    store.append(&[record("a", 1)]).unwrap();
    assert_eq!(store.load(&session("a")).unwrap(), None);
    assert!(store.list().unwrap().is_empty());
}

#[test]
fn a_memory_this_version_cannot_read_is_listed_and_does_not_hide_the_others() {
    let dir = tempfile::tempdir().unwrap();
    let (mut store, _) = open(dir.path());
    let mut odd = record("odd", 1);
    odd.memory = Some(br#"{"episodes":"many"}"#.as_slice().into());
    store.append(&[odd.clone(), record("a", 1)]).unwrap();
    store.refresh_views(10).unwrap();
    let lines = store.list().unwrap();
    assert_eq!(lines.iter().map(|line| line.readable).collect::<Vec<_>>(), [true, false]);
    assert!(matches!(odd.read(), Err(StateError::Unreadable { .. })));
}

#[test]
fn a_removed_directory_fails_the_append_aloud_and_the_next_one_writes_everything_anew() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    let (mut store, _) = open(&state);
    store.append(&[record("a", 1)]).unwrap();
    fs::remove_dir_all(&state).unwrap();
    let failed = store.append(&[record("a", 2)]).unwrap_err();
    assert!(failed.to_string().contains("log-0000"), "{failed}");
    store.append(&[record("b", 1)]).unwrap();
    drop(store);
    assert_eq!(revisions(&mut open(&state).0), [("a".to_owned(), 1), ("b".to_owned(), 1)]);
}

#[test]
fn while_the_place_is_blocked_every_append_fails_and_after_the_repair_it_works() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    let (mut store, _) = open(&state);
    store.append(&[record("a", 1)]).unwrap();
    fs::rename(&state, dir.path().join("away")).unwrap();
    fs::write(&state, "a file").unwrap();
    for _ in 0..3 {
        let failed = store.append(&[record("a", 2)]).unwrap_err();
        assert!(failed.to_string().contains("state"), "{failed}");
        assert_eq!(store.load(&session("a")).unwrap(), Some(record("a", 1)));
    }
    fs::remove_file(&state).unwrap();
    store.append(&[record("a", 2)]).unwrap();
    drop(store);
    assert_eq!(revisions(&mut open(&state).0), [("a".to_owned(), 2)]);
}

#[test]
fn a_directory_that_another_store_took_meanwhile_is_not_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    let (mut first, _) = open(&state);
    first.append(&[record("a", 1)]).unwrap();
    fs::remove_dir_all(&state).unwrap();
    let (mut second, _) = open(&state);
    second.append(&[record("theirs", 1)]).unwrap();
    first.append(&[record("a", 2)]).unwrap_err();
    assert!(matches!(first.append(&[record("a", 2)]), Err(StateError::Locked { .. })));
    drop(second);
    assert!(matches!(first.append(&[record("a", 2)]), Err(StateError::Unsafe { .. })));
    drop(first);
    assert_eq!(revisions(&mut open(&state).0), [("theirs".to_owned(), 1)]);
}
