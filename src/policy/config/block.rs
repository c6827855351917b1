use std::sync::Arc;

use super::form::Form;
use super::limit_keys::LIMIT_KEYS;
use super::node::{Entry, Found, Node, Quoted};
use super::patch::{ChainPatch, Patch, Sourced};
use super::patterns_block::read_patterns;
use super::problems::{Problems, Spot, no_help};
use super::steps::{Known, merge_key, read_steps};
use super::{Durability, did_you_mean, nearest, snake_case};
use crate::failure::{Category, Kind};
use crate::policy::ChainKey;

/// The words of `durability`.
pub(super) const DURABILITIES: &[&str] = &["ahead", "behind", "off"];

/// The keys of the block beside the limits and the categories.
const SWITCHES: &[&str] = &[
    "enabled",
    "max_total_attempts",
    "persist_state",
    "collect_metrics",
    "durability",
    "kinds",
    "patterns",
    "known_strategies",
];

/// Names in `known_strategies`; more is a generated file gone wrong.
const MAX_KNOWN: usize = 256;

/// Every key of the block.
pub(super) fn keys() -> impl Iterator<Item = &'static str> {
    let categories = Category::ALL.iter().map(|category| category.as_str());
    SWITCHES.iter().copied().chain(categories).chain(LIMIT_KEYS.iter().map(|key| key.name))
}

/// The block of a document: that of a role file, or the whole document.
///
/// A document with none of our keys is a role file without a block: defaults, with a warning.
pub(super) fn find_block(root: Node, at: &Spot, problems: &mut Problems) -> Option<(Node, Spot)> {
    let nothing_here = "no `recovery` block and none of its keys: the defaults apply";
    let entries = match &root.value {
        Found::Map(entries) => entries,
        Found::Nothing => {
            problems.warning(&at.at(&root), nothing_here, no_help);
            return None;
        }
        found => {
            problems.error(&at.at(&root), format!("expected a map, found {found}"), no_help);
            return None;
        }
    };
    if let Some(entry) = entries.iter().find(|entry| entry.key == "recovery") {
        return Some((entry.value.clone(), at.at(&entry.value)));
    }
    let ours = |entry: &Entry| {
        let snake = snake_case(&entry.key);
        entry.key == "<<" || keys().any(|key| key == entry.key || key == snake)
    };
    if entries.iter().any(ours) {
        let here = at.at(&root);
        return Some((root, here));
    }
    problems.warning(&at.at(&root), nothing_here, || {
        let slip = entries.iter().find_map(|entry| nearest(&entry.key, keys().chain(["recovery"])));
        slip.map(did_you_mean)
    });
    None
}

/// The names that a block makes known, before its chains are read.
pub(super) fn read_known(block: &Node, at: &Spot, problems: &mut Problems) -> Vec<Sourced<Arc<str>>> {
    let Found::Map(entries) = &block.value else { return vec![] };
    let Some(entry) = entries.iter().find(|entry| entry.key == "known_strategies") else { return vec![] };
    let here = at.value(entry);
    let one = std::slice::from_ref(&entry.value);
    let names: &[Node] = match &entry.value.value {
        Found::List(items) => items,
        Found::Text(_) => one,
        _ => &[],
    };
    if names.len() > MAX_KNOWN {
        problems.error(&here, format!("expected at most {MAX_KNOWN} names, found {}", names.len()), no_help);
        return vec![];
    }
    let name = |node: &Node| match &node.value {
        Found::Text(name) if !name.is_empty() => {
            Some(Sourced { value: name.as_str().into(), origin: here.at(node).origin() })
        }
        _ => None,
    };
    // Other forms are reported when the whole block is read.
    names.iter().filter_map(name).collect()
}

/// Reads a block, noting everything that is wrong with it.
pub(super) fn read_block(block: &Node, at: &Spot, known: &Known, problems: &mut Problems) -> Patch {
    let mut patch = Patch::default();
    let entries = match &block.value {
        Found::Map(entries) => entries,
        Found::Nothing | Found::Flag(true) => return patch,
        Found::Flag(false) => {
            patch.enabled = Some(Sourced { value: false, origin: at.origin() });
            return patch;
        }
        found => {
            problems.error(at, format!("expected a map of settings, or `false`, found {found}"), || {
                Form::Flag.advice(found)
            });
            return patch;
        }
    };
    for entry in entries {
        read_entry(entry, at, known, &mut patch, problems);
    }
    contradiction(&patch, at, entries, problems);
    patch
}

fn read_entry(entry: &Entry, at: &Spot, known: &Known, patch: &mut Patch, problems: &mut Problems) {
    let here = at.value(entry);
    let key = entry.key.as_str();
    if key == "<<" {
        return merge_key(&at.key(entry), problems);
    }
    if !keys().any(|known| known == key) {
        return unknown_key(entry, at, problems);
    }
    if entry.value.is_nothing() {
        return;
    }
    if let Some(category) = Category::parse(key) {
        let chain = read_chain(&entry.value, &here, known, problems);
        patch.chains.insert(ChainKey::Category(category), chain);
        return;
    }
    if let Some(limit) = LIMIT_KEYS.iter().find(|limit| limit.name == key) {
        let value = checked(limit.form(), &entry.value, &here, problems).and_then(|value| value.as_u64());
        if value == Some(0) && key == "max_total_attempts" {
            let message = "with 0 attempts every failure ends as exhausted at once";
            problems.warning(&here, message, || Some("write `enabled: false` to leave failures alone".to_owned()));
        }
        patch.limits.extend(value.map(|value| (limit, Sourced { value, origin: here.origin() })));
        return;
    }
    let flag = |problems: &mut Problems| {
        let value = checked(Form::Flag, &entry.value, &here, problems)?.as_bool()?;
        Some(Sourced { value, origin: here.origin() })
    };
    match key {
        "enabled" => patch.enabled = flag(problems),
        "persist_state" => patch.persist_state = flag(problems),
        "collect_metrics" => patch.collect_metrics = flag(problems),
        "durability" => {
            let word = checked(Form::Word(DURABILITIES), &entry.value, &here, problems);
            let value = word.and_then(|word| Durability::parse(word.as_str()?));
            patch.durability = value.map(|value| Sourced { value, origin: here.origin() });
        }
        "kinds" => read_kinds(&entry.value, &here, known, patch, problems),
        "patterns" => patch.patterns = read_patterns(&entry.value, &here, problems),
        // The names themselves were taken before; here their form is judged.
        _ => drop(checked(Form::Names, &entry.value, &here, problems)),
    }
}

