//! The JSON Schema and the parser accept and refuse the same documents (warnings accept).
#![allow(clippy::unwrap_used)]

use backstop::RecoveryConfig;
use backstop::policy::config::{ConfigBuilder, schema, schema_with};
use jsonschema::Validator;
use proptest::prelude::*;
use serde_json::{Value, json};

fn validator() -> Validator {
    jsonschema::validator_for(&schema()).unwrap()
}

fn parser_accepts(document: &Value) -> bool {
    // JSON is YAML: what a schema sees is what the parser reads.
    RecoveryConfig::parse("fixture", &document.to_string()).is_ok()
}

#[test]
fn the_schema_is_a_schema() {
    assert!(jsonschema::meta::is_valid(&schema()));
}

#[test]
fn accepted_by_both() {
    let validator = validator();
    for document in [
        json!(null),
        json!({}),
        json!({"name": "reviewer", "tools": [1]}),
        json!({"recovery": null}),
        json!({"recovery": true}),
        json!({"recovery": false}),
        json!({"recovery": {}, "enabled": "ignored beside the block"}),
        json!({"enabled": null, "max_total_attempts": 0, "max_wait_ms": 3.0}),
        json!({"maxTotalAttempts": "unknown keys pass"}),
        json!({"durability": "behind", "known_strategies": "mine", "edit_error": ["mine"]}),
        json!({"edit_error": false, "json_error": true, "tool_pair": null}),
        json!({"edit_error": {}, "json_error": {"enabled": false, "other": 1}}),
        json!({"edit_error": ["retry", "unknown"], "json_error": {"chain": [{"strategy": "abort"}]}}),
        json!({"kinds": {"auth": ["escalate"], "own": {"chain": ["abort"]}, "tls": false, "timeout": null}}),
        json!({"session_error": [{"strategy": "retry", "max_retries": 3, "config": {"backoff_factor": 1.5, "x": 1}}]}),
        json!({"session_error": ["abort", {"strategy": "unknown", "config": {"anything": [1]}}]}),
        json!({"session_error": [{"strategy": "compact", "config": {"preserve": "todos"}}]}),
        json!({"session_error": [{"strategy": "fallback_model", "config": {"models": ["a", "b/c"], "timeout_ms": 5}}]}),
        json!({"session_error": [{"strategy": "retry", "config": null}]}),
        json!({"patterns": [{"name": "a", "kind": "auth", "regex": "x"}, {"name": "a", "kind": "auth", "regex": "y"}]}),
        json!({"patterns": [{"name": "a", "category": "tool_pair", "kind": "own", "fields": {"a.b": 1, "c": null}}]}),
        json!({"patterns": []}),
    ] {
        assert!(parser_accepts(&document), "the parser refuses {document}");
        assert!(validator.is_valid(&document), "the schema refuses {document}");
    }
}

#[test]
fn refused_by_both() {
    let validator = validator();
    for document in [
        json!([]),
        json!("off"),
        json!({"recovery": "off"}),
        json!({"recovery": []}),
        json!({"enabled": 0}),
        json!({"recovery": {"enabled": "false"}}),
        json!({"max_total_attempts": -1}),
        json!({"max_total_attempts": 2.5}),
        json!({"max_total_attempts": "4"}),
        json!({"max_total_attempts": 18_446_744_073_709_551_615u64}),
        json!({"strategies_at_once": 0}),
        json!({"durability": "maybe"}),
        json!({"known_strategies": [""]}),
        json!({"known_strategies": 5}),
        json!({"edit_error": "abort"}),
        json!({"edit_error": []}),
        json!({"edit_error": {"chain": {}}}),
        json!({"edit_error": {"chain": []}}),
        json!({"edit_error": {"enabled": "no"}}),
        json!({"edit_error": ["teleport"]}),
        json!({"edit_error": [{"strategy": "teleport"}]}),
        json!({"edit_error": ["abort", 5]}),
        json!({"edit_error": ["abort", null]}),
        json!({"edit_error": ["abort", ""]}),
        json!({"edit_error": ["abort", {}]}),
        json!({"edit_error": [{"strategy": null}, "abort"]}),
        json!({"edit_error": vec!["retry"; 300]}),
        json!({"kinds": []}),
        json!({"kinds": {"own": [{"strategy": "retry", "config": {"max_retries": -1}}]}}),
        json!({"session_error": [{"strategy": "retry", "config": [1]}]}),
        json!({"session_error": [{"strategy": "retry", "max_retries": "x"}]}),
        json!({"session_error": [{"strategy": "retry", "config": {"backoff_factor": 0.5}}]}),
        json!({"session_error": [{"strategy": "truncate", "config": {"target_ratio": 0}}]}),
        json!({"session_error": [{"strategy": "compact", "config": {"preserve": ["a", 1]}}]}),
        json!({"session_error": ["abort", {"strategy": "unknown", "config": {"timeout_ms": 0}}]}),
        json!({"session_error": ["abort", {"strategy": "unknown", "timeout_ms": -5}]}),
        json!({"session_error": [{"strategy": "abort", "<<": {}}]}),
        json!({"<<": {}, "enabled": true}),
        json!({"patterns": {}}),
        json!({"patterns": [{"name": "a", "regex": "x"}]}),
        json!({"patterns": [{"name": "a", "kind": "auth"}]}),
        json!({"patterns": [{"name": "a", "kind": "auth", "fields": {}}]}),
        json!({"patterns": [{"name": "a", "kind": "auth", "fields": {"a": []}}]}),
        json!({"patterns": [{"name": "a", "category": "other", "regex": "x"}]}),
        json!({"patterns": [{"kind": "auth", "regex": "x"}]}),
        json!({"patterns": [{"name": "a", "kind": "auth", "regex": "x", "priority": 5_000}]}),
    ] {
        assert!(!parser_accepts(&document), "the parser accepts {document}");
        assert!(!validator.is_valid(&document), "the schema accepts {document}");
    }
}

