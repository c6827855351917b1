//! Configuration: what a user who writes YAML is promised (R14).
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use backstop::failure::{Category, Kind};
use backstop::policy::config::{ChainOverride, ConfigBuilder, Durability, Loaded, PatternSpec, Place, RoleOverrides};
use backstop::{Chain, ChainKey, RecoveryConfig, Step};
use serde_json::json;

fn load(yaml: &str) -> Loaded {
    RecoveryConfig::parse("r.yaml", yaml).unwrap_or_else(|errors| panic!("{yaml}\n{errors}"))
}

/// All problems as lines: warnings of what loads, everything of what is refused.
fn problems(yaml: &str) -> Vec<String> {
    match RecoveryConfig::parse("r.yaml", yaml) {
        Ok(loaded) => loaded.warnings.iter().map(|warning| format!("warning {warning}")).collect(),
        Err(errors) => errors.diagnostics().iter().map(|problem| format!("{} {problem}", problem.severity)).collect(),
    }
}

fn category(category: Category) -> ChainKey {
    ChainKey::Category(category)
}

fn chain(loaded: &Loaded, key: ChainKey) -> &Chain {
    loaded.config.chain(&key).unwrap()
}

fn strategies(chain: &Chain) -> Vec<&str> {
    chain.steps.iter().map(|step| &*step.strategy).collect()
}

#[test]
fn every_problem_is_told_at_once_and_points_at_the_character() {
    let yaml = "\
recovery:
  max_total_attempts: -2
  maxWaitMs: 5
  session_error:
    chain:
      - strategy: retry
        config: { max_retries: lots, backoff_factor: .nan, backof_ms: 3 }
      - strategy: compct
      - strategy: abort
  edit_error:
    chain: [teleport]
  json_error: abort
";
    assert_eq!(
        problems(yaml),
        [
            "error r.yaml:2:23: max_total_attempts: expected a whole number from 0 to 1000000, found -2",
            "warning r.yaml:3:3: maxWaitMs: unknown key; did you mean `max_wait_ms`?",
            "error r.yaml:7:32: session_error.chain[0].config.max_retries: \
             expected a whole number from 0 to 1000, found `lots`",
            "error r.yaml:7:54: session_error.chain[0].config.backoff_factor: \
             expected a number from 1 to 100, found .nan",
            "warning r.yaml:7:60: session_error.chain[0].config.backof_ms: \
             `retry` has no such setting; did you mean `backoff_ms`?",
            "warning r.yaml:8:19: session_error.chain[1].strategy: no strategy `compct`; did you mean `compact`?",
            "error r.yaml:11:12: edit_error.chain: no step is left: none of the strategies is known; \
             name own strategies under `known_strategies`",
            "warning r.yaml:11:13: edit_error.chain[0]: no strategy `teleport`",
            "error r.yaml:12:15: json_error: expected `chain:` with steps, a list of steps, or `false`, found `abort`",
        ]
    );
}

#[test]
fn a_role_file_and_the_block_alone_say_the_same() {
    let role = load("name: reviewer\nprompt: x\nrecovery:\n  max_recoveries: 5\n");
    let alone = load("max_recoveries: 5\n");
    assert_eq!(role.config.limits().max_recoveries, 5);
    assert_eq!(role.config.limits(), alone.config.limits());
    assert!(role.warnings.is_empty() && alone.warnings.is_empty());
}

#[test]
fn a_document_with_none_of_our_keys_gives_the_defaults_and_says_so() {
    for yaml in ["", "# only a comment\n", "name: reviewer\n", "null"] {
        let loaded = load(yaml);
        assert_eq!(loaded.config, RecoveryConfig::default());
        assert_eq!(loaded.warnings.len(), 1, "{yaml:?}");
    }
    assert!(load("recovery:\n").warnings.is_empty());
    assert!(problems("recovry:\n  enabled: false\n")[0].ends_with("did you mean `recovery`?"));
}

#[test]
fn each_limit_can_be_written() {
    let defaults = RecoveryConfig::default();
    let limits: Vec<_> = defaults.effective().into_iter().filter(|value| value.value.is_u64()).collect();
    assert!(limits.len() > 20);
    for limit in limits {
        let written = limit.value.as_u64().unwrap().checked_sub(1).unwrap_or(1);
        let loaded = load(&format!("{}: {written}", limit.path));
        let now = loaded.config.effective().into_iter().find(|value| value.path == limit.path).unwrap();
        assert_eq!(now.value, json!(written), "{}", limit.path);
        assert!(now.origin.is_users());
    }
}

