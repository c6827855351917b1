//! What the original's hooks saw and reported, as input for our detection.
//!
//! A vector's tool result goes through detection as it is, and what the hook made of it goes with the
//! hook's category, as to `recover`. Where the hook is right we agree, with the exceptions below.
#![allow(clippy::unwrap_used)]

use backstop::failure::{Category, Detection, Kind, PatternRegistry, Report, Timestamp};
use serde_json::{Value, json};

/// Tool results that the hook called failures and we do not, or not of that category, and why.
const RESULT_EDGES: &[(&str, &str)] = &[
    ("hook-002", "the system forbids the write: no other edit would help"),
    ("hook-003", "a result that says nothing of a failure is searched for fixed frames only (R1)"),
    ("hook-004", "the same, and that edit tool's frame is not known"),
    ("hook-014", "another agent's words are ordinary output (R1)"),
    ("hook-017", "the same"),
    ("hook-018", "the same"),
    ("hook-020", "a search that finds nothing has worked"),
    ("hook-021", "the same"),
    ("hook-022", "the same"),
    ("hook-023", "the same"),
    ("hook-027", "the same"),
    ("hook-028", "the same"),
    ("hook-041", "nothing was handed over that could be classified"),
];

/// Reports of a hook that we, not told the category, would have put in another one, and why.
const REPORT_EDGES: &[(&str, &str)] = &[
    ("hook-002", "as above"),
    ("hook-003", "the system forbids the write: no other edit would help"),
    ("hook-008", "a whole result, written as a text into an error's field, keeps its frame to itself"),
    ("hook-017", "no failed parse is told: a tool that failed"),
    ("hook-020", "as above, for all empty results"),
    ("hook-021", "the same"),
    ("hook-022", "the same"),
    ("hook-023", "the same"),
    ("hook-027", "the same"),
    ("hook-028", "the same"),
    ("hook-041", "as above"),
];

/// The vectors of hooks that report failures: unmarked, with a session, nothing switched off.
fn vectors() -> Vec<Value> {
    let all = include_str!("data/conformance/rolebox-hooks.jsonl").lines();
    all.map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|vector| vector.get("upstream_bug").is_none() && vector["input"]["flags"] == "all true")
        // A guard's own reminder is no report.
        .filter(|vector| vector["input"]["payload"]["tool"] != "webfetch")
        // Without a session the hook reminds and reports nothing.
        .filter(|vector| vector["engine_calls"][0].is_object() || vector["injected"].as_array().unwrap().is_empty())
        .filter(|vector| vector["input"]["event"] == "tool.execute.after" || vector["input"]["event"] == "event")
        .collect()
}

/// What the host showed the hook.
fn shown(input: &Value) -> Value {
    let payload = &input["payload"];
    if input["event"] == "event" {
        return payload["properties"]["error"].clone();
    }
    let output = payload.get("output_repeat").map_or_else(
        || payload["output"].clone(),
        |long| long["unit"].as_str().unwrap().repeat(usize::try_from(long["count"].as_u64().unwrap()).unwrap()).into(),
    );
    json!({"tool": payload["tool"], "output": output})
}

fn category(name: &str) -> Category {
    serde_json::from_value(name.into()).unwrap()
}

fn detect(value: &Value) -> Detection {
    PatternRegistry::new().detect_first(&Report::from_value(value.clone()), Timestamp::default())
}

/// Checks each vector but those at the edge, and that those at the edge do differ. How many hold.
fn check(edges: &[(&str, &str)], holds: impl Fn(&Value) -> bool) -> usize {
    let (mut held, mut wrong) = (0, Vec::new());
    for vector in vectors() {
        let id = vector["id"].as_str().unwrap();
        let edge = edges.iter().any(|(own, _)| *own == id);
        if holds(&vector) == edge {
            wrong.push(format!("{id}, {}: {vector}", if edge { "an edge that holds" } else { "does not hold" }));
        }
        held += usize::from(!edge);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    held
}

#[test]
fn tool_results_and_events_are_judged_as_the_hooks_judge_them() {
    let held = check(RESULT_EDGES, |vector| {
        let found = detect(&shown(&vector["input"]));
        match vector["engine_calls"][0]["category"].as_str() {
            Some(name) => found.failure().is_some_and(|error| error.category == category(name)),
            // A session without an id is the host's affair, not detection's.
            None if vector["input"]["payload"]["type"] == "session.error" => true,
            None => found == Detection::NotAFailure,
        }
    });
    assert_eq!(held, 14, "say so here when a vector begins to hold");
}

#[test]
fn what_the_hooks_report_is_of_their_category_when_they_name_it() {
    let registry = PatternRegistry::new();
    let mut basic = 0;
    for vector in vectors() {
        for call in vector["engine_calls"].as_array().unwrap() {
            let category = category(call["category"].as_str().unwrap());
            let report = Report::from_value(call["error"].clone());
            let error = registry.detect_category(&report, category, Timestamp::default()).into_failure().unwrap();
            assert_eq!(error.category, category, "{vector}");
            basic += usize::from(error.kind == Kind::Other && &*error.pattern == "basic");
        }
    }
    assert_eq!(basic, REPORT_EDGES.len(), "no match, no kind: a basic error");
}

#[test]
fn a_stop_by_the_user_is_no_failure_of_any_category() {
    let aborted = json!({"name": "MessageAbortedError", "data": {"message": "The operation was aborted."}});
    let report = Report::from_value(aborted);
    let found = PatternRegistry::new().detect_category(&report, Category::SessionError, Timestamp::default());
    assert_eq!(found, Detection::Cancelled, "a mistake of the original's that is not kept");
}

#[test]
fn what_the_hooks_report_is_mostly_of_their_category_when_they_do_not() {
    let held = check(REPORT_EDGES, |vector| {
        let calls = vector["engine_calls"].as_array().unwrap();
        calls.iter().all(|call| {
            let named = category(call["category"].as_str().unwrap());
            detect(&call["error"]).failure().is_some_and(|error| error.category == named)
        })
    });
    assert_eq!(held, 16, "say so here when a vector begins to hold");
}
