//! Error values of our own, written from how providers, tools and systems speak; each with the kinds that
//! a reader of its text accepts.
#![allow(clippy::unwrap_used)]

use backstop::failure::{PatternRegistry, Timestamp, classify};
use serde_json::Value;

/// Cases that are still named otherwise.
const ALLOWED: usize = 36;

#[test]
fn nearly_all_are_named_correctly_and_hardly_one_is_missed_or_invented() {
    let registry = PatternRegistry::new();
    let (mut wrong, mut alarms) = (vec![], vec![]);
    let cases: Vec<Value> =
        include_str!("data/corpus/own.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(cases.len() > 750);
    for case in &cases {
        let answer = serde_json::to_value(classify(&registry, &case["input"], Timestamp::default())).unwrap();
        let kinds = case["kinds"].as_array().unwrap();
        if kinds.contains(&answer["kind"]) {
            continue;
        }
        let line = format!("{}: {} ({}) for {:?}", case["id"], answer["kind"], answer["pattern"], kinds);
        let is_none = |kind: &Value| kind == "not_an_error" || kind == "cancelled";
        if is_none(&answer["kind"]) != is_none(&kinds[0]) {
            alarms.push(line.clone());
        }
        wrong.push(line);
    }
    assert!(wrong.len() <= ALLOWED, "{} of {}: {}", wrong.len(), cases.len(), wrong.join("\n"));
    assert!(alarms.len() <= 11, "{}", alarms.join("\n"));
}
