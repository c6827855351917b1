//! Detection is total and bounded: any value gives an answer, the same one every time.
#![allow(clippy::unwrap_used)]

use backstop::failure::{
    Category, Detection, MAX_MESSAGE, PatternRegistry, RecoveryError, Report, Source, Timestamp, fence, mask,
};
use proptest::prelude::*;
use serde_json::Value;

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

/// Words that steer detection, between arbitrary text.
fn text() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
        "429 ",
        "{\"error\":",
        "[object Object]",
        "\u{1b}[31m",
        "retry-after: 1e308",
        "\"}",
        "Error: ",
        "│",
        "\u{0}",
        "prompt is too long: 99999999999999999999 > 1",
        "timed out",
        "tool not found",
        "{\\\"a\\\":",
        "try again in 9",
    ]);
    prop::collection::vec(prop_oneof![any::<String>(), known.prop_map(str::to_owned)], 0..6)
        .prop_map(|parts| parts.concat())
}

fn key() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
        "error",
        "message",
        "code",
        "status",
        "type",
        "name",
        "cause",
        "stderr",
        "stdout",
        "exit_code",
        "output",
        "headers",
        "signal",
        "content",
        "choices",
        "finish_reason",
        "role",
        "is_error",
        "retry_after",
        "level",
        "verdict",
    ]);
    prop_oneof![3 => known.prop_map(str::to_owned), 1 => any::<String>()]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        (0_u16..700).prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 48, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((key(), inner.clone()), 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            // JSON inside a string.
            inner.prop_map(|value| Value::String(value.to_string())),
        ]
    })
}

fn assert_sound(error: &RecoveryError) {
    assert!(error.message.len() <= MAX_MESSAGE);
    assert!(!error.message.contains("[object Object]"));
    assert!(!error.message.chars().any(|ch| ch.is_control() && ch != '\n'));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn any_value_gives_one_bounded_answer(value in value()) {
        let registry = PatternRegistry::new();
        let report = Report::from_value(value);
        let first = registry.detect_first(&report, NOW);
        prop_assert_eq!(&registry.detect_explained(&report, NOW).0, &first);
        let all = registry.detect(&report, NOW);
        prop_assert_eq!(all.first(), first.failure());
        all.iter().for_each(assert_sound);
        for category in Category::ALL {
            let found = registry.detect_category(&report, *category, NOW);
            prop_assert!(found != Detection::NotAFailure);
            found.failure().into_iter().for_each(assert_sound);
        }
    }

    #[test]
    fn any_bytes_give_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..1024), code in any::<i32>()) {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let report = Report::text(text.clone()).with_exit_code(code).with_source(Source::Command);
        let registry = PatternRegistry::new();
        prop_assert_eq!(registry.detect_first(&report, NOW), registry.detect_first(&report, NOW));
        let value = serde_json::json!({"exit_code": code, "stdout": text, "stderr": text});
        if let Some(error) = registry.detect_first(&Report::from_value(value), NOW).failure() {
            assert_sound(error);
        }
    }

    #[test]
    fn no_text_closes_its_fence(text in text()) {
        let fenced = fence(&backstop::Kind::Other, &text);
        let fences = fenced.matches("```").count();
        prop_assert!(fences == 0 || fences == 2 && fenced.ends_with("\n```"));
    }

    #[test]
    fn masking_twice_changes_nothing_more(text in text()) {
        let once = mask(&text).into_owned();
        prop_assert_eq!(mask(&once), once.clone());
    }
}

#[test]
fn deep_nesting_and_long_text_are_bounded() {
    let mut deep = Value::from("timed out");
    for _ in 0..2000 {
        // Not by `json!`, which serialises what it is given, and so recurses.
        deep = Value::Object([("error".to_owned(), deep)].into_iter().collect());
    }
    let registry = PatternRegistry::new();
    let report = Report::new(deep);
    assert!(registry.detect_first(&report, NOW).failure().is_some());
    // Dropping such a value recurses too; that is the caller's, so hand it over piece by piece.
    let mut value = report.value;
    while let Value::Object(mut map) = value {
        value = map.remove("error").unwrap();
    }
    let long = format!("Error: {} timed out", "x\u{e9} {\"a\": ".repeat(300_000));
    let error = registry.detect_first(&Report::text(long), NOW).into_failure().unwrap();
    assert_eq!(error.kind, backstop::Kind::Timeout);
    assert_sound(&error);
}
