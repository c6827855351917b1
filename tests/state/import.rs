//! State files of the original, and what lies beside them.

use std::fs;
use std::path::Path;

use backstop::policy::session::SessionMemory;
use backstop::policy::{Cause, Verdict};
use backstop::state::{FileStore, FileStoreOptions, RecoveryStateStore, StateNote};
use serde_json::json;

use super::{names, open, record, revisions, session};

fn theirs(dir: &Path, id: &str, results: &[&str]) {
    let attempts: Vec<_> = (1..)
        .zip(results)
        .map(|(number, result)| {
            json!({"category": "session_error", "errorType": "timeout", "timestamp": 1_000 * number, "message": "m",
                   "chainPosition": 0, "strategy": "retry", "result": result})
        })
        .collect();
    let state = json!({"sessionID": id, "attempts": attempts, "activeChains": {}, "metrics": {}, "extra": true});
    fs::write(dir.join(format!("recovery-{id}.json")), state.to_string()).unwrap();
}

fn memory(store: &mut FileStore, id: &str) -> SessionMemory {
    store.load(&session(id)).unwrap().unwrap().read().unwrap().unwrap()
}

#[test]
fn attempts_become_kept_history_with_the_verdict_that_the_last_one_implies() {
    for (results, verdict) in [
        (&["retry", "abort"][..], Verdict::Aborted { reason: "m".into() }),
        (&["retry", "next_strategy"], Verdict::Exhausted { cause: Cause::Chain }),
        (&["retry"], Verdict::Cancelled),
        (&["retry", "something new"], Verdict::Cancelled),
    ] {
        let dir = tempfile::tempdir().unwrap();
        theirs(dir.path(), "s1", results);
        let (mut store, notes) = open(dir.path());
        assert_eq!(notes, [StateNote::Imported { sessions: 1 }]);
        let memory = memory(&mut store, "s1");
        let kept = memory.kept().unwrap();
        assert_eq!(kept.verdict, verdict);
        assert_eq!(kept.attempts.len(), results.len());
        assert_eq!((kept.attempts[0].episode, kept.attempts[0].seq), (1, 1));
        assert_eq!(kept.attempts[0].timestamp.as_millis(), 1_000);
        assert_eq!((memory.episodes(), memory.history().recoveries()), (1, 0), "no limit counts it");
    }
}

#[test]
fn a_session_that_had_recovered_is_not_brought_back() {
    let dir = tempfile::tempdir().unwrap();
    theirs(dir.path(), "s1", &["retry", "success"]);
    let (mut store, notes) = open(dir.path());
    assert!(matches!(notes[..], [StateNote::Skipped { .. }]));
    assert_eq!(revisions(&mut store), []);
}

#[test]
fn files_are_imported_once() {
    let dir = tempfile::tempdir().unwrap();
    theirs(dir.path(), "s1", &["abort"]);
    open(dir.path());
    theirs(dir.path(), "late", &["abort"]);
    let (mut store, notes) = open(dir.path());
    assert_eq!(notes, []);
    assert_eq!(revisions(&mut store), [("s1".to_owned(), 1)]);
}

#[test]
fn an_imported_file_takes_the_name_of_its_sessions_view() {
    let dir = tempfile::tempdir().unwrap();
    theirs(dir.path(), "Ses A", &["abort"]);
    let (mut store, _) = open(dir.path());
    assert_eq!(names(dir.path()), ["backstop", "recovery-=53es=20=41.json"]);
    store.refresh_views(10).unwrap();
    assert_eq!(names(dir.path()), ["backstop", "recovery-=53es=20=41.json"]);
}

#[test]
fn one_bad_file_hides_none_of_the_others() {
    let dir = tempfile::tempdir().unwrap();
    for number in 0..18 {
        theirs(dir.path(), &format!("s{number}"), &["abort"]);
    }
    let whole = fs::read(dir.path().join("recovery-s0.json")).unwrap();
    let with = |tail: &[u8]| [&whole, tail].concat();
    let deep = "[".repeat(100_000).into_bytes();
    let damaged: [(&str, Vec<u8>); 7] = [
        ("empty", vec![]),
        ("nul", vec![0; 144_000]),
        ("nul-tail", with(&[0; 100])),
        ("cut", whole[..whole.len() - 1].to_vec()),
        ("bom", [b"\xef\xbb\xbf".as_slice(), &whole].concat()),
        ("deep", deep),
        ("not-utf8", b"\xff\xfe{}".to_vec()),
    ];
    for (name, bytes) in &damaged {
        fs::write(dir.path().join(format!("recovery-{name}.json")), bytes).unwrap();
    }
    let huge = fs::File::create(dir.path().join("recovery-huge.json")).unwrap();
    huge.set_len(100 * 1024 * 1024).unwrap();
    let (mut store, notes) = open(dir.path());
    assert_eq!(store.list().unwrap().len(), 18);
    for (name, bytes) in &damaged {
        assert_eq!(&fs::read(dir.path().join(format!("recovery-{name}.json.damaged-1"))).unwrap(), bytes);
    }
    assert!(dir.path().join("recovery-huge.json.damaged-1").exists());
    let aside = notes.iter().filter(|note| matches!(note, StateNote::SetAside { .. }));
    assert_eq!(aside.count(), damaged.len() + 1);
}

#[test]
fn what_reads_and_is_no_state_is_left_where_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let foreign = [
        ("a", "null"),
        ("b", "[]"),
        ("c", "42"),
        ("d", "{}"),
        ("e", r#"{"codes":[1]}"#),
        ("f", r#"{"attempts":{}}"#),
        ("g", r#"{"sessionID":"other","attempts":[]}"#),
        ("h", r#"{"sessionID":7,"attempts":[]}"#),
        ("i", r#"{"version":99,"sessionID":"i","attempts":[]}"#),
        ("", r#"{"sessionID":"","attempts":[]}"#),
        ("j", r#"{"sessionID":"j","attempts":[{"category":"no such","timestamp":-1}]}"#),
    ];
    for (id, text) in foreign {
        fs::write(dir.path().join(format!("recovery-{id}.json")), text).unwrap();
    }
    fs::create_dir(dir.path().join("recovery-dir.json")).unwrap();
    let (mut store, notes) = open(dir.path());
    assert_eq!(revisions(&mut store), []);
    assert_eq!(notes.len(), foreign.len() + 1);
    assert!(notes.iter().all(|note| matches!(note, StateNote::Skipped { .. })), "{notes:?}");
    for (id, text) in foreign {
        assert_eq!(fs::read_to_string(dir.path().join(format!("recovery-{id}.json"))).unwrap(), text);
    }
    store.append(&[record("a", 1)]).unwrap();
}

#[test]
fn a_lost_log_is_made_up_for_by_our_own_views() {
    let dir = tempfile::tempdir().unwrap();
    theirs(dir.path(), "s1", &["abort"]);
    open(dir.path()).0.refresh_views(10).unwrap();
    fs::remove_dir_all(dir.path().join("backstop")).unwrap();
    let (mut store, _) = open(dir.path());
    assert_eq!(memory(&mut store, "s1").kept().unwrap().attempts.len(), 1);
}

#[test]
fn import_can_be_switched_off() {
    let dir = tempfile::tempdir().unwrap();
    theirs(dir.path(), "s1", &["abort"]);
    let options = FileStoreOptions { import: false, ..FileStoreOptions::default() };
    assert_eq!(revisions(&mut FileStore::open(dir.path(), options).unwrap().0), []);
}
