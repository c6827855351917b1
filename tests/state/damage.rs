//! Logs that a crash, a disk or a person damaged.

use std::fs;
use std::path::Path;

use backstop::state::{FileStore, FileStoreOptions, RecoveryStateStore, StateError, StateNote};

use super::{log_file, names, open, record, revisions};

/// A directory whose log holds `a`, `b`, `c`, each written by a batch of its own; the log's text.
fn three(dir: &Path) -> Vec<u8> {
    let (mut store, _) = open(dir);
    for id in ["a", "b", "c"] {
        store.append(&[record(id, 1)]).unwrap();
    }
    drop(store);
    fs::read(log_file(dir)).unwrap()
}

#[test]
fn a_log_cut_at_any_byte_opens_with_what_is_whole_and_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let whole = three(dir.path());
    let mut seen = std::collections::BTreeSet::new();
    for cut in 0..=whole.len() {
        fs::write(log_file(dir.path()), &whole[..cut]).unwrap();
        let (mut store, _) = open(dir.path());
        let there = revisions(&mut store);
        assert!(there.iter().map(|(id, _)| id.as_str()).eq(["a", "b", "c"].into_iter().take(there.len())));
        seen.insert(there.len());
        store.append(&[record("d", 1)]).unwrap();
        drop(store);
        let (mut store, notes) = open(dir.path());
        assert_eq!(revisions(&mut store).len(), there.len() + 1, "cut at {cut}");
        assert_eq!(notes, [], "mended once is mended");
    }
    assert_eq!(Vec::from_iter(seen), [0, 1, 2, 3]);
}

#[test]
fn a_torn_tail_is_noted_and_cut_off() {
    let dir = tempfile::tempdir().unwrap();
    let whole = three(dir.path());
    fs::write(log_file(dir.path()), &whole[..whole.len() - 5]).unwrap();
    let (_, notes) = open(dir.path());
    assert!(matches!(&notes[..], [StateNote::TornTail { bytes, .. }] if *bytes > 0), "{notes:?}");
}

#[test]
fn a_flipped_bit_anywhere_costs_at_most_one_record() {
    let dir = tempfile::tempdir().unwrap();
    let whole = three(dir.path());
    for byte in 0..whole.len() {
        let mut flipped = whole.clone();
        flipped[byte] ^= 1 << (byte % 8);
        for name in names(&dir.path().join("backstop")) {
            fs::remove_file(dir.path().join("backstop").join(name)).unwrap();
        }
        fs::write(dir.path().join("backstop/log-00000001"), &flipped).unwrap();
        let (mut store, notes) = open(dir.path());
        let there = revisions(&mut store).len();
        assert!(there >= 2, "byte {byte}: {there} left");
        assert_eq!(notes.len(), 1, "byte {byte}: {notes:?}");
        if let StateNote::Damaged { aside, .. } = &notes[0] {
            assert_eq!(fs::read(aside).unwrap(), flipped, "the evidence is whole");
        }
    }
}

#[test]
fn of_many_damaged_logs_three_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    for round in 1..=5 {
        let (mut store, _) = open(dir.path());
        store.append(&[record("a", round), record("b", round)]).unwrap();
        drop(store);
        fs::write(log_file(dir.path()), [0; 1_000]).unwrap();
        let (mut store, notes) = open(dir.path());
        assert!(matches!(&notes[..], [StateNote::Damaged { read: 0, .. }]), "{notes:?}");
        assert_eq!(revisions(&mut store), []);
    }
    let damaged = names(&dir.path().join("backstop")).into_iter().filter(|name| name.contains(".damaged-"));
    assert!(damaged.count() <= 5);
    for log in names(&dir.path().join("backstop")) {
        assert!(!log.contains("damaged-4"), "{log}");
    }
}

#[test]
fn an_empty_log_or_one_of_zeros_is_set_aside() {
    for bytes in [&[][..], &[0; 144_000]] {
        let dir = tempfile::tempdir().unwrap();
        three(dir.path());
        fs::write(log_file(dir.path()), bytes).unwrap();
        let (mut store, notes) = open(dir.path());
        assert!(matches!(&notes[..], [StateNote::Damaged { read: 0, .. }]), "{notes:?}");
        store.append(&[record("a", 1)]).unwrap();
    }
}