/// The value if it has this form; notes the error otherwise.
pub(super) fn checked(form: Form, node: &Node, at: &Spot, problems: &mut Problems) -> Option<serde_json::Value> {
    let wrong = match form.check(node) {
        Ok(value) => return Some(value),
        Err(wrong) => wrong,
    };
    let message = format!("expected {form}, found {}", wrong.value);
    problems.error(&at.at(wrong), message, || form.advice(&wrong.value));
    None
}

fn unknown_key(entry: &Entry, at: &Spot, problems: &mut Problems) {
    problems.warning(&at.key(entry), "unknown key", || match entry.key.as_str() {
        "chains" => Some("write the categories directly into the block".to_owned()),
        key if Kind::BUILT_IN.iter().any(|kind| kind.as_str() == key) => Some(format!("write `{key}` under `kinds`")),
        key => nearest(key, keys()).map(did_you_mean),
    });
}

fn contradiction(patch: &Patch, at: &Spot, entries: &[Entry], problems: &mut Problems) {
    let (Some(persist), Some(durability)) = (&patch.persist_state, &patch.durability) else { return };
    if persist.value == (durability.value == Durability::Off) {
        let place = entries.iter().find(|entry| entry.key == "persist_state");
        let here = place.map_or_else(|| at.clone(), |entry| at.value(entry));
        problems.warning(&here, "`persist_state` and `durability` contradict each other: nothing is kept", no_help);
    }
}

fn read_kinds(node: &Node, at: &Spot, known: &Known, patch: &mut Patch, problems: &mut Problems) {
    let Found::Map(entries) = &node.value else {
        problems.error(at, format!("expected a map from kinds to chains, found {}", node.value), no_help);
        return;
    };
    for entry in entries {
        if entry.key == "<<" {
            merge_key(&at.key(entry), problems);
            continue;
        }
        let kind = Kind::parse(&entry.key);
        if matches!(kind, Kind::Custom(_)) {
            // Own patterns make kinds that only the host knows, so only a likely slip is told.
            let help = match Category::parse(&entry.key) {
                Some(category) => Some(format!("`{category}` is a category: write it beside `kinds`")),
                None => nearest(&entry.key, Kind::BUILT_IN.iter().map(Kind::as_str)).map(did_you_mean),
            };
            if help.is_some() {
                problems.warning(&at.key(entry), format!("no built-in kind {}", Quoted(&entry.key)), || help);
            }
        }
        if !entry.value.is_nothing() {
            let chain = read_chain(&entry.value, &at.value(entry), known, problems);
            patch.chains.insert(ChainKey::Kind(kind), chain);
        }
    }
}

/// Reads `{chain, enabled}`, the bare list of steps, or the switch.
fn read_chain(node: &Node, at: &Spot, known: &Known, problems: &mut Problems) -> ChainPatch {
    let mut patch = ChainPatch::default();
    let steps = |items: &[Node], here: &Spot, problems: &mut Problems| {
        Some(Sourced { value: read_steps(items, here, known, problems), origin: here.origin() })
    };
    let entries = match &node.value {
        Found::Flag(value) => {
            patch.enabled = Some(Sourced { value: *value, origin: at.origin() });
            return patch;
        }
        Found::List(items) => {
            patch.steps = steps(items, &at.child("chain", at.place), problems);
            return patch;
        }
        Found::Map(entries) => entries,
        found => {
            problems.error(
                at,
                format!("expected `chain:` with steps, a list of steps, or `false`, found {found}"),
                || Form::Flag.advice(found),
            );
            return patch;
        }
    };
    for entry in entries {
        let here = at.value(entry);
        match (entry.key.as_str(), &entry.value.value) {
            ("<<", _) => merge_key(&at.key(entry), problems),
            ("chain" | "enabled", Found::Nothing) => {}
            ("chain", Found::List(items)) => patch.steps = steps(items, &here, problems),
            ("chain", found) => problems.error(&here, format!("expected a list of steps, found {found}"), || {
                Some("begin each step with `- `".to_owned())
            }),
            ("enabled", _) => {
                let flag = checked(Form::Flag, &entry.value, &here, problems).and_then(|flag| flag.as_bool());
                patch.enabled = flag.map(|value| Sourced { value, origin: here.origin() });
            }
            ("strategy" | "config", _) => problems
                .warning(&at.key(entry), "unknown key", || Some("write the step as an item of `chain:`".to_owned())),
            (key, _) => {
                problems.warning(&at.key(entry), "unknown key", || nearest(key, ["chain", "enabled"]).map(did_you_mean))
            }
        }
    }
    patch
}
