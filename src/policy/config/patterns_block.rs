use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use serde_json::Value as Json;

use super::block::checked;
use super::form::Form;
use super::node::{Entry, Found, Node, Quoted};
use super::patch::Sourced;
use super::pattern::{MAX_FIELDS, MAX_REGEX_BYTES};
use super::problems::{Problems, Spot, no_help};
use super::steps::merge_key;
use super::{InvalidPattern, PatternSpec, did_you_mean, nearest};
use crate::failure::{Category, Kind};

/// Own patterns in one block; each costs time in every detection.
pub(super) const MAX_PATTERNS: usize = 1_000;

/// Compiled size of all expressions of one block; it bounds the time that checking them takes.
const ALL_REGEX_BYTES: usize = 8 * 1024 * 1024;

/// The priorities that a pattern may have.
pub(super) const PRIORITY: Form = Form::Whole(-1_000, 1_000);

/// The categories' names.
pub(super) const CATEGORIES: &[&str] = &{
    let mut names = [""; Category::ALL.len()];
    let mut index = 0;
    while index < names.len() {
        names[index] = Category::ALL[index].as_str();
        index += 1;
    }
    names
};

const KEYS: &[&str] = &["name", "category", "kind", "regex", "fields", "priority"];

/// Reads the list under `patterns`.
pub(super) fn read_patterns(node: &Node, at: &Spot, problems: &mut Problems) -> Vec<Sourced<PatternSpec>> {
    let Found::List(items) = &node.value else {
        problems.error(at, format!("expected a list of patterns, found {}", node.value), no_help);
        return vec![];
    };
    if items.len() > MAX_PATTERNS {
        problems.error(at, format!("expected at most {MAX_PATTERNS} patterns, found {}", items.len()), no_help);
        return vec![];
    }
    let mut patterns: Vec<Sourced<PatternSpec>> = vec![];
    let mut names = HashSet::new();
    let mut size = 0;
    for (index, item) in items.iter().enumerate() {
        let here = at.item(index, item);
        if size > ALL_REGEX_BYTES {
            problems.error(&here, "the patterns before this one compile to more than 8 MiB", no_help);
            break;
        }
        let value = match read_pattern(item, &here, problems) {
            Ok(value) => value,
            Err(cost) => {
                size += cost;
                continue;
            }
        };
        size += value.size();
        if !names.insert(Arc::clone(value.name())) {
            let message = format!("a second pattern {}; it replaces the first", Quoted(value.name()));
            problems.warning(&here, message, no_help);
            patterns.retain(|before| before.value.name() != value.name());
        }
        patterns.push(Sourced { value, origin: here.origin() });
    }
    patterns
}

/// Reads one pattern; where it is wrong, the answer is what finding that out has cost in compiled
/// bytes.
fn read_pattern(node: &Node, at: &Spot, problems: &mut Problems) -> Result<PatternSpec, usize> {
    let Found::Map(entries) = &node.value else {
        problems.error(at, format!("expected a pattern with a `name`, found {}", node.value), no_help);
        return Err(0);
    };
    for entry in entries.iter().filter(|entry| !KEYS.contains(&&*entry.key)) {
        if entry.key == "<<" {
            merge_key(&at.key(entry), problems);
        } else {
            let help = || nearest(&entry.key, KEYS.iter().copied()).map(did_you_mean);
            problems.warning(&at.key(entry), "unknown key", help);
        }
    }
    let written = |key: &str| entries.iter().find(|entry| entry.key == key && !entry.value.is_nothing());
    let mut wrong = false;
    let mut take = |key: &str, form: Form, problems: &mut Problems| {
        let entry = written(key)?;
        let value = checked(form, &entry.value, &at.value(entry), problems);
        wrong |= value.is_none();
        value
    };
    let name = take("name", Form::Name, problems);
    let kind = take("kind", Form::Name, problems);
    let regex = take("regex", Form::Name, problems);
    let priority = take("priority", PRIORITY, problems).and_then(|value| value.as_i64()).unwrap_or(0);
    let category = take("category", Form::Word(CATEGORIES), problems);
    let category = category.as_ref().and_then(Json::as_str).and_then(Category::parse);
    let fields = written("fields").and_then(|entry| {
        let fields = read_fields(entry, &at.value(entry), problems);
        wrong |= fields.is_none();
        fields
    });
    let Some(name) = name.as_ref().and_then(Json::as_str) else {
        if written("name").is_none() {
            problems.error(at, "expected a `name` in the pattern, found none", no_help);
        }
        return Err(0);
    };
    if wrong {
        return Err(0);
    }
    let written_kind = kind.as_ref().and_then(Json::as_str).map(Kind::parse);
    let usual = written_kind.as_ref().and_then(Kind::usual_category);
    let kind = written_kind.unwrap_or_else(|| Kind::parse(name));
    if category.or(usual).is_none() {
        problems.error(at, "expected a `category`, or a built-in `kind` that has one, found neither", no_help);
        return Err(0);
    }
    let expression = regex.as_ref().and_then(Json::as_str).map(Arc::from);
    let made = PatternSpec::new(name.into(), category, kind, expression, fields.unwrap_or_default(), priority as i32);
    let place = written("regex").map_or_else(|| at.clone(), |entry| at.value(entry));
    made.map_err(|error| {
        let cost = if error == InvalidPattern::TooLarge { MAX_REGEX_BYTES } else { 0 };
        problems.error(&place, error.to_string(), no_help);
        cost
    })
}

fn read_fields(entry: &Entry, at: &Spot, problems: &mut Problems) -> Option<BTreeMap<Arc<str>, Json>> {
    let Found::Map(entries) = &entry.value.value else {
        let message = format!("expected a map from paths to plain values, found {}", entry.value.value);
        problems.error(at, message, no_help);
        return None;
    };
    if entries.len() > MAX_FIELDS {
        problems.error(at, format!("expected at most {MAX_FIELDS} fields, found {}", entries.len()), no_help);
        return None;
    }
    let mut fields = BTreeMap::new();
    let mut wrong = false;
    for field in entries {
        let here = at.value(field);
        if field.key == "<<" {
            merge_key(&at.key(field), problems);
            wrong = true;
            continue;
        }
        match field.value.to_json() {
            Ok(value) if !field.key.is_empty() && !value.is_array() && !value.is_object() => {
                fields.insert(field.key.as_str().into(), value);
            }
            _ => {
                let message = format!("expected a plain value under a path, found {}", field.value.value);
                problems.error(&here, message, no_help);
                wrong = true;
            }
        }
    }
    (!wrong).then_some(fields)
}
