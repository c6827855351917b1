//! What fuzzing found and was fed with, replayed: every input of the corpora keeps its target's promises.
#![allow(clippy::unwrap_used)]

use std::path::Path;

#[path = "fuzz/checks/mod.rs"]
mod checks;

/// Checks every input of a target's corpus, and says which one failed.
fn replay(target: &str, check: fn(&[u8])) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/corpus").join(target);
    let mut inputs: Vec<_> = std::fs::read_dir(&corpus).unwrap().map(|entry| entry.unwrap().path()).collect();
    inputs.sort();
    assert!(inputs.len() >= 10, "{target} has a corpus");
    for path in inputs {
        let input = std::fs::read(&path).unwrap();
        assert!(std::panic::catch_unwind(|| check(&input)).is_ok(), "{}", path.display());
    }
}

macro_rules! replays {
    ($($target:ident)+) => { $(
        #[test]
        fn $target() {
            replay(stringify!($target), checks::$target::check);
        }
    )+ };
}

replays! { config detect own_pattern quote response state_file state_log stem }
