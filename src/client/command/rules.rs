use std::collections::BTreeMap;

use regex::{Regex, RegexBuilder};
use serde::Deserialize;
use serde_json::Value;

use super::JsonPointer;
use crate::failure::Kind;

/// What counts as a failure besides a non-zero exit code or a signal.
///
/// The default adds nothing: a zero exit is believed, and its output is not searched for words (R1).
#[derive(Debug, Clone, Default)]
pub struct FailureRules {
    /// The turn failed when one of these is found on either stream, whatever the exit code.
    pub failure_regex: Vec<Regex>,
    /// With any of these, a zero exit is believed only when one is found on stdout.
    pub success_regex: Vec<Regex>,
    /// A zero exit without a visible character on stdout is a failure.
    pub empty_is_failure: bool,
    /// The turn failed when one of these points to something in the last JSON value on stdout that has a
    /// place for it: neither null, false, zero nor empty.
    pub json_error: Vec<JsonPointer>,
    /// What certain exit codes say.
    pub exit_map: BTreeMap<i32, ExitMeaning>,
    /// How to read the object in which the agent itself says how the turn ended.
    pub result: Option<ResultRules>,
}

impl FailureRules {
    /// Compiles a pattern; `^` and `$` match at lines, `\A` and `\z` at the ends of the text.
    ///
    /// # Errors
    ///
    /// The pattern is invalid or too large.
    pub fn pattern(text: &str) -> Result<Regex, regex::Error> {
        RegexBuilder::new(text).multi_line(true).build()
    }

    /// These rules and more of them; where both give one answer, that of `more` holds.
    #[must_use]
    pub fn and(mut self, more: Self) -> Self {
        self.failure_regex.extend(more.failure_regex);
        self.success_regex.extend(more.success_regex);
        self.empty_is_failure |= more.empty_is_failure;
        self.json_error.extend(more.json_error);
        self.exit_map.extend(more.exit_map);
        self.result = more.result.or(self.result);
        self
    }
}

/// What an exit code says.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ExitMeaning {
    /// The kind of failure.
    pub kind: Option<Kind>,
    /// The HTTP status behind it.
    pub status: Option<u16>,
    /// A person stopped the agent: never recovered.
    pub cancelled: bool,
}

/// How to read the object in which an agent says how the turn ended.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResultRules {
    /// What the object must hold; the last such object on stdout is the result.
    #[serde(rename = "where")]
    pub holds: BTreeMap<JsonPointer, Value>,
    /// Any of these says that the turn failed.
    #[serde(default)]
    pub failed: Vec<Match>,
    /// Any of these says that a person stopped it.
    #[serde(default)]
    pub cancelled: Vec<Match>,
    /// Where the answer is; an empty one is a failure.
    #[serde(default)]
    pub answer: Option<JsonPointer>,
    /// Where the facts of a failure are.
    #[serde(default)]
    pub facts: FactPointers,
    /// What the object says of the kind; the first match counts.
    #[serde(default)]
    pub kinds: Vec<KindHint>,
}

impl ResultRules {
    /// The result among the values that a command printed.
    pub(super) fn find<'v>(&self, values: &'v [Value]) -> Option<&'v Value> {
        let holds = |value: &Value| self.holds.iter().all(|(at, wanted)| at.find(value) == Some(wanted));
        values.iter().rev().find(|value| holds(value))
    }

    /// What it says of the kind.
    pub(super) fn kind(&self, result: &Value) -> Option<&Kind> {
        self.kinds.iter().find(|hint| hint.at.find(result) == Some(&hint.equals)).map(|hint| &hint.kind)
    }
}

/// A value at a place.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Match {
    /// The place.
    pub at: JsonPointer,
    /// The value.
    pub equals: Value,
}

impl Match {
    pub(super) fn holds(&self, value: &Value) -> bool {
        self.at.find(value) == Some(&self.equals)
    }
}

/// A value at a place that tells the kind of failure.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KindHint {
    /// The place.
    pub at: JsonPointer,
    /// The value.
    pub equals: Value,
    /// The kind that it means.
    pub kind: Kind,
}

/// Where the facts of a failure are in a result.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FactPointers {
    /// The agent's own words; the first place that holds a text counts.
    pub message: Vec<JsonPointer>,
    /// The HTTP status.
    pub status: Option<JsonPointer>,
    /// The provider's error type.
    #[serde(rename = "type")]
    pub error_type: Option<JsonPointer>,
    /// The agent's or provider's error code.
    pub code: Option<JsonPointer>,
}