#[test]
fn impossible_numbers_are_refused_and_zero_attempts_are_not() {
    for number in ["-1", "2.5", ".nan", ".inf", "-.inf", "1e999", "18446744073709551616", "'4'", "[1]", "true"] {
        let lines = problems(&format!("max_total_attempts: {number}"));
        assert_eq!(lines.len(), 1, "{number}");
        assert!(lines[0].starts_with("error r.yaml:1:21: max_total_attempts: expected a whole number"), "{lines:?}");
    }
    assert_eq!(load("max_total_attempts: 0").config.limits().max_total_attempts, 0);
    assert_eq!(load("max_total_attempts: 3.0").config.limits().max_total_attempts, 3);
}

#[test]
fn chains_may_be_written_short() {
    let loaded = load("edit_error: [retry, abort]\njson_error:\n  chain:\n    - compact\n    - strategy: abort\n");
    assert_eq!(strategies(chain(&loaded, category(Category::EditError))), ["retry", "abort"]);
    assert_eq!(strategies(chain(&loaded, category(Category::JsonError))), ["compact", "abort"]);
    assert!(loaded.warnings.is_empty());
}

#[test]
fn false_switches_a_chain_off_and_true_leaves_it_built_in() {
    for off in ["edit_error: false", "edit_error: {enabled: false}"] {
        assert!(!chain(&load(off), category(Category::EditError)).enabled);
    }
    for on in ["edit_error: true", "edit_error: {enabled: true}", "edit_error:", "edit_error: {}"] {
        let loaded = load(on);
        let chain = chain(&loaded, category(Category::EditError));
        assert!(chain.enabled && !chain.origin.is_users(), "{on}");
    }
    assert!(!chain(&load("tool_pair: false"), category(Category::ToolPair)).enabled);
    assert_eq!(
        problems("tool_pair: true"),
        ["warning r.yaml:1:12: tool_pair: there is no chain to switch on; write its steps"]
    );
}

#[test]
fn a_kind_has_its_own_chain() {
    let loaded = load("kinds:\n  auth: [escalate]\n  my_kind: [abort]\n  rate_limit: false\n");
    assert_eq!(strategies(chain(&loaded, ChainKey::Kind(Kind::Auth))), ["escalate"]);
    assert_eq!(strategies(chain(&loaded, ChainKey::Kind(Kind::parse("my_kind")))), ["abort"]);
    assert!(!chain(&loaded, ChainKey::Kind(Kind::RateLimit)).enabled);
    assert!(loaded.warnings.is_empty());
    assert_eq!(
        problems("kinds: {rateLimit: [abort]}\nauth: [abort]"),
        [
            "warning r.yaml:1:9: kinds.rateLimit: no built-in kind `rateLimit`; did you mean `rate_limit`?",
            "warning r.yaml:2:1: auth: unknown key; write `auth` under `kinds`",
        ]
    );
}

#[test]
fn settings_beside_the_strategy_are_used_with_a_warning() {
    let loaded = load("session_error:\n  - strategy: retry\n    max_retries: 9\n    maxBackoffMs: 1\n");
    let step = &chain(&loaded, category(Category::SessionError)).steps[0];
    assert_eq!(step.config.integer("max_retries"), Some(9));
    let lines: Vec<String> = loaded.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        lines,
        [
            "r.yaml:3:5: session_error.chain[0].max_retries: \
             the setting stands beside `strategy`; it belongs under `config` of `retry`",
            "r.yaml:4:5: session_error.chain[0].maxBackoffMs: unknown key; did you mean `max_backoff_ms`?",
        ]
    );
}

#[test]
fn steps_behind_the_end_of_a_chain_are_told() {
    assert_eq!(
        problems("session_error: [abort, retry]"),
        ["warning r.yaml:1:24: session_error.chain[1]: this step never runs: `abort` before it ends the chain"]
    );
}

#[test]
fn own_strategies_take_any_settings_once_they_are_known() {
    let yaml = "known_strategies: [my_fix]\nedit_error:\n  - strategy: my_fix\n    config: {deep: {list: [1, x]}, timeout_ms: 5}\n";
    let loaded = load(yaml);
    assert!(loaded.warnings.is_empty());
    let step = &chain(&loaded, category(Category::EditError)).steps[0];
    assert_eq!(step.config.get("deep"), Some(&json!({"list": [1, "x"]})));
    assert!(
        problems("known_strategies: my_fix\nedit_error: [{strategy: my_fix, config: {a: [1, .nan]}}]")[0]
            .starts_with("error r.yaml:2:49: edit_error.chain[0].config.a: expected a value that JSON can say")
    );
    assert_eq!(
        problems("known_strategies: my_fix\nedit_error: [{strategy: my_fix, config: {timeout_ms: -1}}]").len(),
        1
    );
}

#[test]
fn a_strategy_known_to_one_layer_is_known_to_all() {
    let builder = || ConfigBuilder::new().yaml("a.yaml", "edit_error: [my_fix]");
    assert!(builder().build().is_err());
    assert!(builder().known_strategy("my_fix").build().unwrap().warnings.is_empty());
    assert!(builder().yaml("b.yaml", "known_strategies: [my_fix]").build().unwrap().warnings.is_empty());
}

