//! A process that saves and is killed, again and again.

use std::collections::BTreeMap;
use std::env;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use backstop::policy::Verdict;
use backstop::state::{FileStore, FileStoreOptions, RecoveryStateStore, StateNote, StateRecord};

use super::{ended, names, open, session};

const ROLE: &str = "BACKSTOP_TEST_ROLE";
const DIR: &str = "BACKSTOP_TEST_DIR";

/// This test program again, in a role of `the_child_plays_its_role`.
pub(super) fn child(role: &str, dir: &Path) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", "crash::the_child_plays_its_role", "--nocapture"]);
    command.env(ROLE, role).env(DIR, dir).stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

/// Its lines of output that are meant for the parent.
pub(super) fn said(child: &mut Child) -> impl Iterator<Item = String> + use<> {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    lines.map_while(Result::ok).filter_map(|line| Some(line.split_once("say ")?.1.to_owned()))
}

fn say(what: impl std::fmt::Display) {
    println!("say {what}");
    std::io::stdout().flush().unwrap();
}

#[test]
fn the_child_plays_its_role() {
    let (Ok(role), Ok(dir)) = (env::var(ROLE), env::var(DIR)) else { return };
    match role.as_str() {
        "save" => save_for_ever(Path::new(&dir)),
        "hold" => {
            let _held = open(&dir);
            say("held");
            std::io::stdin().read_line(&mut String::new()).unwrap();
        }
        "make" => {
            let (mut store, _) = open(&dir);
            store.append(&[StateRecord::new(session("s1"), 1, &ended(Verdict::Cancelled, vec![]))]).unwrap();
            store.refresh_views(10).unwrap();
        }
        other => panic!("no role {other}"),
    }
}

const SESSIONS: u64 = 7;

/// Each revision is the last one's successor, so that a lost or doubled one shows.
fn save_for_ever(dir: &Path) {
    let options = FileStoreOptions { snapshot_above: 8_192, ..FileStoreOptions::default() };
    let (mut store, _) = FileStore::open(dir, options).unwrap();
    for round in 0.. {
        let batch: Vec<_> = (0..=round % 4).map(|place| next(&mut store, (round + place) % SESSIONS)).collect();
        store.append(&batch).unwrap();
        for record in &batch {
            say(format_args!("{} {}", record.session, record.revision));
        }
        if round % 5 == 0 {
            store.refresh_views(3).unwrap();
        }
    }
}

fn next(store: &mut FileStore, number: u64) -> StateRecord {
    let id = session(&format!("s{number}"));
    let known = store.load(&id).unwrap();
    let revision = known.as_ref().map_or(0, |record| record.revision) + 1;
    let mut memory = known.and_then(|record| record.read().unwrap()).unwrap_or_default();
    assert_eq!(memory.episodes() + 1, revision);
    if number.is_multiple_of(2) {
        memory = ended(Verdict::Cancelled, vec![]);
    }
    let mut json = serde_json::to_value(&memory).unwrap();
    json["episodes"] = revision.into();
    StateRecord { session: id, revision, memory: Some(serde_json::to_vec(&json).unwrap().into()) }
}

#[test]
fn thirty_kills_lose_nothing_and_double_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut acked: BTreeMap<String, u64> = BTreeMap::new();
    for kill in 0..30_usize {
        let mut child = child("save", dir.path()).spawn().unwrap();
        let mut lines = said(&mut child);
        let mut ack = |line: String| {
            let (id, revision) = line.split_once(' ').unwrap();
            let before = acked.insert(id.to_owned(), revision.parse().unwrap());
            assert!(before.unwrap_or(0) < acked[id], "{id} {revision} was acknowledged twice");
        };
        lines.by_ref().take(1 + kill * 13 % 97).for_each(&mut ack);
        child.kill().unwrap();
        child.wait().unwrap();
        lines.for_each(&mut ack);

        let (mut store, notes) = open(dir.path());
        let harmless = |note: &StateNote| matches!(note, StateNote::TornTail { .. });
        assert!(notes.iter().all(harmless), "{notes:?}");
        let lines = store.list().unwrap();
        assert!(acked.keys().all(|id| lines.iter().any(|line| line.session.as_str() == id)), "{acked:?}, {lines:?}");
        for line in lines {
            let record = store.load(&line.session).unwrap().unwrap();
            let before = acked.get(line.session.as_str()).copied().unwrap_or(0);
            assert!(line.revision == before || line.revision == before + 1, "{line:?} after {before}");
            assert_eq!(record.read().unwrap().unwrap().episodes(), line.revision);
            // What was saved and not acknowledged any more is known from here on.
            acked.insert(line.session.as_str().to_owned(), line.revision);
        }
    }
    assert!(acked.values().sum::<u64>() >= 30, "the child hardly saved: {acked:?}");
    let (mut store, _) = open(dir.path());
    while store.refresh_views(10).unwrap() > 0 {}
    drop(store);
    let there = names(dir.path());
    assert_eq!(there, ["backstop", "recovery-s0.json", "recovery-s2.json", "recovery-s4.json", "recovery-s6.json"]);
    assert_eq!(names(&dir.path().join("backstop")).len(), 2, "a lock and a log, and nothing left over");
}
