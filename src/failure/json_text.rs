//! JSON inside texts, and copies of JSON that stay small.

use std::borrow::Cow;

use serde_json::Value;

use super::evidence::{MAX_DEPTH, MAX_NODES};
use super::text::{head, head_and_tail};

/// How many JSON values hidden in one text are opened.
const MAX_EMBEDDED: usize = 8;
/// The longest key that a copy keeps.
const MAX_KEY: usize = 120;

/// A copy of a value that can neither be deep enough to exhaust the stack nor large.
pub(crate) fn bounded_copy(value: &Value, cap: usize) -> Value {
    fn copy(value: &Value, depth: usize, nodes: &mut usize, bytes: &mut usize) -> Value {
        *nodes += 1;
        if depth > MAX_DEPTH || *nodes > MAX_NODES {
            return Value::Null;
        }
        match value {
            Value::String(text) => {
                let kept = head_and_tail(text, *bytes);
                *bytes = bytes.saturating_sub(kept.len());
                kept.into()
            }
            Value::Array(items) => {
                items.iter().take(MAX_NODES).map(|item| copy(item, depth + 1, nodes, bytes)).collect()
            }
            Value::Object(map) => map
                .iter()
                .take(MAX_NODES)
                .map(|(key, value)| (head(key, MAX_KEY).to_owned(), copy(value, depth + 1, nodes, bytes)))
                .collect(),
            plain => plain.clone(),
        }
    }
    copy(value, 0, &mut 0, &mut { cap })
}

/// Whether a field that is there for errors says that there was none.
pub(crate) fn names_none(text: &str) -> bool {
    const NONE: [&str; 8] = ["", "none", "null", "nil", "n/a", "-", "no error", "no errors"];
    NONE.iter().any(|none| text.trim().eq_ignore_ascii_case(none))
}

/// Whether a text holds nothing: white space, byte-order marks, an empty list or object.
pub(crate) fn is_blank(text: &str) -> bool {
    let text = text.trim_matches(|ch: char| ch.is_whitespace() || ch == '\u{feff}');
    matches!(text, "" | "[]" | "{}")
}

/// A text that as a whole is a JSON object or list.
pub(crate) fn whole_json(text: &str) -> Option<Value> {
    let trimmed = text.trim();
    if !trimmed.starts_with(['{', '[', '"']) || is_blank(trimmed) {
        return None;
    }
    match serde_json::from_str(trimmed) {
        Ok(Value::String(inner)) => whole_json(&inner),
        Ok(value) => Some(value),
        Err(_) => None,
    }
}

/// Takes JSON objects out of a text: what is left, and the objects.
pub(crate) fn open_json(text: &str) -> (Cow<'_, str>, Vec<Value>) {
    let mut rest = String::new();
    let mut found = Vec::new();
    let mut from = 0;
    let mut at = 0;
    let mut tries = 0;
    while let Some(step) = text[at..].find('{') {
        let start = at + step;
        tries += 1;
        if found.len() >= MAX_EMBEDDED || tries > MAX_EMBEDDED * 4 {
            break;
        }
        let mut stream = serde_json::Deserializer::from_str(&text[start..]).into_iter::<Value>();
        match stream.next() {
            Some(Ok(value @ Value::Object(_))) if value.as_object().is_some_and(|map| !map.is_empty()) => {
                let end = start + stream.byte_offset();
                rest.push_str(&text[from..start]);
                rest.push(' ');
                found.push(value);
                from = end;
                at = end;
            }
            _ => at = start + 1,
        }
    }
    if found.is_empty() {
        return (Cow::Borrowed(text), found);
    }
    rest.push_str(&text[from..]);
    (Cow::Owned(rest), found)
}
