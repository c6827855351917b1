//! A disk that knows what is synced, and every state that a power cut may leave of it.
//!
//! Names and content that were synced stay. Of what was not, any part may be there: any of the changes
//! of names, any of the written blocks, the file shorter or with zeros where a block is missing. A start
//! must find everything acknowledged in all of them, exactly once, and nothing damaged.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};

use proptest::prelude::*;

use super::lock::Lock;
use super::platter::{Dice, Lies, Platter};
use super::played::Model;
use super::{FileStore, FileStoreOptions, RecoveryStateStore, StateNote, StateRecord, place};
use crate::failure::SessionId;

/// Who is written after a start.
const NEXT: &str = "next";

/// What may be there: the highest revision that was acknowledged, and the highest that was tried.
type Expected = BTreeMap<String, (u64, u64)>;

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Found {
    states: usize,
    lost: usize,
    /// A revision that was never written, or one that is not whole.
    invented: usize,
    /// It does not open, or calls itself damaged.
    unreadable: usize,
    untidy: usize,
}

impl Found {
    fn add(&mut self, other: Self) {
        self.states += other.states;
        self.lost += other.lost;
        self.invented += other.invented;
        self.unreadable += other.unreadable;
        self.untidy += other.untidy;
    }

    fn is_good(self) -> bool {
        self.lost + self.invented + self.unreadable + self.untidy == 0
    }
}

pub(super) struct Machine {
    pub platter: Platter,
    expected: Expected,
    found: Found,
    dice: Dice,
    /// States tried at each call; none: the power stays on.
    states_per_call: usize,
    /// Cuts while the start after a cut is at work.
    again: bool,
    /// I/O calls until one fails.
    fails_in: Option<usize>,
    lock: Arc<Place>,
}

struct Place {
    dir: tempfile::TempDir,
    lock: Lock,
}

impl Machine {
    pub fn look(&mut self) {
        if self.states_per_call == 0 {
            return;
        }
        let pieces = self.platter.pieces();
        let all = 1_usize.checked_shl(pieces as u32).filter(|all| *all <= self.states_per_call);
        for state in 0..all.unwrap_or(self.states_per_call) {
            let mut piece = 0;
            let dice = &mut self.dice;
            let left = self.platter.cut(|| {
                piece += 1;
                match all {
                    Some(_) => state >> (piece - 1) & 1 == 1,
                    // Most of it, some of it, little of it.
                    None => dice.throw() % 4 <= (state % 4) as u64,
                }
            });
            let seed = self.dice.throw();
            let is_again = self.again && seed.is_multiple_of(16);
            self.found.add(judge(left, &self.expected, &self.lock, is_again.then_some(seed)));
        }
    }

    pub fn call(&mut self) -> io::Result<()> {
        let Some(left) = &mut self.fails_in else { return Ok(()) };
        *left = left.wrapping_sub(1);
        if *left == 0 { Err(io::Error::other("injected")) } else { Ok(()) }
    }
}

/// Starts on what a power cut left, and says what is wrong with it.
fn judge(left: Platter, expected: &Expected, lock: &Arc<Place>, again: Option<u64>) -> Found {
    let mut found = Found { states: 1, ..Found::default() };
    let shared = machine(left, Arc::clone(lock), again.map_or(0, |_| 8), again.unwrap_or(1));
    shared.lock().unwrap().expected = expected.clone();
    let Ok((mut store, notes)) = start(&shared, 1 << 20) else { return Found { unreadable: 1, ..found } };
    let harmless = |note: &StateNote| matches!(note, StateNote::TornTail { .. } | StateNote::Imported { .. });
    found.unreadable += usize::from(!notes.iter().all(harmless));
    let there: BTreeMap<String, u64> =
        store.list().unwrap().into_iter().map(|line| (line.session.as_str().to_owned(), line.revision)).collect();
    for (session, (acked, tried)) in expected {
        let revision = there.get(session).copied().unwrap_or(0);
        found.lost += usize::from(revision < *acked);
        found.invented += usize::from(revision > *tried);
        let id = SessionId::new(session.as_str()).unwrap();
        if revision > 0 && store.load(&id).unwrap() != Some(record(session, revision)) {
            found.invented += 1;
        }
    }
    found.invented += there.keys().filter(|session| *session != NEXT && !expected.contains_key(*session)).count();
    // And it goes on: another batch, another start.
    let next = record(NEXT, 1);
    let goes_on = store.append(std::slice::from_ref(&next)).is_ok();
    drop(store);
    found.unreadable += usize::from(!goes_on);
    let mut machine = shared.lock().unwrap();
    machine.states_per_call = 0;
    let names = machine.platter.dirs.clone().map(|dir| dir.seen());
    let is_temporary = |name: &&String| name.ends_with(".new");
    found.untidy += names.iter().flat_map(BTreeMap::keys).filter(is_temporary).count();
    found.untidy += usize::from(names[0].len() != 1);
    found.add(machine.found);
    found
}

