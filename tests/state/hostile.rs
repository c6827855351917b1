//! Whatever lies in the place of a file: nothing hangs, nothing is followed, the other sessions stay.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use backstop::policy::Verdict;
use backstop::state::{FileStore, FileStoreOptions, FindingKind, RecoveryStateStore, StateRecord, Verification};

use super::views::attempt;
use super::{ended, log_file, names, open, record, revisions, session};

type Put = fn(&Path);

/// What may lie there, by name.
const THINGS: [(&str, Put); 10] = [
    ("nothing in it", |path| fs::write(path, "").unwrap()),
    ("zeros", |path| fs::write(path, [0; 4_096]).unwrap()),
    ("half of a file", |path| {
        let whole = fs::read(path).unwrap_or_else(|_| b"{\"sessionID\":\"s".to_vec());
        fs::write(path, &whole[..whole.len() / 2]).unwrap();
    }),
    ("deep JSON", |path| fs::write(path, "[".repeat(100_000)).unwrap()),
    ("a wrong type", |path| fs::write(path, r#"{"version":"one","sessionID":7,"attempts":{}}"#).unwrap()),
    ("no text", |path| fs::write(path, [0xff, 0xfe, 0, 1, 2]).unwrap()),
    ("more than any copy has", |path| fs::File::create(path).unwrap().set_len(17_000_000).unwrap()),
    ("a directory", |path| fs::create_dir(path).unwrap()),
    ("a pipe that nobody writes to", |path| {
        assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    }),
    ("a link to itself", |path| symlink(path, path).unwrap()),
];

/// A directory with a kept verdict, its copy, and a session without one.
fn whole() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let (mut store, _) = open(dir.path());
    store.append(&[record("a", 1)]).unwrap();
    let ended = ended(Verdict::Cancelled, vec![attempt("gave up")]);
    store.append(&[StateRecord::new(session("kept"), 1, &ended)]).unwrap();
    assert_eq!(store.refresh_views(10).unwrap(), 0);
    dir
}

fn verify(dir: &Path) -> Verification {
    FileStore::verify(dir, &mut |_, _| {}).unwrap()
}

fn repair(dir: &Path) {
    let repaired = FileStore::repair(dir, FileStoreOptions::default(), &mut |_, _| {}).unwrap();
    assert!(repaired.after.is_whole(), "{:?}", repaired.after);
}

/// A regular file makes room for what cannot be written into one.
fn put(thing: Put, path: &Path, name: &str) {
    if ["a directory", "a pipe that nobody writes to", "a link to itself"].contains(&name) && path.exists() {
        fs::remove_file(path).unwrap();
    }
    thing(path);
}

#[test]
fn in_the_place_of_a_copy_anything_is_found_repaired_and_kept_aside() {
    for (name, thing) in THINGS {
        let dir = whole();
        put(thing, &dir.path().join("recovery-kept.json"), name);
        let found = verify(dir.path());
        let kinds: Vec<_> = found.findings.iter().map(|finding| finding.kind).collect();
        let expected = match name {
            "a wrong type" => FindingKind::OutdatedCopy,
            "a directory" | "a pipe that nobody writes to" | "a link to itself" => FindingKind::NotAFile,
            _ => FindingKind::DamagedCopy,
        };
        assert_eq!(kinds, [expected], "{name}");
        repair(dir.path());
        assert!(dir.path().join("recovery-kept.json").metadata().unwrap().is_file(), "{name}");
        let is_aside = dir.path().join("recovery-kept.json.damaged-1").symlink_metadata().is_ok();
        assert_eq!(is_aside, expected != FindingKind::OutdatedCopy, "{name}");
        assert_eq!(revisions(&mut open(dir.path()).0).len(), 2, "{name}");
    }
}

#[test]
fn in_the_place_of_the_log_anything_costs_only_what_no_copy_tells() {
    // A log that is cut looks like a write that a crash cut short: `damage` has that.
    for (name, thing) in THINGS.into_iter().filter(|(name, _)| *name != "half of a file") {
        for repairs in [true, false] {
            let dir = whole();
            put(thing, &log_file(dir.path()), name);
            let found = verify(dir.path());
            assert!(!found.is_whole(), "{name}: {found:?}");
            if repairs {
                repair(dir.path());
            }
            let (mut store, _) = open(dir.path());
            let there = revisions(&mut store);
            assert!(there.iter().any(|(id, _)| id == "kept"), "{name}, {repairs}: {there:?}");
            store.append(&[record("b", 1)]).unwrap();
            let aside = names(&dir.path().join("backstop")).into_iter().filter(|name| name.contains(".damaged-1"));
            assert_eq!(aside.count(), 1, "{name}: it is kept for a person to look at");
        }
    }
}

#[test]
fn beside_the_files_anything_is_left_alone() {
    for (name, thing) in THINGS {
        let dir = whole();
        for place in ["dispatch.json", "backstop/other", "recovery-notes.txt"] {
            put(thing, &dir.path().join(place), name);
        }
        assert!(verify(dir.path()).is_whole(), "{name}");
        repair(dir.path());
        let (mut store, notes) = open(dir.path());
        assert_eq!((notes, revisions(&mut store).len()), (vec![], 2), "{name}");
        for place in ["dispatch.json", "backstop/other", "recovery-notes.txt"] {
            assert!(dir.path().join(place).symlink_metadata().is_ok(), "{name}");
        }
    }
}

#[test]
fn a_record_that_does_not_read_is_found_and_set_aside_with_the_others_whole() {
    let dir = whole();
    let mut odd = record("../odd", 4);
    odd.memory = Some(br#"{"episodes":"many"}"#.as_slice().into());
    open(dir.path()).0.append(&[odd]).unwrap();
    let found = verify(dir.path());
    assert_eq!((found.problems, found.findings[0].kind), (1, FindingKind::UnreadableRecord));
    repair(dir.path());
    let (mut store, _) = open(dir.path());
    assert_eq!(revisions(&mut store).into_iter().map(|(id, _)| id).collect::<Vec<_>>(), ["a", "kept"]);
    let kept = fs::read(dir.path().join("backstop/record-=2e=2e=2fodd.damaged-1")).unwrap();
    assert_eq!(kept, br#"{"episodes":"many"}"#);
}

#[test]
fn a_million_findings_would_be_counted_and_no_problem_goes_unseen_for_a_note() {
    let dir = whole();
    for number in 0..300 {
        fs::write(dir.path().join(format!("recovery-a{number}.json")), r#"{"theirs":true}"#).unwrap();
    }
    fs::write(dir.path().join("recovery-kept.json"), "{").unwrap();
    let found = verify(dir.path());
    assert_eq!((found.findings.len(), found.more), (Verification::FINDINGS_KEPT, 201));
    assert_eq!((found.problems, found.findings[0].kind), (1, FindingKind::DamagedCopy));
}
