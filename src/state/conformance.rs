//! The promises of [`RecoveryStateStore`], asked of any store.
//!
//! ```
//! use backstop::state::{MemoryStore, conformance};
//!
//! conformance::check(|| {
//!     let place = MemoryStore::default();
//!     move || Ok(Box::new(place.take_over()) as _)
//! });
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{RecoveryStateStore, StateError, StateRecord};
use crate::failure::SessionId;
use crate::policy::seed;
use crate::policy::session::SessionMemory;

/// A store that was opened, or why it was not.
pub type Opened = Result<Box<dyn RecoveryStateStore>, StateError>;

/// Asks a store for every promise of the trait.
///
/// `new_place` makes a new, empty place; what it returns opens a store on that place, as one process
/// after the other would: what was acknowledged is there at the next opening.
///
/// # Panics
///
/// When a promise is not kept; the message names it.
pub fn check<P: FnMut() -> Opened>(mut new_place: impl FnMut() -> P) {
    for (promise, check) in PROMISES {
        let mut place = new_place();
        let mut open = || place().unwrap_or_else(|error| panic!("{promise}: the place cannot be opened: {error}"));
        check(promise, &mut open);
    }
    one_holder(&mut new_place());
    as_a_simple_model(&mut new_place());
}

type Open<'a> = &'a mut dyn FnMut() -> Box<dyn RecoveryStateStore>;
type Check = fn(&str, Open<'_>);

const PROMISES: [(&str, Check); 12] = [
    ("an empty place has no sessions", |promise, open| {
        let mut store = open();
        assert_eq!(ok(promise, store.list()).len(), 0, "{promise}");
        assert_eq!(ok(promise, store.load(&id("a"))), None, "{promise}");
        ok(promise, store.append(&[]));
    }),
    ("what is acknowledged is there, byte for byte, after the store was dropped", |promise, open| {
        let batch: Vec<_> = ODD_IDS.iter().map(|name| record(name, 7)).collect();
        ok(promise, open().append(&batch));
        let mut store = open();
        for record in batch {
            assert_eq!(ok(promise, store.load(&record.session)), Some(record), "{promise}");
        }
    }),
    ("what is acknowledged is there after the store was closed", |promise, open| {
        let mut store = open();
        ok(promise, store.append(&[record("a", 1), record("b", 2)]));
        ok(promise, store.close());
        drop(store);
        assert_eq!(listed(promise, &mut *open()), [("a".to_owned(), 1), ("b".to_owned(), 2)], "{promise}");
    }),
    ("of a session's records in a batch the highest revision counts", |promise, open| {
        let mut store = open();
        ok(promise, store.append(&[record("a", 3), record("b", 1), record("a", 5), record("a", 4)]));
        assert_eq!(ok(promise, store.load(&id("a"))), Some(record("a", 5)), "{promise}");
    }),
    ("the same batch again is no conflict", |promise, open| {
        let batch = [record("a", 1), record("b", 1), StateRecord::forgotten(id("c"), 1)];
        let mut store = open();
        ok(promise, store.append(&batch));
        ok(promise, store.append(&batch));
        drop(store);
        let mut store = open();
        ok(promise, store.append(&batch));
        assert_eq!(listed(promise, &mut *store).len(), 2, "{promise}");
    }),
    ("a record that is not above the stored one is refused, and its batch with it", |promise, open| {
        let mut store = open();
        ok(promise, store.append(&[record("a", 5)]));
        for given in [4, 5] {
            let other = StateRecord::new(id("a"), given, &SessionMemory::default());
            let refused = store.append(&[record("b", 1), other, record("c", 1)]);
            let is_named = matches!(&refused, Err(StateError::Stale { session, known: 5, given: of })
                if session.as_str() == "a" && *of == given);
            assert!(is_named, "{promise}: {refused:?}");
        }
        assert_eq!(listed(promise, &mut *store), [("a".to_owned(), 5)], "{promise}");
        drop(store);
        assert_eq!(listed(promise, &mut *open()), [("a".to_owned(), 5)], "{promise}");
    }),
    ("a record that is too large is refused by name, and its batch with it", |promise, open| {
        let mut store = open();
        let mut large = record("large", 1);
        large.memory = Some(vec![b' '; StateRecord::MAX_BYTES].into());
        let refused = store.append(&[record("a", 1), large]);
        let is_named = matches!(&refused, Err(StateError::TooLarge { session, .. }) if session.as_str() == "large");
        assert!(is_named, "{promise}: {refused:?}");
        assert_eq!(listed(promise, &mut *store).len(), 0, "{promise}");
    }),
    ("what is forgotten is gone, and may begin anew", |promise, open| {
        let mut store = open();
        ok(promise, store.append(&[record("a", 1), record("b", 1)]));
        ok(promise, store.append(&[StateRecord::forgotten(id("a"), 2), StateRecord::forgotten(id("never"), 1)]));
        assert_eq!(ok(promise, store.load(&id("a"))), None, "{promise}");
        drop(store);
        let mut store = open();
        assert_eq!(listed(promise, &mut *store), [("b".to_owned(), 1)], "{promise}");
        ok(promise, store.append(&[record("a", 3)]));
        assert_eq!(ok(promise, store.load(&id("a"))), Some(record("a", 3)), "{promise}");
    }),
    ("every session is listed in the order of their ids, and handed over once", |promise, open| {
        let mut store = open();
        let batch: Vec<_> = ODD_IDS.iter().rev().map(|name| record(name, 1)).collect();
        ok(promise, store.append(&batch));
        let list = ok(promise, store.list());
        assert!(list.is_sorted_by(|a, b| a.session < b.session) && list.len() == ODD_IDS.len(), "{promise}");
        assert!(list.iter().all(|line| line.readable && line.revision == 1), "{promise}");
        let mut seen = BTreeMap::new();
        ok(promise, store.visit(&mut |record| *seen.entry(record.session.clone()).or_insert(0) += 1));
        assert!(seen.len() == ODD_IDS.len() && seen.values().all(|times| *times == 1), "{promise}: {seen:?}");
    }),
    ("a batch may hold thousands of sessions", |promise, open| {
        let batch: Vec<_> = (0..4_096).map(|number| record(&format!("s{number}"), 1)).collect();
        ok(promise, open().append(&batch));
        assert_eq!(ok(promise, open().list()).len(), batch.len(), "{promise}");
    }),
    ("a closed store says so", |promise, open| {
        let mut store = open();
        ok(promise, store.close());
        let answers = [
            store.append(&[record("a", 1)]).is_err_and(|error| matches!(error, StateError::Closed)),
            store.load(&id("a")).is_err_and(|error| matches!(error, StateError::Closed)),
            store.list().is_err_and(|error| matches!(error, StateError::Closed)),
            store.visit(&mut drop).is_err_and(|error| matches!(error, StateError::Closed)),
        ];
        assert_eq!(answers, [true; 4], "{promise}");
    }),
    ("work that can wait comes to an end", |promise, open| {
        let mut store = open();
        ok(promise, store.append(&[record("a", 1), record("b", 1), record("c", 1)]));
        for _ in 0..10 {
            if ok(promise, store.refresh_views(1)) == 0 {
                return;
            }
        }
        panic!("{promise}: some is left after ten calls for three sessions");
    }),
];

/// Names that are easily confused, or dangerous where they become paths or queries.
const ODD_IDS: [&str; 12] = ["a", "A", "a ", "a/b", "../a", "", "é", "e\u{301}", "\u{202e}", "a\0b", "'; --", "会话 1"];

fn ok<T>(promise: &str, result: Result<T, StateError>) -> T {
    result.unwrap_or_else(|error| panic!("{promise}: {error}"))
}

fn id(name: &str) -> SessionId {
    // The empty name stands for a very long one, for a session has a name.
    let name = if name.is_empty() { "x".repeat(5_000) } else { name.to_owned() };
    SessionId::new(name).expect("the name is not empty")
}

/// A record that every version reads, different at every revision.
fn record(name: &str, revision: u64) -> StateRecord {
    let memory: Arc<[u8]> =
        format!(r#"{{"episodes":{revision},"of":"{}"}}"#, name.escape_unicode().count()).into_bytes().into();
    StateRecord { session: id(name), revision, memory: Some(memory) }
}

fn listed(promise: &str, store: &mut dyn RecoveryStateStore) -> Vec<(String, u64)> {
    ok(promise, store.list()).into_iter().map(|line| (line.session.as_str().to_owned(), line.revision)).collect()
}

/// Of two holders at once at most one can write, and the later one has the higher token.
fn one_holder(place: &mut dyn FnMut() -> Opened) {
    const PROMISE: &str = "a place has one holder at a time";
    let mut first = ok(PROMISE, place());
    ok(PROMISE, first.append(&[record("a", 1)]));
    let token = ok(PROMISE, first.hold()).token;
    let second = match place() {
        Err(StateError::Locked { .. }) => {
            ok(PROMISE, first.append(&[record("a", 2)]));
            drop(first);
            place()
        }
        Ok(second) => {
            let refused = first.append(&[record("a", 2)]);
            assert!(matches!(refused, Err(StateError::Superseded { .. })), "{PROMISE}: {refused:?}");
            let refused = first.hold();
            assert!(matches!(refused, Err(StateError::Superseded { .. })), "{PROMISE}: {refused:?}");
            Ok(second)
        }
        Err(error) => panic!("{PROMISE}: a second one is refused by another error: {error}"),
    };
    let mut second = ok(PROMISE, second);
    let newer = ok(PROMISE, second.hold()).token;
    assert!(newer > token, "{PROMISE}: token {newer} follows {token}");
    ok(PROMISE, second.append(&[record("a", 3)]));
    assert_eq!(listed(PROMISE, &mut *second), [("a".to_owned(), 3)], "{PROMISE}");
}

/// Many batches, with openings between them, beside a map that does the same.
fn as_a_simple_model(place: &mut dyn FnMut() -> Opened) {
    const PROMISE: &str = "batches and openings in any order keep the newest of each session";
    const BATCHES: u64 = 400;
    let mut model: BTreeMap<String, u64> = BTreeMap::new();
    let mut store = ok(PROMISE, place());
    for batch in 0..BATCHES {
        let draw = |salt: u64, below: u64| seed::mix(batch, salt) % below;
        if draw(0, 16) == 0 {
            drop(store);
            store = ok(PROMISE, place());
        }
        let mut records = vec![];
        for place in 0..=draw(1, 6) {
            let name = format!("s{}", draw(2 + place, 9));
            let revision = batch * 10 + place + 1;
            match draw(20 + place, 5) {
                0 => {
                    records.push(StateRecord::forgotten(id(&name), revision));
                    model.remove(&name);
                }
                _ => {
                    records.push(record(&name, revision));
                    model.insert(name, revision);
                }
            }
        }
        ok(PROMISE, store.append(&records));
        ok(PROMISE, store.refresh_views(draw(40, 3) as usize));
        let expected: Vec<_> = model.iter().map(|(name, revision)| (name.clone(), *revision)).collect();
        assert_eq!(listed(PROMISE, &mut *store), expected, "{PROMISE}");
    }
}