/// The content tells session and revision, and is longer than some blocks.
fn record(session: &str, revision: u64) -> StateRecord {
    let memory = format!(r#"{{"episodes":{revision},"fence":{{"seq":{revision},"epoch":1}},"history":{{}}}}"#);
    let session = SessionId::new(session).unwrap();
    StateRecord { session, revision, memory: Some(memory.into_bytes().into()) }
}

pub(super) type Shared = Arc<Mutex<Machine>>;

fn machine(platter: Platter, lock: Arc<Place>, states_per_call: usize, seed: u64) -> Shared {
    let (expected, found) = (Expected::new(), Found::default());
    let (dice, again, fails_in) = (Dice(seed), false, None);
    Arc::new(Mutex::new(Machine { platter, expected, found, dice, states_per_call, again, fails_in, lock }))
}

fn start(shared: &Shared, snapshot_above: u64) -> Result<(FileStore, Vec<StateNote>), super::StateError> {
    let disk = |dir| Box::new(Model { machine: Arc::clone(shared), dir });
    let place = Arc::clone(&shared.lock().unwrap().lock);
    let options = FileStoreOptions { snapshot_above, ..FileStoreOptions::default() };
    FileStore::on(disk(0), disk(1), place.lock.again().unwrap(), place.dir.path().to_owned(), options)
}

fn a_place() -> Arc<Place> {
    let dir = tempfile::tempdir().unwrap();
    let own = place::prepare(dir.path(), super::file::OWN).unwrap();
    let lock = Lock::take(&own).unwrap();
    Arc::new(Place { dir, lock })
}

#[derive(Debug, Clone)]
enum Step {
    /// A batch of records of these sessions.
    Record(Vec<u8>),
    /// Background work: views, and a new segment if it is due.
    Refresh,
    /// The process is killed and another starts; the power stays on.
    Kill,
    /// The so-manieth I/O call from now fails.
    Fail(usize),
}

fn a_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => proptest::collection::vec(0..4_u8, 1..4).prop_map(Step::Record),
        2 => Just(Step::Refresh),
        1 => Just(Step::Kill),
        1 => (1..9_usize).prop_map(Step::Fail),
    ]
}

/// Takes the steps, with a power cut at every call; says what the starts after them found.
fn run(steps: &[Step], lies: Lies, states_per_call: usize, place: &Arc<Place>) -> Found {
    let shared = machine(Platter { lies, ..Platter::default() }, Arc::clone(place), states_per_call, 7);
    shared.lock().unwrap().again = true;
    let mut store = start(&shared, 300).unwrap().0;
    for step in steps {
        match step {
            Step::Record(sessions) => {
                let mut batch: BTreeMap<String, StateRecord> = BTreeMap::new();
                for session in sessions {
                    let name = format!("s{session}");
                    let tried = shared.lock().unwrap().expected.get(&name).map_or(0, |(_, tried)| *tried);
                    batch.insert(name.clone(), record(&name, tried + 1));
                }
                for (name, record) in &batch {
                    shared.lock().unwrap().expected.entry(name.clone()).or_default().1 = record.revision;
                }
                let batch: Vec<_> = batch.into_values().collect();
                if store.append(&batch).is_ok() {
                    for record in &batch {
                        let id = record.session.as_str();
                        shared.lock().unwrap().expected.get_mut(id).unwrap().0 = record.revision;
                    }
                }
            }
            Step::Refresh => drop(store.refresh_views(4)),
            Step::Kill => {
                drop(store);
                shared.lock().unwrap().fails_in = None;
                store = start(&shared, 300).unwrap().0;
                // What a start has found counts from then on.
                for line in store.list().unwrap() {
                    let mut machine = shared.lock().unwrap();
                    if let Some(expected) = machine.expected.get_mut(line.session.as_str()) {
                        expected.0 = line.revision;
                    }
                }
            }
            Step::Fail(calls) => shared.lock().unwrap().fails_in = Some(*calls),
        }
    }
    drop(store);
    shared.lock().unwrap().found
}

/// How many states are tried: `BACKSTOP_CUT_STATES` asks for more.
fn wanted() -> usize {
    const USUAL: usize = 30_000;
    std::env::var("BACKSTOP_CUT_STATES").ok().and_then(|text| text.parse().ok()).unwrap_or(USUAL)
}

#[test]
fn no_power_cut_loses_doubles_or_breaks_what_was_acknowledged() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::{Config, RngSeed, TestRunner};
    let place = a_place();
    let seed = std::env::var("BACKSTOP_CUT_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let mut runner = TestRunner::new(Config { rng_seed: RngSeed::Fixed(seed), ..Config::default() });
    let mut found = Found::default();
    while found.states < wanted() {
        let steps = proptest::collection::vec(a_step(), 1..14).new_tree(&mut runner).unwrap().current();
        let now = run(&steps, Lies::default(), 32, &place);
        assert!(now.is_good(), "{now:?} after {steps:?}");
        found.add(now);
    }
    println!("{found:?}");
}

/// Every state, and not a sample, of a few short lives.
#[test]
fn every_state_of_short_lives_is_good() {
    let place = a_place();
    let mut found = Found::default();
    for fail in 0..6 {
        let steps = [Step::Record(vec![0]), Step::Fail(fail), Step::Record(vec![0, 1]), Step::Kill, Step::Refresh];
        let now = run(&steps, Lies::default(), 1 << 10, &place);
        assert!(now.is_good(), "{now:?} after {steps:?}");
        found.add(now);
    }
    println!("{found:?}");
}

/// The model tells the right protocol from wrong ones: without this, the tests above would say nothing.
#[test]
fn a_disk_that_does_not_sync_is_found_out() {
    let place = a_place();
    let records = |count| (0..count).map(|session| Step::Record(vec![session % 3])).collect::<Vec<_>>();
    let steps: Vec<Step> = records(9).into_iter().chain([Step::Refresh]).chain(records(9)).collect();
    let right = run(&steps, Lies::default(), 32, &place);
    assert!(right.is_good(), "{right:?}");
    let files = run(&steps, Lies { files: true, names: false }, 32, &place);
    assert!(files.lost > 0 && files.unreadable > 0, "without a sync of files: {files:?}");
    let names = run(&steps, Lies { files: false, names: true }, 32, &place);
    assert!(names.lost > 0, "without a sync of names: {names:?}");
    println!("right {right:?}, no sync of files {files:?}, no sync of names {names:?}");
}
