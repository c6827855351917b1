//! What users' own patterns are promised, and what a category handed over does.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use backstop::failure::{Category, Detection, ErrorPattern, Kind, PatternRegistry, RecoveryError, Report, Timestamp};
use backstop::{RecoveryConfig, RecoveryEngine, SessionId, Verdict};
use serde_json::{Value, json};

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

/// A failure that built-in knowledge names, and that bears marks of a host's own.
fn throttled() -> Report {
    let error = json!({"message": "429 Too Many Requests", "code": "HOUSE-7", "zone": {"rack": 3}});
    Report::from_value(json!({"error": error})).with_exit_code(75)
}

fn winner(own: ErrorPattern, report: &Report) -> RecoveryError {
    let mut registry = PatternRegistry::new();
    registry.register(own);
    registry.detect_first(report, NOW).into_failure().unwrap()
}

fn fields(all: &[(&str, Value)]) -> BTreeMap<String, Value> {
    all.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect()
}

#[test]
fn own_patterns_of_every_make_win_over_what_is_built_in() {
    let (category, kind) = (Category::GuardViolation, Kind::parse("house_rule"));
    assert_eq!(PatternRegistry::new().detect_first(&throttled(), NOW).failure().unwrap().kind, Kind::RateLimit);
    for own in [
        ErrorPattern::regex("own", category, kind.clone(), r"too\s+MANY requests").unwrap(),
        ErrorPattern::fields("own", category, kind.clone(), fields(&[("code", "HOUSE-7".into())])).unwrap(),
        ErrorPattern::fields("own", category, kind.clone(), fields(&[("/error/zone/rack", 3.into())])).unwrap(),
        ErrorPattern::fields("own", category, kind.clone(), fields(&[("error.zone.rack", 3.into())])).unwrap(),
        ErrorPattern::fields("own", category, kind.clone(), fields(&[("exit_code", 75.into())])).unwrap(),
        ErrorPattern::data("own", category, kind.clone(), Some("429"), fields(&[("rack", 3.into())])).unwrap(),
        ErrorPattern::new("own", category, kind.clone(), |report| report.exit_code == Some(75)),
    ] {
        let found = winner(own.clone(), &throttled());
        assert_eq!((&*found.pattern, found.category, &found.kind), ("own", category, &kind), "{own:?}");
    }
}

#[test]
fn a_regex_and_fields_must_both_match() {
    let make = |regex, rack: i32| {
        let fields = fields(&[("rack", rack.into())]);
        ErrorPattern::data("own", Category::EditError, Kind::parse("own"), Some(regex), fields).unwrap()
    };
    assert_eq!(winner(make("429", 3), &throttled()).kind, Kind::parse("own"));
    assert_eq!(winner(make("430", 3), &throttled()).kind, Kind::RateLimit);
    assert_eq!(winner(make("429", 4), &throttled()).kind, Kind::RateLimit);
}

#[test]
fn everything_that_matches_is_told_the_winner_first() {
    let mut registry = PatternRegistry::new();
    let own = |name: &str, priority| {
        let pattern = ErrorPattern::regex(name, Category::JsonError, Kind::parse(name), "too many").unwrap();
        pattern.with_priority(priority)
    };
    registry.register(own("second", 0));
    registry.register(own("first", 1));
    let all = registry.detect(&throttled(), NOW);
    let names: Vec<&str> = all.iter().map(|error| error.kind.as_str()).collect();
    assert_eq!(names[..3], ["first", "second", "rate_limit"]);
    assert_eq!(registry.detect_first(&throttled(), NOW).failure(), all.first());
}

#[test]
fn a_category_leaves_out_every_pattern_of_another() {
    let mut registry = PatternRegistry::new();
    registry.register(ErrorPattern::new("edit", Category::EditError, Kind::parse("own_edit"), |_| true));
    registry.register(ErrorPattern::new("json", Category::JsonError, Kind::parse("own_json"), |_| true));
    let kind = |category| {
        let error = registry.detect_category(&throttled(), category, NOW).into_failure().unwrap();
        assert_eq!(error.category, category);
        error.kind.as_str().to_owned()
    };
    assert_eq!(kind(Category::EditError), "own_edit");
    assert_eq!(kind(Category::JsonError), "own_json");
    assert_eq!(kind(Category::SessionError), "rate_limit", "what is built in is asked as well");
    assert_eq!(kind(Category::ToolPair), "other", "without a match there a basic error");
}

async fn recover(report: Report, category: Option<Category>) -> (Option<Verdict>, Option<RecoveryError>) {
    let chains = "\
edit_error: [{strategy: escalate, config: {message: an edit}}]
session_error: [abort]
kinds:
  own: [{strategy: escalate, config: {message: my own}}]
patterns:
  - {name: mine, category: json_error, kind: own, fields: {error.zone.rack: 3}}
";
    let config = RecoveryConfig::parse("mine.yaml", chains).unwrap().config;
    let engine = RecoveryEngine::builder().config(config).in_memory().spawn().await.unwrap();
    let stopped = engine.recover(&SessionId::new("s").unwrap(), report, category).await.unwrap_err();
    let error = stopped.outcome().and_then(|outcome| outcome.error.as_deref().cloned());
    (stopped.verdict().cloned(), error)
}

#[tokio::test]
async fn a_category_handed_to_recover_restricts_detection_to_it() {
    let (verdict, error) = recover(throttled(), None).await;
    assert_eq!(error.unwrap().kind.as_str(), "own", "a configuration's fields win");
    assert!(matches!(verdict, Some(Verdict::Escalated { .. })), "{verdict:?}");
    let (verdict, error) = recover(throttled(), Some(Category::SessionError)).await;
    assert_eq!(error.unwrap().kind, Kind::RateLimit);
    assert!(matches!(verdict, Some(Verdict::Aborted { .. })), "{verdict:?}");
}

#[tokio::test]
async fn without_a_match_in_its_category_recover_takes_a_basic_error() {
    let (verdict, error) = recover(Report::text("all is well"), Some(Category::EditError)).await;
    let error = error.unwrap();
    assert_eq!((error.category, &error.kind, &*error.pattern), (Category::EditError, &Kind::Other, "basic"));
    assert!(matches!(verdict, Some(Verdict::Escalated { .. })), "{verdict:?}");
}

#[tokio::test]
async fn no_category_makes_a_failure_of_what_a_person_stopped() {
    let aborted = json!({"name": "AbortError", "message": "This operation was aborted"});
    assert_eq!(PatternRegistry::new().detect_first(&Report::from_value(aborted.clone()), NOW), Detection::Cancelled);
    for report in [Report::from_value(aborted), Report::cancelled()] {
        let (verdict, _) = recover(report, Some(Category::SessionError)).await;
        assert!(matches!(verdict, Some(Verdict::Cancelled)), "{verdict:?}");
    }
}