#[test]
fn the_later_layer_wins_and_every_value_says_where_it_comes_from() {
    let role = RoleOverrides {
        enabled: Some(false),
        max_total_attempts: Some(7),
        chains: BTreeMap::from([(
            category(Category::JsonError),
            ChainOverride { steps: Some(vec![Step::new("compact")]), enabled: None },
        )]),
        ..RoleOverrides::default()
    };
    let loaded = ConfigBuilder::new()
        .limits(|limits| limits.max_skips += 1)
        .chain(category(Category::EditError), vec![Step::new("escalate")])
        .role_overrides(role)
        .yaml(
            "a.yaml",
            "enabled: true\nmax_total_attempts: 5\nmax_skips: 7\njson_error: [abort]\nedit_error: [abort]\n",
        )
        .yaml("b.yaml", "max_recoveries: 4\nempty_response: [skip]\n")
        .build()
        .unwrap();
    let values = loaded.config.effective();
    let of = |path: &str| {
        let value = values.iter().find(|value| value.path == path).unwrap();
        (value.value.clone(), value.origin.to_string())
    };
    assert_eq!(of("enabled"), (json!(false), "role override".to_owned()));
    assert_eq!(of("max_total_attempts"), (json!(7), "role override".to_owned()));
    assert_eq!(of("max_skips"), (json!(8), "builder".to_owned()));
    assert_eq!(of("max_recoveries"), (json!(4), "b.yaml:1:17".to_owned()));
    assert_eq!(of("json_error").1, "role override");
    assert_eq!(of("edit_error").1, "builder");
    assert_eq!(of("empty_response"), (json!([{"strategy": "skip", "config": {}}]), "b.yaml:2:17".to_owned()));
    assert_eq!(of("context_window").1, "built in");
    assert_eq!(of("max_park_ms"), (json!(1_800_000), "built in".to_owned()));
}

#[test]
fn code_is_checked_like_a_file() {
    let steps = vec![Step::new("retry").with("max_retries", -1), Step::new("compct")];
    let errors = ConfigBuilder::new()
        .chain(category(Category::EditError), steps)
        .chain(ChainKey::Kind(Kind::Auth), vec![])
        .limits(|limits| limits.lane_concurrency = 0)
        .build()
        .unwrap_err();
    let lines: Vec<String> = errors.diagnostics().iter().map(ToString::to_string).collect();
    assert_eq!(
        lines,
        [
            "builder: edit_error.chain[0].config.max_retries: expected a whole number from 0 to 1000, found -1",
            "builder: edit_error.chain[1].strategy: no strategy `compct`; did you mean `compact`?",
            "builder: kinds.auth.chain: expected at least one step, found an empty list; \
             leave it out for the built-in chain, or write `false` to switch it off",
            "builder: lane_concurrency: expected a whole number from 1 to 1000000, found 0",
        ]
    );
}

#[test]
fn switching_back_on_gives_the_built_in_chain_again() {
    let loaded = ConfigBuilder::new()
        .yaml("r.yaml", "edit_error: false\ntool_pair: false")
        .chain_enabled(category(Category::EditError), true)
        .build()
        .unwrap();
    assert_eq!(
        loaded.config.chain(&category(Category::EditError)),
        RecoveryConfig::default().chain(&category(Category::EditError))
    );
}

#[test]
fn what_is_kept_can_be_said_in_two_ways() {
    assert_eq!(load("persist_state: false").config.durability(), Durability::Off);
    assert_eq!(load("durability: behind").config.durability(), Durability::Behind);
    assert!(!load("durability: off").config.persist_state());
    assert_eq!(problems("persist_state: false\ndurability: ahead").len(), 1);
    assert_eq!(load("persist_state: false\ndurability: ahead").config.durability(), Durability::Off);
    let loaded = ConfigBuilder::new().yaml("r", "persist_state: false").durability(Durability::Ahead).build().unwrap();
    assert_eq!(loaded.config.durability(), Durability::Ahead);
}

