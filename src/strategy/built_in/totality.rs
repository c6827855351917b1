//! What holds for every built-in strategy, whatever its settings.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::failure::{Kind, TokenCounts};
use crate::policy::config::BUILT_IN_STRATEGIES;
use crate::policy::{Answer, Injection, Remedy};
use crate::strategy::registry::Strategy as Registered;
use crate::strategy::testing::trial;
use crate::strategy::{Decide, StrategyRegistry};

const SETTINGS: &[&str] = &[
    "max_retries",
    "backoff_ms",
    "backoff_factor",
    "max_backoff_ms",
    "jitter",
    "reminder_text",
    "max_truncations",
    "target_ratio",
    "min_output_size",
    "preserve",
    "model",
    "models",
    "checkpoint",
    "message",
];

fn built_in() -> Vec<std::sync::Arc<dyn Decide>> {
    let registry = StrategyRegistry::new();
    let computing = |name: &&str| match registry.get(name) {
        Some(Registered::Computes(strategy)) => strategy,
        _ => panic!("{name} only computes"),
    };
    BUILT_IN_STRATEGIES.iter().map(computing).collect()
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (0..6_u64).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        (-2.0..2.0).prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        "[a-c/ ]{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 8, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            inner.prop_map(|value| json!({ "a": value })),
        ]
    })
}

fn any_settings() -> impl Strategy<Value = Map<String, Value>> {
    let name = prop_oneof![9 => prop::sample::select(SETTINGS).prop_map(str::to_owned), 1 => ".{0,8}"];
    prop::collection::vec((name, any_value()), 0..8).prop_map(|pairs| pairs.into_iter().collect())
}

fn any_tokens() -> impl Strategy<Value = TokenCounts> {
    (any::<Option<u64>>(), any::<Option<u64>>()).prop_map(|(limit, actual)| TokenCounts { limit, actual, prompt: None })
}

fn is_sound(remedy: &Remedy) -> bool {
    match remedy {
        Remedy::Truncate { ratio, .. } => *ratio > 0.0 && *ratio < 1.0,
        Remedy::SwitchModel { model } | Remedy::Summarize { model: Some(model) } => !model.trim().is_empty(),
        _ => true,
    }
}

proptest! {
    #[test]
    fn no_settings_make_a_built_in_strategy_panic_or_answer_nonsense(
        settings in any_settings(),
        number in prop_oneof![0..12_u32, any::<u32>()],
        seed: u64,
        kind in prop::sample::select(Kind::BUILT_IN),
        now in any_tokens(),
        before in any_tokens(),
    ) {
        let cap = settings.get("max_backoff_ms").and_then(Value::as_f64).filter(|cap| *cap >= 0.0).unwrap_or(30_000.0);
        for strategy in built_in() {
            let trial = || {
                trial(Value::Object(settings.clone())).number(number).seed(seed).kind(kind.clone()).model("a")
                    .tokens(now).earlier([before]).attempt()
            };
            let attempt = trial();
            let answer = strategy.decide(&attempt);
            prop_assert_eq!(&answer, &strategy.decide(&trial()), "asked again, it answers the same");
            if let Answer::Retry { delay, .. } = &answer {
                prop_assert!(delay.as_secs_f64() * 1_000.0 <= cap.max(30_000.0), "{:?} over {}", delay, cap);
            }
            if let Answer::Retry { remedy: Some(remedy), .. } | Answer::Success { remedy: Some(remedy), .. } = &answer {
                prop_assert!(is_sound(remedy), "{:?}", remedy);
            }
            let texts = attempt.take_injections();
            prop_assert!(texts.len() <= 1 && texts.iter().all(|text| text.as_str().len() <= 4 * Injection::MAX_CHARS));
        }
    }

    #[test]
    fn every_built_in_strategy_stops_answering_retry(settings in any_settings()) {
        for strategy in built_in() {
            let last = trial(Value::Object(settings.clone())).number(u32::MAX).attempt();
            prop_assert_ne!(strategy.decide(&last).status(), "retry");
        }
    }
}

#[test]
fn by_default_every_built_in_strategy_stops_within_nine_attempts() {
    for strategy in built_in() {
        let status = strategy.decide(&trial(json!({})).number(9).attempt()).status();
        assert_ne!(status, "retry", "{}", strategy.name());
    }
}
