//! The labelled corpus: how many real error values are named correctly (lenient, as its rules say).
#![allow(clippy::unwrap_used)]

use std::sync::LazyLock;

use backstop::failure::{PatternRegistry, Timestamp, classify};
use serde_json::Value;

struct Case {
    id: String,
    expected: Value,
    also_ok: Value,
    answer: Value,
}

impl Case {
    /// Whether the answer's field is the expected one, or one that a lenient reader accepts.
    fn right(&self, field: &str) -> bool {
        let got = &self.answer[field];
        let also = self.also_ok[field].as_array();
        *got == self.expected[field] || also.is_some_and(|also| also.contains(got))
    }

    fn labels(&self, field: &str) -> bool {
        self.expected.get(field).is_some()
    }
}

static CASES: LazyLock<Vec<Case>> = LazyLock::new(cases);

fn cases() -> Vec<Case> {
    let registry = PatternRegistry::new();
    include_str!("data/corpus/dev.jsonl")
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|case| {
            let tags = case["tags"].as_array();
            !tags.is_some_and(|tags| tags.iter().any(|tag| tag == "ambiguous" || tag == "undetectable"))
        })
        .map(|case| Case {
            id: case["id"].as_str().unwrap().to_owned(),
            expected: case["expected"].clone(),
            also_ok: case["also_ok"].clone(),
            answer: serde_json::to_value(classify(&registry, &case["input"], Timestamp::default())).unwrap(),
        })
        .collect()
}

/// Asserts that at most `allowed` of the chosen cases are wrong in this field.
fn assert_wrong_at_most(allowed: usize, field: &str, chosen: impl Fn(&Case) -> bool) {
    let cases: Vec<&Case> = CASES.iter().filter(|case| case.labels(field) && chosen(case)).collect();
    let wrong: Vec<String> = cases
        .iter()
        .filter(|case| !case.right(field))
        .map(|case| format!("{}: {} for {}", case.id, case.answer[field], case.expected[field]))
        .collect();
    assert!(wrong.len() <= allowed, "{field}: {} of {} wrong: {}", wrong.len(), cases.len(), wrong.join("; "));
}

#[test]
fn categories_kinds_and_retryability_are_named_correctly() {
    for (field, allowed) in [("category", 3), ("kind", 5), ("retryable", 4)] {
        assert_wrong_at_most(allowed, field, |_| true);
    }
}

#[test]
fn who_is_at_fault_how_bad_and_what_to_do_are_named_correctly() {
    for (field, allowed) in [("domain", 7), ("severity", 9), ("recoverable", 3), ("suggested_action", 15)] {
        assert_wrong_at_most(allowed, field, |_| true);
    }
}

#[test]
fn stated_waits_and_token_numbers_are_read_and_none_is_invented() {
    for (field, allowed) in [("retry_after_ms", 1), ("limit_tokens", 2), ("actual_tokens", 2)] {
        assert_wrong_at_most(allowed, field, |case| !case.expected[field].is_null());
        assert_wrong_at_most(1, field, |case| case.expected[field].is_null());
    }
}

#[test]
fn what_is_no_failure_raises_no_alarm() {
    assert_wrong_at_most(1, "category", |case| case.expected["category"] == "none");
}

#[test]
fn hardly_any_failure_is_missed() {
    let missed: Vec<&str> = CASES
        .iter()
        .filter(|case| case.expected["category"] != "none" && case.answer["category"] == "none")
        .map(|case| case.id.as_str())
        .collect();
    assert!(missed.len() <= 2, "{missed:?}");
}