#[test]
fn own_patterns_are_data() {
    let yaml = "\
patterns:
  - {name: queue-full, kind: overloaded, regex: 'queue .* full', priority: 5}
  - {name: house-rule, category: guard_violation, fields: {error.code: 17, blocked: true}}
";
    let loaded = load(yaml);
    assert!(loaded.warnings.is_empty());
    let [queue, rule] = loaded.config.patterns() else { panic!("two patterns") };
    assert_eq!(queue, &PatternSpec::regex("queue-full", Kind::Overloaded, "queue .* full").unwrap().with_priority(5));
    assert_eq!((rule.category(), rule.kind().as_str()), (Category::GuardViolation, "house-rule"));
    assert_eq!(rule.field_values()["error.code"], json!(17));
    let broken = "\
patterns:
  - {name: a, kind: overloaded, regex: '('}
  - {name: b, kind: overloaded}
  - {name: c, regex: x}
  - {kind: overloaded, regex: x}
  - {name: d, category: guards, regex: x, priority: 1.5}
  - {name: e, kind: auth, fields: {a: [1]}}
";
    let lines = problems(broken);
    assert_eq!(
        lines,
        [
            "error r.yaml:2:40: patterns[0].regex: not a regular expression: unclosed group",
            "error r.yaml:3:5: patterns[1]: the pattern has neither a `regex` nor `fields`",
            "error r.yaml:4:5: patterns[2]: expected a `category`, or a built-in `kind` that has one, found neither",
            "error r.yaml:5:5: patterns[3]: expected a `name` in the pattern, found none",
            "error r.yaml:6:25: patterns[4].category: expected one of `session_error`, `context_window`, `edit_error`, \
             `json_error`, `empty_response`, `tool_pair`, `guard_violation`, found `guards`",
            "error r.yaml:6:53: patterns[4].priority: expected a whole number from -1000 to 1000, found 1.5",
            "error r.yaml:7:39: patterns[5].fields.a: expected a plain value under a path, found a list",
        ]
    );
}

#[test]
fn an_alias_carries_its_value_and_its_place() {
    let loaded = load("edit_error: &quick [abort]\njson_error: *quick\n");
    assert_eq!(strategies(chain(&loaded, category(Category::JsonError))), ["abort"]);
    let lines = problems("edit_error: &quick\n  - strategy: retry\n    config: {max_retries: x}\njson_error: *quick\n");
    assert_eq!(lines.len(), 2);
    assert!(lines[1].starts_with("error r.yaml:3:27: json_error.chain[0].config.max_retries"), "{lines:?}");
}

#[test]
fn merge_keys_are_refused_instead_of_forgotten() {
    let lines = problems("x: &base {max_retries: 1}\nedit_error:\n  - strategy: retry\n    config: {<<: *base}\n");
    assert!(lines.iter().any(|line| line.starts_with("error r.yaml:4:14: edit_error.chain[0].config.<<")), "{lines:?}");
}

#[test]
fn words_that_mean_no_are_not_taken_for_yes() {
    let lines = problems("recovery: off");
    let expected =
        "error r.yaml:1:11: expected a map of settings, or `false`, found `off`; write `false`, without quotes";
    assert_eq!(lines, [expected]);
    assert!(!load("recovery: false").config.enabled());
    assert!(problems("enabled: 'false'")[0].ends_with("write `false`, without quotes"));
}

#[test]
fn a_warning_of_a_long_file_has_its_line() {
    let yaml = format!("{}edit_eror: [abort]\nenabled: true\n", "# nothing\n".repeat(1_000));
    let warning = &load(&yaml).warnings[0];
    assert_eq!(warning.place, Some(Place { line: 1_001, column: 1 }));
    assert!(warning.render(&yaml).contains("1001 | edit_eror: [abort]\n"));
}

#[test]
fn hostile_files_are_refused_with_a_place_and_a_bounded_answer() {
    let many_keys: String = (0..20_000).map(|n| format!("max_total_attempt{n}: 1\n")).collect();
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        bomb += &format!("a{level}: &a{level} [{}]\n", vec![format!("*a{}", level - 1); 10].join(", "));
    }
    for yaml in [
        format!("edit_error:\n{}", "  - strategy: retry\n".repeat(10_000)),
        format!("{many_keys}enabled: 5\n"),
        format!("edit_error: [{}]\n", "{strategy: retry, config: {max_retries: -1}}, ".repeat(200)),
        format!("patterns: [{}]", "{name: a, kind: auth, regex: \"\\\\w{900}{90}\"}, ".repeat(40)),
        format!("edit_error: {}{}", "[".repeat(5_000_000), "]".repeat(5_000_000)),
        format!("edit_error: {}{}", "{a: ".repeat(100_000), "}".repeat(100_000)),
        bomb,
        "enabled: true\nenabled: false\n".to_owned(),
        "recovery: {enabled: *nobody}".to_owned(),
        "recovery:\n\tenabled: true\n".to_owned(),
        "enabled: true\n---\nenabled: false\n".to_owned(),
        "enabled: &a\n  <<: *a\n".to_owned(),
        "\u{0}\u{1}\u{2}".to_owned(),
    ] {
        let start: String = yaml.chars().take(60).collect();
        let errors = RecoveryConfig::parse("r.yaml", &yaml).expect_err(&start);
        assert!(errors.diagnostics().len() <= 201, "{start}");
        assert!(errors.diagnostics().iter().all(|problem| problem.place.is_some()), "{start}");
        assert!(errors.to_string().len() < 100_000, "{start}");
    }
}
