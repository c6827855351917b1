//! Reading a step's settings. Those of a file were checked when it was loaded; a host's code can
//! pass anything, so what makes no sense is the default.

use std::ops::RangeInclusive;
use std::sync::Arc;

use super::Attempt;
use crate::policy::{Answer, StepConfig};

/// The most attempts that a step can be given: one less than there are numbers for them, so that
/// every step ends.
const MOST_ATTEMPTS: u32 = u32::MAX - 1;

/// How many attempts a step may make: a negative number is none, a broken one is cut.
pub(super) fn attempts(config: &StepConfig, name: &str, default: u32) -> u32 {
    config.number(name).map_or(default, |number| (number as u32).min(MOST_ATTEMPTS))
}

/// A number, if it lies within these bounds.
pub(super) fn number_within(config: &StepConfig, name: &str, bounds: RangeInclusive<f64>, default: f64) -> f64 {
    config.number(name).filter(|number| bounds.contains(number)).unwrap_or(default)
}

/// A text that says something.
pub(super) fn words<'a>(config: &'a StepConfig, name: &str) -> Option<&'a str> {
    config.text(name).filter(|text| !text.trim().is_empty())
}

/// A model's name, without the spaces around it.
pub(super) fn model(config: &StepConfig) -> Option<Arc<str>> {
    words(config, "model").map(|name| name.trim().into())
}

/// The answer of a step whose attempts were all made; `None` while there are some left.
pub(super) fn all_made(attempt: &Attempt, most: u32) -> Option<Answer> {
    let spent = attempt.number().max(1) > most;
    spent.then(|| Answer::next_strategy(format!("all {most} attempts were made")))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn config(value: Value) -> StepConfig {
        [("n".to_owned(), value)].into_iter().collect()
    }

    #[test]
    fn numbers_of_attempts_are_whole_and_end() {
        let table = [
            (json!(3), 3),
            (json!(0), 0),
            (json!(-1), 0),
            (json!(2.5), 2),
            (json!(1e300), MOST_ATTEMPTS),
            (json!(u64::MAX), MOST_ATTEMPTS),
            (json!("3"), 7),
            (json!(null), 7),
            (json!([1]), 7),
        ];
        for (written, read) in table {
            assert_eq!(attempts(&config(written.clone()), "n", 7), read, "{written}");
        }
        assert_eq!(attempts(&StepConfig::default(), "n", 7), 7);
    }

    #[test]
    fn numbers_outside_their_bounds_are_the_default() {
        let read = |written: Value| number_within(&config(written), "n", 0.0..=2.0, 1.0);
        assert_eq!(
            [read(json!(0)), read(json!(1.5)), read(json!(-0.1)), read(json!(2.1)), read(json!("1.5"))],
            [0.0, 1.5, 1.0, 1.0, 1.0]
        );
    }

    #[test]
    fn blank_texts_are_no_texts() {
        assert_eq!(words(&config(json!(" \n")), "n"), None);
        assert_eq!(words(&config(json!(42)), "n"), None);
        assert_eq!(words(&config(json!(" a ")), "n"), Some(" a "));
    }
}
