//! The vectors of the original's chain executor (`tests/data/conformance/rolebox-chain.jsonl`, kind
//! `executor`): scripted strategies, with nobody to redo the turn.
//!
//! They count attempts from 0, we from 1; wording is our own. Compared are the verdict, the calls with
//! their attempt and settings, and the sleeps.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::super::fixture::{START, chain, failure, plan_of, session};
use super::super::{Execute, Hands, Moment, RecoveryChainExecutor};
use crate::failure::{Category, Kind, RecoveryError};
use crate::policy::{Answer, Limits, Step, Turn, Verdict};

#[derive(Debug, Clone, PartialEq)]
struct Outcome {
    status: String,
    /// Strategy and attempt, as `a 1`.
    calls: Vec<String>,
    sleeps_ms: Vec<f64>,
}

fn outcome<const C: usize, const S: usize>(status: &str, calls: [&str; C], sleeps_ms: [f64; S]) -> Outcome {
    Outcome { status: status.into(), calls: calls.map(String::from).into(), sleeps_ms: sleeps_ms.into() }
}

fn of_one(status: &str, calls: usize, sleeps: usize, ms: f64) -> Outcome {
    let calls = (1..=calls).map(|attempt| format!("a {attempt}")).collect();
    Outcome { status: status.into(), calls, sleeps_ms: vec![ms; sleeps] }
}

/// Our answer where the original's is a mistake.
fn better_answers() -> BTreeMap<&'static str, Outcome> {
    BTreeMap::from([
        // Something can redo the turn: it is redone after the delay, and what works is not asked again.
        ("chain-009", outcome("recovered", ["a 1", "redo"], [10.0])),
        // No sleep after the last allowed attempt where no redo follows (R7).
        ("chain-017", of_one("exhausted", 3, 2, 5.0)),
        ("chain-018", of_one("exhausted", 1, 0, 5.0)),
        ("chain-022", of_one("exhausted", 3, 2, 1.0)),
        ("chain-030", of_one("exhausted", 10, 9, 1.0)),
        // A limit of 2.5 is refused when it is loaded; from a host's code it is 2.
        ("chain-027", of_one("exhausted", 2, 1, 1.0)),
        // So is NaN, which leaves the default of 10.
        ("chain-028", of_one("exhausted", 10, 9, 1.0)),
        // The closing abort, under its real name, still speaks (R7).
        ("chain-026", outcome("aborted", ["a 1", "abort 1"], [])),
        // The same; but a thrown value is a typed answer here, its words never `[object Object]`.
        ("chain-040", outcome("recovered", ["a 1", "b 1"], [])),
        // An unusable answer counts as next_strategy (R9).
        ("chain-041", outcome("recovered", ["a 1", "b 1"], [])),
        ("chain-042", outcome("recovered", ["a 1", "b 1"], [])),
        // No callback stands between an answer and the verdict: what listens gets messages.
        ("chain-049", outcome("recovered", ["a 1"], [])),
    ])
}

/// Where our types or rules answer at the edge, and why.
fn at_the_edge() -> BTreeMap<&'static str, Outcome> {
    BTreeMap::from([
        // A span is not negative and not NaN: nothing to wait for.
        ("chain-012", of_one("recovered", 2, 0, 0.0)),
        ("chain-013", of_one("recovered", 2, 0, 0.0)),
        // Times are whole milliseconds: 0.4 ms is none.
        ("chain-014", of_one("recovered", 2, 0, 0.0)),
        // A limit of -3 is refused when it is loaded; the least there is is 0, and does the same.
        ("chain-020", of_one("exhausted", 0, 0, 0.0)),
        // So is an infinite one; the largest there is does the same.
        ("chain-029", of_one("recovered", 12, 11, 1.0)),
        // A chain left empty is refused when it is loaded; run all the same, it is exhausted at once.
        ("chain-031", of_one("exhausted", 0, 0, 0.0)),
        ("chain-032", of_one("exhausted", 0, 0, 0.0)),
        ("chain-047", of_one("exhausted", 0, 0, 0.0)),
        // A chain that is switched off opens no episode.
        ("chain-045", of_one("unhandled", 0, 0, 0.0)),
        ("chain-048", of_one("unhandled", 0, 0, 0.0)),
    ])
}

/// Strategies that follow a script: one action for each call, the last one repeats.
struct Script {
    actions: BTreeMap<String, Vec<Value>>,
    asked: BTreeMap<String, usize>,
    calls: Vec<String>,
    configs: Vec<Value>,
    sleeps_ms: Vec<f64>,
    redoes: bool,
}

impl Hands for Script {
    fn execute(&mut self, attempt: &Execute, _: &RecoveryError) -> Answer {
        let name = attempt.plan.strategy.to_string();
        self.calls.push(format!("{name} {}", attempt.attempt));
        self.configs.push(Value::Object(attempt.plan.config.as_map().clone()));
        let actions = &self.actions[&name];
        let turn = self.asked.entry(name).or_default();
        let action = &actions[(*turn).min(actions.len() - 1)];
        *turn += 1;
        answer(action)
    }

    fn sleep(&mut self, delay: Duration) {
        self.sleeps_ms.push(delay.as_secs_f64() * 1_000.0);
    }

    fn can_redo(&self) -> bool {
        self.redoes
    }

    fn redo(&mut self, _: &Turn) -> Result<(), Option<Arc<RecoveryError>>> {
        self.calls.push("redo".into());
        Ok(())
    }
}

