//! The vectors of the original's strategies (`tests/data/conformance/rolebox-strategies.jsonl`): one
//! call of one strategy each, with nothing that could redo the turn.
//!
//! They count attempts from 0, we from 1; our wording is our own. Compared are the status, the delay
//! without jitter, the number of injections and the client's calls.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::registry::Strategy;
use super::testing::{Recorder, session, trial};
use super::{Delivery, StrategyRegistry, carry, delivery};
use crate::failure::Kind;
use crate::policy::Answer;

/// What is compared of a call.
#[derive(Debug, Clone, PartialEq)]
struct Outcome {
    status: &'static str,
    delay_ms: f64,
    injections: usize,
    calls: Vec<String>,
}

const fn outcome(status: &'static str, delay_ms: f64, injections: usize) -> Outcome {
    Outcome { status, delay_ms, injections, calls: vec![] }
}

fn calling(status: &'static str, injections: usize, call: &str) -> Outcome {
    Outcome { calls: vec![call.to_owned()], ..outcome(status, 0.0, injections) }
}

/// Our answer where the original's is a mistake.
fn better_answers() -> BTreeMap<&'static str, Outcome> {
    let moved_on = || outcome("next_strategy", 0.0, 0);
    let truncated = || outcome("retry", 0.0, 1);
    let reminded = || outcome("retry", 1_000.0, 1);
    BTreeMap::from([
        // A negative factor is the default one.
        ("strategy-013", outcome("retry", 2_000.0, 0)),
        // Numbers given as texts, and texts that are no numbers, are the default: 2 retries of 2 s.
        ("strategy-017", moved_on()),
        ("strategy-018", moved_on()),
        ("strategy-019", outcome("retry", 2_000.0, 0)),
        // No wait is over the cap of 30 s.
        ("strategy-020", outcome("retry", 30_000.0, 0)),
        ("strategy-021", outcome("retry", 30_000.0, 0)),
        // An empty or mistyped reminder is the one that fits the kind.
        ("strategy-029", reminded()),
        ("strategy-030", reminded()),
        // Ratios that cut nothing, less than nothing or everything are the default.
        ("strategy-039", truncated()),
        ("strategy-040", truncated()),
        ("strategy-041", truncated()),
        ("strategy-042", truncated()),
        // What is to be kept reaches the client.
        ("strategy-048", calling("success", 0, "compact todos")),
        // A compaction counts only if the client says that it worked.
        ("strategy-049", calling("next_strategy", 0, "compact")),
        ("strategy-050", calling("next_strategy", 0, "compact")),
        // What the client lacks is unsupported; here the status is the same.
        ("strategy-053", moved_on()),
        // The client gets the model as it was written: whether and where to split is its business.
        ("strategy-058", calling("success", 0, "prompt mini-2")),
        ("strategy-059", calling("success", 0, "prompt acme/mini-2")),
        ("strategy-061", calling("next_strategy", 0, "prompt mini-2")),
        // A number is no model's name.
        ("strategy-062", moved_on()),
        // One summary, never retried for ever; where nobody makes it, the model is told to.
        ("strategy-064", outcome("success", 0.0, 1)),
        ("strategy-065", moved_on()),
        ("strategy-070", outcome("success", 0.0, 1)),
        // Without a model of its own, the session's.
        ("strategy-066", calling("success", 0, "prompt")),
        ("strategy-067", calling("success", 0, "prompt mini-2")),
        ("strategy-068", calling("success", 0, "prompt")),
        // A summary that the client failed to make is a failed remedy.
        ("strategy-069", calling("next_strategy", 0, "prompt mini-2")),
        // A message that is an object is the default one; what is injected is text.
        ("strategy-075", outcome("abort", 0.0, 1)),
        // The same, but of the failure only its kind is injected.
        ("strategy-077", outcome("abort", 0.0, 1)),
    ])
}

/// Where our types answer at the edge, and why.
fn at_the_edge() -> BTreeMap<&'static str, Outcome> {
    BTreeMap::from([
        // 2.5 retries: a number of attempts is whole. A file that says so is refused when it is loaded;
        // from a host's code it is cut to 2, so the third attempt moves on.
        ("strategy-022", outcome("next_strategy", 0.0, 0)),
    ])
}

