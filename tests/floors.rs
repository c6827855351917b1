//! The floors of the source: what each may use of the others, and that the lowest only computes.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

/// The layers, lowest first; those of one number do not use each other.
const FLOORS: [(&str, u8); 8] = [
    ("failure", 1),
    ("policy", 1),
    ("strategy", 2),
    ("state", 2),
    ("actors", 3),
    ("engine", 4),
    ("client", 5),
    ("cli", 6),
];

/// `policy` may use `failure`; the other way round it may not.
const WITHIN_A_FLOOR: [(&str, &str); 1] = [("policy", "failure")];

/// What has a clock, does I/O, waits, or is random.
const NOT_PURE: [&str; 18] = [
    "std::time::SystemTime",
    "std::time::Instant",
    "SystemTime::now",
    "Instant::now",
    "std::fs",
    "std::io",
    "std::net",
    "std::env",
    "std::process",
    "std::thread",
    "RandomState",
    "tokio",
    "ractor",
    "rand::",
    "getrandom",
    "async fn",
    "async move",
    ".await",
];

/// Each with its reason.
const ALLOWED: [(&str, &str, &str); 2] = [
    ("failure/typed/standard.rs", "std::io", "looks at the kind of an error that the host hands over; does no I/O"),
    ("failure/typed/task.rs", "tokio", "looks at the types of errors that the host hands over; awaits nothing"),
];

struct Source {
    /// Below `src`.
    path: String,
    layer: String,
    /// Without comments and without the tests under the code.
    code: String,
}

fn sources() -> Vec<Source> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut all = vec![];
    let mut open = vec![src.clone()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                all.extend(read(&src, &path));
            }
        }
    }
    assert!(all.len() > 100, "the source was found");
    all
}

fn read(src: &Path, path: &PathBuf) -> Option<Source> {
    let path_below = path.strip_prefix(src).unwrap().to_str().unwrap().to_owned();
    let (layer, file) = path_below.split_once('/')?;
    if file.contains("test") || file.contains("fixture") {
        return None;
    }
    let text = fs::read_to_string(path).unwrap();
    let above_tests = text.split("\nmod tests {").next().unwrap();
    let code = above_tests.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
    Some(Source { layer: layer.to_owned(), path: path_below, code })
}

fn floor(layer: &str) -> u8 {
    FLOORS.iter().find(|(name, _)| *name == layer).unwrap_or_else(|| panic!("`{layer}` is on no floor")).1
}

fn may_use(user: &str, used: &str) -> bool {
    user == used || floor(used) < floor(user) || WITHIN_A_FLOOR.contains(&(user, used))
}

/// The layers that a file names: `crate::x`, in a `use` or in a path, also in a group `crate::{x, y::Z}`.
fn used(code: &str) -> Vec<String> {
    let mut all = vec![];
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        let names: Vec<&str> = match rest.strip_prefix('{') {
            Some(group) => {
                let mut depth = 0;
                let end = group.find(|c| {
                    depth += i32::from(c == '{') - i32::from(c == '}');
                    depth < 0
                });
                let mut depth = 0;
                let outermost = |c: char| {
                    depth += i32::from(c == '{') - i32::from(c == '}');
                    c == ',' && depth == 0
                };
                group[..end.unwrap_or(group.len())].split(outermost).map(str::trim).collect()
            }
            None => vec![rest],
        };
        let word = |name: &str| name.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
        all.extend(names.into_iter().map(word).filter(|name| FLOORS.iter().any(|(layer, _)| layer == name)));
    }
    all
}

#[test]
fn no_floor_uses_one_above_it_or_beside_it() {
    let mut wrong = vec![];
    for source in sources() {
        for used in used(&source.code) {
            if !may_use(&source.layer, &used) {
                wrong.push(format!("{} uses `{used}`", source.path));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_lowest_floor_has_no_clock_no_io_nothing_async_and_nothing_random() {
    let mut wrong = vec![];
    for source in sources().iter().filter(|source| floor(&source.layer) == 1) {
        for word in NOT_PURE {
            let is_allowed = ALLOWED.iter().any(|(path, allowed, _)| *path == source.path && *allowed == word);
            if source.code.contains(word) && !is_allowed {
                wrong.push(format!("{} has `{word}`", source.path));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn what_is_looked_for_would_be_found() {
    assert_eq!(used("use crate::engine::RecoveryEngine;"), ["engine"]);
    assert_eq!(
        used("use crate::{failure::{A, B}, actors::C};\nlet x = crate::cli::run();"),
        ["failure", "actors", "cli"]
    );
    assert!(used("use crate::Kind;").is_empty());
    assert!(may_use("policy", "failure") && !may_use("failure", "policy"));
    assert!(!may_use("strategy", "state") && !may_use("state", "strategy") && !may_use("actors", "engine"));
    let unused: Vec<_> = ALLOWED
        .iter()
        .filter(|(path, word, _)| !sources().iter().any(|source| source.path == *path && source.code.contains(word)))
        .collect();
    assert!(unused.is_empty(), "an exception that nothing needs: {unused:?}");
}