fn answer(action: &Value) -> Answer {
    let text = action["reason"].as_str().or_else(|| action["message"].as_str()).unwrap_or_default();
    match action["status"].as_str() {
        Some("success") => Answer::success(text),
        Some("retry") => {
            let ms = action["delayMs"].as_f64().unwrap_or_default();
            Answer::retry(Duration::try_from_secs_f64(ms / 1_000.0).unwrap_or_default(), text)
        }
        Some("next_strategy") => Answer::next_strategy(text),
        Some("abort") => Answer::abort(text),
        // What throws, returns nothing or an unknown word: the runner makes it this (R9).
        _ => Answer::next_strategy("unusable answer"),
    }
}

struct Vector(Value);

impl Vector {
    fn all() -> impl Iterator<Item = Self> {
        include_str!("../../../../tests/data/conformance/rolebox-chain.jsonl")
            .lines()
            .map(|line| Self(serde_json::from_str(line).expect("each line is JSON")))
            .filter(|vector| vector.0["kind"] == "executor")
    }

    fn id(&self) -> &str {
        self.0["id"].as_str().expect("each vector has an id")
    }

    fn list(&self, pointer: &str) -> &[Value] {
        self.0.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    /// What the original did, in our terms.
    fn original(&self) -> Outcome {
        let call = |call: &Value| {
            format!("{} {}", call["strategy"].as_str().unwrap_or_default(), call["attempt"].as_u64().unwrap_or(99) + 1)
        };
        Outcome {
            status: self.0["outcome"]["status"].as_str().unwrap_or_default().into(),
            calls: self.list("/calls").iter().map(call).collect(),
            sleeps_ms: self.list("/sleeps_ms").iter().filter_map(Value::as_f64).collect(),
        }
    }

    fn max_total_attempts(&self) -> u32 {
        match &self.0["input"]["max_total_attempts"] {
            Value::Number(limit) => limit.as_f64().map_or(0, |limit| limit as u32),
            limit if limit == "Infinity" => u32::MAX,
            _ => Limits::default().max_total_attempts,
        }
    }

    /// What we do; unknown strategies were skipped when the chain was loaded (R14).
    fn ours(&self, redoes: bool) -> (Outcome, Vec<Value>) {
        let mut scripts = self.0["input"]["scripts"].as_object().cloned().unwrap_or_default();
        scripts.extend(scripts.get("b").cloned().map(|script| ("abort".to_owned(), script)));
        let closes = self.id() == "chain-026";
        let known = |step: &&Value| scripts.contains_key(step["strategy"].as_str().unwrap_or_default());
        let step = |step: &Value| {
            let settings = step["config"].as_object().cloned().unwrap_or_default();
            let name = step["strategy"].as_str().unwrap_or_default();
            let bare = Step::new(if closes && name == "b" { "abort" } else { name });
            settings.into_iter().fold(bare, |step, (name, value)| step.with(name, value))
        };
        let mut written = chain(Category::SessionError, &[]);
        written.steps = self.list("/input/chain").iter().filter(known).map(step).collect();
        written.enabled = self.0["input"]["enabled"].as_bool().unwrap_or(true);
        let limits = Limits { max_total_attempts: self.max_total_attempts(), ..Limits::default() };
        let actions = |script: &Value| script.as_array().cloned().unwrap_or_default();
        let mut hands = Script {
            actions: scripts.iter().map(|(name, script)| (name.clone(), actions(script))).collect(),
            asked: BTreeMap::new(),
            calls: vec![],
            configs: vec![],
            sleeps_ms: vec![],
            redoes,
        };
        let at = Moment { now: START, seed: 7 };
        let error = Arc::new(failure(Kind::Other));
        let ended = RecoveryChainExecutor::new(plan_of([written], limits)).run(session(), error, at, &mut hands);
        let status = ended.verdict.name().into();
        (Outcome { status, calls: hands.calls, sleeps_ms: hands.sleeps_ms }, hands.configs)
    }
}

#[test]
fn the_originals_chains_run_as_they_did_and_better_where_they_erred() {
    let (better, edge) = (better_answers(), at_the_edge());
    let (mut held, mut improved, mut at_edge) = (0, 0, 0);
    for vector in Vector::all() {
        let id = vector.id();
        let is_mistake = vector.0.get("upstream_bug").is_some();
        let (ours, configs) = vector.ours(id == "chain-009");
        match (better.get(id), edge.get(id)) {
            (Some(expected), None) => {
                assert!(is_mistake, "{id}: the original made no mistake");
                assert_eq!(&ours, expected, "{id}");
                improved += 1;
            }
            (None, Some(expected)) => {
                assert!(!is_mistake, "{id}: a mistake is no edge");
                assert_eq!(&ours, expected, "{id}");
                at_edge += 1;
            }
            _ => {
                assert!(!is_mistake, "{id}: a mistake of the original needs our answer");
                assert_eq!(ours, vector.original(), "{id}");
                let theirs: Vec<Value> = vector.list("/calls").iter().map(|call| call["config"].clone()).collect();
                assert_eq!(json!(configs), json!(theirs), "{id}: settings reach the strategy unchanged");
                held += 1;
            }
        }
    }
    assert_eq!((held, improved, at_edge), (30, 12, 10));
}

#[test]
fn an_executor_says_why_no_chain_ran() {
    let written = crate::policy::Chain { enabled: false, ..chain(Category::SessionError, &["a"]) };
    let plan = plan_of([written], Limits::default());
    let mut hands = Script {
        actions: BTreeMap::new(),
        asked: BTreeMap::new(),
        calls: vec![],
        configs: vec![],
        sleeps_ms: vec![],
        redoes: false,
    };
    let at = Moment { now: START, seed: 7 };
    let ended = RecoveryChainExecutor::new(plan).run(session(), Arc::new(failure(Kind::Other)), at, &mut hands);
    assert_eq!(ended.verdict, Verdict::Unhandled(crate::policy::Unhandled::Disabled));
    assert_eq!((ended.executions, hands.calls.len()), (0, 0));
}