fn client_of(name: &str) -> Recorder {
    match name {
        "none" | "null" | "empty_object" | "session_without_methods" | "compact_not_a_function" => Recorder::default(),
        "compact_ok" => Recorder::able_to(["compact"]),
        "compact_returns_false" | "compact_returns_error" | "compact_rejects" | "compact_throws" => {
            Recorder::default().failing_at(["compact"])
        }
        "prompt_ok" => Recorder::able_to(["prompt"]),
        "prompt_rejects" | "prompt_returns_error" => Recorder::default().failing_at(["prompt"]),
        other => panic!("no client is called {other}"),
    }
}

struct Vector(Value);

impl Vector {
    fn all() -> Vec<Self> {
        include_str!("../../tests/data/conformance/rolebox-strategies.jsonl")
            .lines()
            .map(|line| Self(serde_json::from_str(line).expect("each line is JSON")))
            .collect()
    }

    fn text(&self, pointer: &str) -> &str {
        self.0.pointer(pointer).and_then(Value::as_str).unwrap_or_else(|| panic!("no {pointer} in {}", self.0))
    }

    fn list(&self, pointer: &str) -> &[Value] {
        self.0.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    fn is_upstream_bug(&self) -> bool {
        self.0.get("upstream_bug").is_some()
    }

    /// What the original did, in our terms.
    fn original(&self) -> Outcome {
        let status = ["success", "retry", "next_strategy", "abort", "escalate"];
        Outcome {
            status: status.into_iter().find(|word| *word == self.text("/status")).expect("a status that we know"),
            delay_ms: self.0["delay_ms"].as_f64().unwrap_or_default(),
            injections: self.list("/injected").len(),
            calls: self.list("/api_calls").iter().map(original_call).collect(),
        }
    }

    /// What we do.
    async fn ours(&self) -> Outcome {
        let mut settings: Map<String, Value> = self.0["input"]["step_config"].as_object().cloned().unwrap_or_default();
        settings.insert("jitter".into(), json!(false));
        let number = self.0["input"]["attempt"].as_u64().and_then(|n| u32::try_from(n + 1).ok()).expect("a number");
        let attempt = trial(Value::Object(settings)).number(number).attempt();
        let client = client_of(self.text("/input/client"));

        let Some(Strategy::Computes(strategy)) = StrategyRegistry::new().get(self.text("/input/strategy")) else {
            panic!("{} is no built-in strategy", self.text("/input/strategy"));
        };
        let answer = strategy.decide(&attempt);
        let mut ours = outcome(answer.status(), 0.0, attempt.take_injections().len());
        if let Answer::Success { remedy: Some(remedy), .. } | Answer::Retry { remedy: Some(remedy), .. } = &answer {
            let by_client = carry(&client, &session(), remedy, &Kind::Other, false).await;
            match delivery(remedy, Some(&by_client), false) {
                Delivery::Done => {}
                Delivery::OnTurn(instruction) => ours.injections += usize::from(instruction.is_some()),
                Delivery::Failed(_) => ours.status = "next_strategy",
            }
        }
        if let Answer::Retry { delay, .. } = &answer {
            ours.delay_ms = delay.as_secs_f64() * 1_000.0;
        }
        ours.calls = client.calls();
        ours
    }
}

fn original_call(call: &Value) -> String {
    let model = call.pointer("/args/body/model/modelID").and_then(Value::as_str).unwrap_or_default();
    let method = if call["call"] == "promptAsync" { "prompt" } else { "compact" };
    format!("{method} {model}").trim_end().to_owned()
}

#[tokio::test]
async fn the_originals_strategies_behave_as_they_did_and_better_where_they_erred() {
    let (better, edge) = (better_answers(), at_the_edge());
    let (mut held, mut improved, mut at_edge) = (0, 0, 0);
    for vector in Vector::all() {
        let id = vector.text("/id");
        let (expected, counter) = match (better.get(id), edge.get(id)) {
            (Some(ours), None) => {
                assert!(vector.is_upstream_bug(), "{id}: the original made no mistake");
                (ours.clone(), &mut improved)
            }
            (None, Some(ours)) => (ours.clone(), &mut at_edge),
            _ => {
                assert!(!vector.is_upstream_bug(), "{id}: a mistake of the original needs our answer");
                (vector.original(), &mut held)
            }
        };
        assert_eq!(vector.ours().await, expected, "{id}: {}", vector.0["input"]);
        *counter += 1;
    }
    assert_eq!((held, improved, at_edge), (47, 29, 1));
}