#[test]
fn zeros_behind_the_log_are_a_torn_tail() {
    let dir = tempfile::tempdir().unwrap();
    let mut bytes = three(dir.path());
    bytes.extend([0; 4_096]);
    fs::write(log_file(dir.path()), &bytes).unwrap();
    let (mut store, notes) = open(dir.path());
    assert!(matches!(notes[..], [StateNote::TornTail { bytes: 4_096, .. }]));
    assert_eq!(revisions(&mut store).len(), 3);
}

#[test]
fn a_directory_in_the_logs_place_is_set_aside() {
    let dir = tempfile::tempdir().unwrap();
    three(dir.path());
    let log = log_file(dir.path());
    fs::remove_file(&log).unwrap();
    fs::create_dir(&log).unwrap();
    let (mut store, notes) = open(dir.path());
    assert!(matches!(&notes[..], [StateNote::SetAside { aside, .. }] if aside.is_dir()), "{notes:?}");
    store.append(&[record("a", 1)]).unwrap();
}

#[test]
fn a_newer_log_is_refused_and_left_untouched() {
    let dir = tempfile::tempdir().unwrap();
    let mut bytes = three(dir.path());
    bytes[8..12].copy_from_slice(&9_u32.to_le_bytes());
    let sum = crc32fast::hash(&bytes[..24]);
    bytes[24..28].copy_from_slice(&sum.to_le_bytes());
    fs::write(log_file(dir.path()), &bytes).unwrap();
    let before = names(&dir.path().join("backstop"));
    let refused = FileStore::open(dir.path(), FileStoreOptions::default()).err().unwrap();
    assert!(matches!(refused, StateError::Newer { found: 9, known: 2, .. }), "{refused}");
    assert!(matches!(FileStore::inspect(dir.path()), Err(StateError::Newer { .. })));
    assert_eq!(fs::read(log_file(dir.path())).unwrap(), bytes);
    assert_eq!(names(&dir.path().join("backstop")), before);
}

#[test]
fn a_crash_between_two_segments_leaves_one_truth() {
    let dir = tempfile::tempdir().unwrap();
    let old = three(dir.path());
    let options = || FileStoreOptions { snapshot_above: 1, ..FileStoreOptions::default() };
    let (mut store, _) = FileStore::open(dir.path(), options()).unwrap();
    for revision in 2..40 {
        store.append(&[record("a", revision)]).unwrap();
    }
    store.refresh_views(10).unwrap();
    drop(store);
    assert!(!dir.path().join("backstop/log-00000001").exists(), "the log was never written anew");
    // The crash: the older segment is still there, and the beginning of a next one.
    fs::write(dir.path().join("backstop/log-00000001"), old).unwrap();
    fs::write(dir.path().join("backstop/log.new"), b"BACKST").unwrap();
    let (mut store, notes) = open(dir.path());
    assert_eq!(revisions(&mut store), [("a".to_owned(), 39), ("b".to_owned(), 1), ("c".to_owned(), 1)]);
    assert_eq!(notes, []);
    assert_eq!(names(&dir.path().join("backstop")).len(), 2, "a lock and a log");
}

#[test]
fn a_log_stays_in_proportion_to_what_is_live() {
    let dir = tempfile::tempdir().unwrap();
    let options = FileStoreOptions { snapshot_above: 4_096, ..FileStoreOptions::default() };
    let (mut store, _) = FileStore::open(dir.path(), options).unwrap();
    for revision in 1..=1_000 {
        store.append(&[record("a", revision)]).unwrap();
        let length = log_file(dir.path()).metadata().unwrap().len();
        assert!(length <= 8 * 4_096 + 200, "{length} bytes for one session");
    }
    assert_eq!(revisions(&mut store), [("a".to_owned(), 1_000)]);
}
