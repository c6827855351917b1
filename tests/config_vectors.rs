//! What the original does with a `recovery` block, run through ours.
//!
//! Vectors without `upstream_bug` hold as they are. For each with it, [`BETTER`] names our answer.
//! At the edge, by our types, are:
//!
//! | vectors | why |
//! | --- | --- |
//! | 014, 016–018 | `max_total_attempts` is a `u32`: −2, 2.5, NaN and ∞ cannot exist, so the load is refused |
//! | 037, 038, 040 | a step has a name and a map of settings; what is neither is refused, not dropped |
//! | 058 | a field of a role that is absent is `None` and cannot overwrite anything |
//! | 059 | a `null` chain of a role is an absent entry of its map |
//! | flags-* | the original's hook flags; ours are the roles' switches of chains, where the later wins |
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use backstop::failure::Category;
use backstop::policy::StepConfig;
use backstop::policy::config::{
    BUILT_IN_STRATEGIES, ChainOverride, ConfigBuilder, ConfigErrors, Loaded, RoleOverrides, built_in_chains,
};
use backstop::{Chain, ChainKey, RecoveryConfig, Step};
use serde_json::{Value, json};

/// What we answer where the original is wrong.
enum Better {
    /// The load is refused, and this is part of what is said.
    Refused(&'static str),
    /// It loads, with this many warnings, and this differs from the defaults.
    Loads(usize, fn(&RecoveryConfig) -> bool),
}
use Better::{Loads, Refused};

fn is_default(config: &RecoveryConfig) -> bool {
    *config == RecoveryConfig::default()
}

fn strategies(config: &RecoveryConfig, category: Category) -> Vec<&str> {
    let chain = config.chain(&ChainKey::Category(category));
    chain.iter().flat_map(|chain| &chain.steps).map(|step| &*step.strategy).collect()
}

fn is_off(config: &RecoveryConfig, category: Category) -> bool {
    config.chain(&ChainKey::Category(category)).is_some_and(|chain| !chain.enabled)
}

const BETTER: &[(&str, Better)] = &[
    ("config-001", Loads(0, is_default)),
    ("config-002", Loads(1, is_default)),
    ("config-004", Refused("found `off`; write `false`, without quotes")),
    ("config-005", Loads(0, |config| !config.enabled())),
    ("config-006", Loads(0, is_default)),
    ("config-007", Refused("found `fast`")),
    ("config-008", Refused("found a list")),
    ("config-010", Refused("expected `true` or `false`, found `false`; write `false`, without quotes")),
    ("config-011", Refused("expected `true` or `false`, found 0")),
    ("config-013", Refused("found `4`; write the number without quotes")),
    ("config-014", Refused("found -2")),
    ("config-015", Loads(1, |config| config.limits().max_total_attempts == 0)),
    ("config-016", Refused("found 2.5")),
    ("config-017", Refused("found .nan")),
    ("config-018", Refused("found .inf")),
    ("config-019", Loads(2, is_default)),
    ("config-020", Loads(1, is_default)),
    ("config-023", Loads(0, |config| is_off(config, Category::EditError))),
    ("config-024", Loads(0, is_default)),
    ("config-025", Refused("expected at least one step")),
    ("config-026", Loads(0, is_default)),
    ("config-028", Loads(0, |config| is_off(config, Category::EditError))),
    ("config-029", Refused("found `abort`")),
    ("config-030", Loads(0, |config| strategies(config, Category::EditError) == ["abort"])),
    ("config-031", Refused("expected a list of steps, found a map")),
    ("config-033", Refused("no step is left")),
    ("config-034", Refused("no step is left")),
    ("config-035", Refused("no step is left")),
    ("config-036", Loads(0, |config| strategies(config, Category::SessionError) == ["retry", "abort"])),
    ("config-037", Refused("expected a strategy's name, found 7")),
    ("config-038", Refused("expected a map of settings, found `fast`")),
    ("config-040", Refused("expected a map of settings, found a list")),
    ("config-041", Refused("found `lots`")),
    (
        "config-042",
        Loads(1, |config| {
            let chain = config.chain(&ChainKey::Category(Category::SessionError));
            chain.is_some_and(|chain| chain.steps[0].config.integer("max_retries") == Some(9))
        }),
    ),
    ("config-043", Refused("found `no`; write `false`, without quotes")),
    ("config-045", Loads(1, is_default)),
    ("config-046", Loads(1, is_default)),
    ("config-049", Loads(1, |config| strategies(config, Category::SessionError) == ["abort", "retry"])),
    ("config-054", Refused("no strategy `made_up`")),
    (
        "config-055",
        Loads(0, |config| {
            config.limits().max_total_attempts == 3 && strategies(config, Category::EditError) == ["remind_and_retry"]
        }),
    ),
    (
        "config-056",
        Loads(0, |config| {
            strategies(config, Category::EditError) == ["abort"]
                && strategies(config, Category::JsonError) == ["remind_and_retry"]
        }),
    ),
    ("config-058", Loads(0, is_default)),
];

fn vectors() -> Vec<Value> {
    let text = include_str!("data/conformance/rolebox-config.jsonl");
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn id(vector: &Value) -> &str {
    vector["id"].as_str().unwrap()
}

fn key(category: &str) -> ChainKey {
    ChainKey::Category(Category::parse(category).unwrap())
}

fn steps(chain: &Value) -> Vec<Step> {
    let step = |step: &Value| Step {
        strategy: step["strategy"].as_str().unwrap().into(),
        config: StepConfig::new(step["config"].as_object().cloned().unwrap_or_default()).into(),
    };
    chain["chain"].as_array().unwrap().iter().map(step).collect()
}

fn role(defaults: &Value) -> RoleOverrides {
    let chains = defaults["chains"].as_object().into_iter().flatten().filter(|(_, chain)| !chain.is_null());
    RoleOverrides {
        enabled: defaults["enabled"].as_bool(),
        max_total_attempts: defaults["maxTotalAttempts"].as_u64().map(|attempts| attempts.try_into().unwrap()),
        persist_state: defaults["persistState"].as_bool(),
        collect_metrics: defaults["collectMetrics"].as_bool(),
        chains: chains
            .map(|(name, chain)| (key(name), ChainOverride { steps: Some(steps(chain)), enabled: None }))
            .collect(),
    }
}

fn load(vector: &Value) -> Result<Loaded, ConfigErrors> {
    let input = &vector["input"];
    let known = input["add_known_strategies"].as_array().into_iter().flatten();
    ConfigBuilder::new()
        .yaml("role.yaml", input["yaml"].as_str().unwrap())
        .role_overrides(role(&input["role_defaults"]))
        .known_strategies(known.map(|name| name.as_str().unwrap()))
        .build()
}

#[test]
fn what_the_original_does_right_holds() {
    let mut held = 0;
    for vector in vectors().iter().filter(|vector| vector.get("kind").is_none() && vector.get("upstream_bug").is_none())
    {
        let Loaded { config, warnings } = load(vector).unwrap_or_else(|errors| panic!("{}: {errors}", id(vector)));
        let expected = &vector["config"];
        assert_eq!(expected["enabled"], json!(config.enabled()), "{}", id(vector));
        assert_eq!(expected["max_total_attempts"], json!(config.limits().max_total_attempts), "{}", id(vector));
        assert_eq!(expected["persist_state"], json!(config.persist_state()), "{}", id(vector));
        assert_eq!(expected["collect_metrics"], json!(config.collect_metrics()), "{}", id(vector));
        assert_eq!(vector["warnings"].as_array().unwrap().len(), warnings.len(), "{}: {warnings:?}", id(vector));
        for category in Category::ALL {
            let key = ChainKey::Category(*category);
            let ours = config.chain(&key).map(|chain| Chain::clone(chain));
            match &expected["chains"][category.as_str()] {
                Value::Null => assert_eq!(ours, None, "{}", id(vector)),
                Value::String(_) => assert_eq!(ours.as_ref(), RecoveryConfig::default().chain(&key).map(|c| &**c)),
                chain => {
                    let ours = ours.unwrap();
                    assert_eq!(ours.steps, steps(chain), "{}", id(vector));
                    assert_eq!(ours.enabled, chain["enabled"] != json!(false), "{}", id(vector));
                    assert!(ours.origin.is_users());
                }
            }
        }
        held += 1;
    }
    assert_eq!(held, 17);
}

#[test]
fn what_the_original_does_wrong_is_answered_better() {
    let better: BTreeMap<&str, &Better> = BETTER.iter().map(|(id, better)| (*id, better)).collect();
    let wrong: Vec<Value> = vectors()
        .into_iter()
        .filter(|vector| vector.get("kind").is_none() && vector.get("upstream_bug").is_some())
        .collect();
    assert_eq!(wrong.iter().map(id).collect::<Vec<_>>(), better.keys().copied().collect::<Vec<_>>());
    for vector in &wrong {
        match (better[id(vector)], load(vector)) {
            (Refused(part), Err(errors)) => {
                let all: Vec<String> = errors.diagnostics().iter().map(ToString::to_string).collect();
                assert!(all.iter().any(|line| line.contains(part)), "{}: {all:?}", id(vector));
            }
            (Loads(warnings, holds), Ok(loaded)) => {
                assert_eq!(loaded.warnings.len(), *warnings, "{}: {:?}", id(vector), loaded.warnings);
                assert!(holds(&loaded.config), "{}", id(vector));
            }
            (_, other) => panic!("{}: {other:?}", id(vector)),
        }
    }
}

#[test]
fn the_default_chains_take_the_same_steps() {
    let vectors = vectors();
    let constant = vectors.iter().find(|vector| vector["kind"] == "constant").unwrap();
    for (category, chain) in constant["default_chains"].as_object().unwrap() {
        let ours = built_in_chains().into_iter().find(|chain| chain.key == key(category)).unwrap();
        let theirs = steps(chain);
        assert_eq!(ours.steps.len(), theirs.len(), "{category}");
        for (ours, theirs) in ours.steps.iter().zip(theirs) {
            assert_eq!(ours.strategy, theirs.strategy, "{category}");
            // Settings that are left out are the strategy's defaults; wording is ours.
            for (name, value) in ours.config.as_map().iter().filter(|(name, _)| *name != "message") {
                assert_eq!(theirs.config.get(name), Some(value), "{category} {name}");
            }
        }
    }
    for name in constant["known_strategies"].as_array().unwrap() {
        assert!(BUILT_IN_STRATEGIES.contains(&name.as_str().unwrap()));
    }
}

#[test]
fn of_several_roles_the_last_that_speaks_decides() {
    for vector in vectors().iter().filter(|vector| vector["kind"] == "merge_builtin_flags") {
        let category = |flag: &str| if flag == "b" { "json_error" } else { "edit_error" };
        let mut builder = ConfigBuilder::new();
        for flags in vector["input"].as_array().unwrap() {
            let switch = |enabled: &Value| ChainOverride { steps: None, enabled: enabled.as_bool() };
            let flags = flags.as_object().unwrap().iter();
            let chains = flags.map(|(flag, enabled)| (key(category(flag)), switch(enabled))).collect();
            builder = builder.role_overrides(RoleOverrides { chains, ..RoleOverrides::default() });
        }
        let config = builder.build().unwrap().config;
        let mut expected = vector["output"].clone();
        if id(vector) == "flags-2" {
            // The original lets no later role switch off what an earlier one switched on.
            expected["edit_error"] = json!(false);
        }
        for (flag, enabled) in expected.as_object().unwrap() {
            let chain = config.chain(&key(category(flag))).unwrap();
            assert_eq!(json!(chain.enabled), *enabled, "{}", id(vector));
        }
    }
}