#[test]
fn strategies_that_the_host_registers_are_known_to_both() {
    let document = json!({"edit_error": ["mine"]});
    assert!(!validator().is_valid(&document));
    assert!(jsonschema::validator_for(&schema_with(["mine"])).unwrap().is_valid(&document));
    assert!(ConfigBuilder::new().yaml("x", document.to_string()).known_strategy("mine").build().is_ok());
}

/// Values that are right in one place and wrong in another.
fn scalar() -> impl Strategy<Value = Value> {
    prop::sample::select(vec![
        json!(null),
        json!(true),
        json!(false),
        json!(0),
        json!(1),
        json!(-1),
        json!(2.5),
        json!(0.5),
        json!(3.0),
        json!(1e300),
        json!(500),
        json!(""),
        json!("retry"),
        json!("abort"),
        json!("ahead"),
        json!("auth"),
        json!("teleport"),
        json!("session_error"),
    ])
}

/// Small documents made of our keys, mostly in the right places.
fn document() -> impl Strategy<Value = Value> {
    let settings = prop::sample::select(vec![
        "max_retries",
        "backoff_factor",
        "jitter",
        "target_ratio",
        "preserve",
        "model",
        "models",
        "message",
        "timeout_ms",
        "checkpoint",
        "other",
        "strategy",
        "config",
    ]);
    let setting = prop_oneof![4 => scalar(), 1 => prop::collection::vec(scalar(), 0..3).prop_map(Value::from)];
    let config = prop::collection::btree_map(settings, setting, 0..3).prop_map(|map| json!(map)).boxed();
    let name = prop::sample::select(vec![
        "retry",
        "truncate",
        "compact",
        "fallback_model",
        "summarize",
        "rollback",
        "skip",
        "escalate",
        "teleport",
        "",
    ]);
    let step = prop_oneof![
        2 => name.clone().prop_map(|name| json!(name)),
        4 => (name.clone(), config.clone()).prop_map(|(name, config)| json!({"strategy": name, "config": config})),
        2 => (name, config.clone()).prop_map(|(name, mut beside)| {
            beside["strategy"] = json!(name);
            beside
        }),
        1 => scalar(),
        1 => config,
    ];
    let steps = prop::collection::vec(step, 0..4).prop_map(Value::from).boxed();
    let chain = prop_oneof![
        2 => steps.clone(),
        3 => (steps.clone(), scalar()).prop_map(|(steps, enabled)| json!({"chain": steps, "enabled": enabled})),
        1 => steps.clone().prop_map(|steps| json!({"chain": steps})),
        1 => scalar(),
    ]
    .boxed();
    let pattern_keys = prop::sample::select(vec!["name", "category", "kind", "regex", "fields", "priority", "other"]);
    let condition = prop_oneof![3 => scalar(), 1 => Just(json!({"a.b": 1})), 1 => Just(json!({}))];
    let pattern = prop::collection::btree_map(pattern_keys, condition, 0..6).prop_map(|map| json!(map));
    let entry = prop_oneof![
        3 => (prop::sample::select(vec!["session_error", "edit_error", "tool_pair"]), chain.clone()),
        1 => (Just("kinds"), prop::collection::btree_map("auth|own", chain, 0..2).prop_map(|map| json!(map))),
        1 => (Just("patterns"), prop::collection::vec(pattern, 0..3).prop_map(Value::from)),
        2 => (prop::sample::select(vec!["enabled", "max_wait_ms", "lane_queue", "durability", "other", "kinds"]), scalar()),
    ];
    let block = prop::collection::vec(entry, 0..3)
        .prop_map(|entries| json!(entries.into_iter().collect::<std::collections::BTreeMap<_, _>>()))
        .boxed();
    prop_oneof![4 => block.clone(), 2 => block.prop_map(|block| json!({"recovery": block})), 1 => scalar()]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn schema_and_parser_agree(document in document()) {
        thread_local!(static VALIDATOR: Validator = validator());
        let by_schema = VALIDATOR.with(|validator| validator.is_valid(&document));
        prop_assert_eq!(by_schema, parser_accepts(&document), "{}", document);
    }
}
