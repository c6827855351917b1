//! `truncate`: the turn again with a smaller request, as long as that helps.
//!
//! | setting | default | meaning |
//! | --- | --- | --- |
//! | `max_truncations` | 8 | cuts before the chain goes on; 0 is none |
//! | `target_ratio` | 0.5 | the share to keep, above 0 and below 1 |
//! | `min_output_size` | 500 | the smallest reply that still makes sense, in characters |
//!
//! Each cut is of the request that has just failed: two cuts at 0.5 leave a quarter of the first
//! request. As soon as the overflow that the failure states is no smaller than the one before, cutting
//! does not help and the chain goes on. Where nobody is known to cut, the model is asked for a shorter
//! reply instead.
//!
//! ```yaml
//! context_window:
//!   chain:
//!     - strategy: truncate
//!       config: { max_truncations: 3, target_ratio: 0.7 }
//!     - strategy: summarize
//! ```

use std::time::Duration;

use crate::failure::TokenCounts;
use crate::policy::{Answer, Remedy, StepConfig};
use crate::strategy::settings::{all_made, attempts};
use crate::strategy::{Attempt, Decide};

const MAX_TRUNCATIONS: u32 = 8;
const TARGET_RATIO: f64 = 0.5;
const MIN_OUTPUT_SIZE: u64 = 500;

pub(crate) struct Truncate;

impl Decide for Truncate {
    fn name(&self) -> &str {
        "truncate"
    }

    fn decide(&self, attempt: &Attempt) -> Answer {
        let most = attempts(attempt.config(), "max_truncations", MAX_TRUNCATIONS);
        if let Some(answer) = all_made(attempt, most) {
            return answer;
        }
        let now = attempt.error().details.tokens;
        if attempt.earlier().last().is_some_and(|before| !shrinks(before.tokens, now)) {
            return Answer::next_strategy("the overflow no longer shrinks");
        }
        let remedy = Remedy::Truncate {
            ratio: ratio(attempt.config()),
            min_output_size: attempt.config().integer("min_output_size").unwrap_or(MIN_OUTPUT_SIZE),
        };
        Answer::retry_with(
            Duration::ZERO,
            format!("the request is cut, attempt {} of {most}", attempt.number()),
            remedy,
        )
    }
}

/// Whether the last cut helped; without numbers to compare, that is assumed.
fn shrinks(before: TokenCounts, now: TokenCounts) -> bool {
    let known = before.overflow().zip(now.overflow()).or_else(|| before.actual.zip(now.actual));
    known.is_none_or(|(before, now)| now < before)
}

/// Keeping all of it is no cut, and keeping none leaves no request.
fn ratio(config: &StepConfig) -> f64 {
    config.number("target_ratio").filter(|ratio| *ratio > 0.0 && *ratio < 1.0).unwrap_or(TARGET_RATIO)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::strategy::testing::trial;

    const fn tokens(limit: u64, actual: u64) -> TokenCounts {
        TokenCounts { limit: Some(limit), actual: Some(actual), prompt: None }
    }

    fn cut(settings: serde_json::Value) -> Option<Remedy> {
        match Truncate.decide(&trial(settings).attempt()) {
            Answer::Retry { delay: Duration::ZERO, remedy, .. } => remedy,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_request_is_cut_in_half_at_once() {
        assert_eq!(cut(json!({})), Some(Remedy::Truncate { ratio: 0.5, min_output_size: 500 }));
    }

    #[test]
    fn every_setting_counts() {
        let settings = json!({"max_truncations": 2, "target_ratio": 0.8, "min_output_size": 64});
        assert_eq!(cut(settings.clone()), Some(Remedy::Truncate { ratio: 0.8, min_output_size: 64 }));
        assert_eq!(Truncate.decide(&trial(settings).number(3).attempt()).status(), "next_strategy");
        assert_eq!(Truncate.decide(&trial(json!({})).number(9).attempt()).status(), "next_strategy");
        assert_eq!(Truncate.decide(&trial(json!({})).number(8).attempt()).status(), "retry");
    }

    #[test]
    fn a_ratio_that_cuts_nothing_or_everything_is_the_default() {
        for ratio in [json!(0), json!(1), json!(1.125), json!(-0.5), json!("half")] {
            assert_eq!(cut(json!({"target_ratio": ratio})), cut(json!({})), "{ratio}");
        }
    }

    #[test]
    fn it_goes_on_while_the_overflow_shrinks_and_no_longer() {
        let status = |before, now| {
            let attempt = trial(json!({})).number(3).earlier([tokens(100, 900), before]).tokens(now).attempt();
            Truncate.decide(&attempt).status()
        };
        assert_eq!(status(tokens(100, 300), tokens(100, 250)), "retry");
        assert_eq!(status(tokens(100, 300), tokens(100, 300)), "next_strategy");
        assert_eq!(status(tokens(100, 300), tokens(100, 301)), "next_strategy");
    }

    #[test]
    fn a_request_size_without_its_limit_is_compared_too() {
        let only = |actual| TokenCounts { limit: None, actual: Some(actual), prompt: None };
        let status =
            |now| Truncate.decide(&trial(json!({})).number(2).earlier([only(300)]).tokens(now).attempt()).status();
        assert_eq!([status(only(299)), status(only(300))], ["retry", "next_strategy"]);
    }

    #[test]
    fn a_failure_without_numbers_does_not_end_it_early() {
        let attempt = trial(json!({})).number(2).earlier([tokens(100, 300)]).attempt();
        assert_eq!(Truncate.decide(&attempt).status(), "retry");
    }
}
