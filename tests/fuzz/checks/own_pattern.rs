//! Users' own patterns: any expression over any text (R14, P4).

use backstop::failure::{Category, ErrorPattern, PatternRegistry, Report};
use backstop::policy::config::PatternSpec;
use backstop::{Kind, RecoveryConfig};
use serde_json::json;

use super::detect;

/// The first line is the expression, the rest the failure's text.
pub fn check(input: &[u8]) {
    let input = String::from_utf8_lossy(input);
    let (expression, text) = input.split_once('\n').unwrap_or((&input, "429 Too Many Requests"));
    let pattern = ErrorPattern::regex("own", Category::JsonError, Kind::parse("own"), expression);
    let spec = PatternSpec::regex("own", Kind::parse("own"), expression);
    assert_eq!(pattern.is_ok(), spec.is_ok(), "two ways to make one pattern: {pattern:?} {spec:?}");

    // JSON is YAML, so any expression can be written.
    let block = json!({"patterns": [{"name": "own", "kind": "own", "regex": expression}]}).to_string();
    match RecoveryConfig::parse("own.yaml", &block) {
        Ok(loaded) => {
            let written = loaded.config.patterns().first().and_then(PatternSpec::expression);
            assert_eq!(written.map(AsRef::as_ref), Some(expression));
            assert!(spec.is_ok());
        }
        Err(errors) => {
            for problem in errors.diagnostics() {
                assert!(problem.place.is_some() && !problem.message.is_empty(), "{problem}");
            }
            assert!(errors.to_string().len() < 4 * 1024 + 8 * expression.len());
        }
    }
    if let Ok(pattern) = pattern {
        let mut registry = PatternRegistry::new();
        registry.register(pattern);
        detect::sound(&registry, &Report::text(text));
    }
}
