use std::sync::Arc;
use std::time::Duration;

use super::{Attempt, AttemptParts, Strategy, StrategyRegistry};
use crate::failure::{RecoveryError, SessionId};
use crate::policy::machine::Execute;
use crate::policy::{Answer, Backoff, Forecast, Luck, RecoveryConfig};

/// What the built-in strategies would do about a failure that comes back after every redo: the worst
/// case, without doing any of it. `deadline` counts from the failure's time.
///
/// ```
/// use backstop::failure::{PatternRegistry, Report, Timestamp};
/// use backstop::{RecoveryConfig, strategy};
/// use std::time::Duration;
///
/// let found = PatternRegistry::new().detect_first(&Report::text("503 overloaded"), Timestamp::default());
/// let forecast = strategy::forecast(&RecoveryConfig::default(), found.failure().unwrap(), None);
/// // Two redos after up to 2 s and 4 s, a compaction, then the end.
/// assert_eq!((forecast.redos, forecast.waiting.longest), (3, Duration::from_secs(6)));
/// assert_eq!(forecast.verdict.name(), "aborted");
/// ```
pub fn forecast(config: &RecoveryConfig, error: &RecoveryError, deadline: Option<Duration>) -> Forecast {
    let strategies = StrategyRegistry::new();
    Forecast::of(config, error, deadline, |execute, error, luck| {
        let Some(Strategy::Computes(strategy)) = strategies.get(&execute.plan.strategy) else { return None };
        let answer = strategy.decide(&attempt(execute, error));
        Some(if luck == Luck::Best && is_jittered(execute) { lucky(answer) } else { answer })
    })
}

/// Only `retry` draws its waits.
fn is_jittered(execute: &Execute) -> bool {
    let jitter = execute.plan.config.flag("jitter").unwrap_or(Backoff::default().jitter);
    &*execute.plan.strategy == "retry" && jitter
}

fn lucky(mut answer: Answer) -> Answer {
    if let Answer::Retry { delay, .. } = &mut answer {
        *delay = delay.mul_f64(Backoff::SHORTEST_SHARE);
    }
    answer
}

/// The attempt as a strategy would see it, its jitter off.
fn attempt(execute: &Execute, error: &Arc<RecoveryError>) -> Attempt {
    Attempt::from(AttemptParts {
        session: SessionId::new("forecast").expect("the text is not empty"),
        error: Arc::clone(error),
        number: execute.attempt,
        seq: execute.seq,
        config: execute.plan.clone().with("jitter", false).config,
        earlier: Arc::default(),
        client: None,
        seed: execute.seed,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::failure::{PatternRegistry, Report, Timestamp};
    use crate::policy::{Cause, Span, Verdict};

    fn failure(text: &str) -> RecoveryError {
        let now = Timestamp::from_millis(1_700_000_000_000);
        PatternRegistry::new().detect_first(&Report::text(text), now).into_failure().unwrap()
    }

    fn config(yaml: &str) -> RecoveryConfig {
        RecoveryConfig::parse("test.yaml", yaml).unwrap().config
    }

    fn of(yaml: &str, text: &str) -> Forecast {
        forecast(&config(yaml), &failure(text), None)
    }

    const OVERLOADED: &str = "503 the model is overloaded";

    fn millis(forecast: &Forecast, step: usize) -> Vec<(u128, u128)> {
        let attempts = forecast.steps[step].attempts.iter();
        attempts.map(|attempt| (attempt.delay.shortest.as_millis(), attempt.delay.longest.as_millis())).collect()
    }

    #[test]
    fn the_default_chain_waits_as_its_settings_say() {
        let plan = of("", OVERLOADED);
        assert_eq!(millis(&plan, 0), [(1_000, 2_000), (2_000, 4_000), (0, 0)]);
        assert_eq!(plan.waiting, Span { shortest: Duration::from_secs(3), longest: Duration::from_secs(6) });
        assert_eq!((plan.executions, plan.redos), (5, 3));
        assert_eq!(plan.verdict.name(), "aborted");
        assert!(plan.complete);
    }

    #[test]
    fn without_jitter_the_shortest_wait_is_the_longest() {
        let plan = of("session_error: [{strategy: retry, config: {jitter: false, backoff_factor: 3}}]", OVERLOADED);
        assert_eq!(millis(&plan, 0), [(2_000, 2_000), (6_000, 6_000), (0, 0)]);
        assert_eq!(plan.verdict, Verdict::Exhausted { cause: Cause::Chain });
        assert_eq!(plan.chain.unwrap().origin.to_string(), "test.yaml:1:16");
    }

    #[test]
    fn a_stated_wait_takes_the_place_of_a_shorter_one_and_comes_again() {
        let plan = of("", "429 Too Many Requests. Please try again in 20s.");
        assert_eq!(millis(&plan, 0)[..2], [(20_000, 20_000), (20_000, 20_000)]);
        assert_eq!(plan.steps[0].attempts[0].because.as_deref(), Some("the server stated it"));
    }

    #[test]
    fn a_wait_that_would_not_be_begun_counts_for_nothing() {
        let plan = of("max_wait_ms: 10000", "429 Too Many Requests. Please try again in 20s.");
        let first = &plan.steps[0].attempts[0];
        assert!(first.refused && first.because.as_deref().unwrap().contains("max_wait_ms"));
        assert_eq!((plan.redos, plan.waiting.longest), (0, Duration::ZERO));
    }

    #[test]
    fn a_deadline_ends_it_where_the_next_wait_would_pass_it() {
        let plan = forecast(&config(""), &failure(OVERLOADED), Some(Duration::from_secs(5)));
        assert_eq!(plan.steps[0].attempts.len(), 2, "2 s fit, 4 s more do not");
        assert_eq!(plan.waiting.longest, Duration::from_secs(2));
    }

    #[test]
    fn a_step_that_the_facts_pass_over_says_why() {
        let error = RecoveryError { retryable: false, ..failure(OVERLOADED) };
        let plan = forecast(&config(""), &error, None);
        assert!(plan.steps[0].skipped_because.as_deref().unwrap().contains("not retryable"));
        assert!(plan.steps[0].attempts.is_empty() && !plan.steps[1].attempts.is_empty());
    }

    #[test]
    fn a_failure_for_a_person_has_no_steps() {
        let error = RecoveryError { recoverable: false, ..failure(OVERLOADED) };
        let plan = forecast(&config(""), &error, None);
        assert_eq!((plan.chain, plan.verdict.name()), (None, "escalated"));
    }

    #[test]
    fn the_limit_of_attempts_ends_a_longer_chain() {
        let plan =
            of("max_total_attempts: 3\nsession_error: [{strategy: retry, config: {max_retries: 9}}]", OVERLOADED);
        assert_eq!((plan.executions, plan.redos), (3, 3));
        assert_eq!(plan.verdict, Verdict::Exhausted { cause: Cause::Attempts });
        assert!(plan.remarks.iter().any(|text| text.contains("max_total_attempts")));
    }

    #[test]
    fn an_overflow_is_foreseen_to_be_cut_as_often_as_the_settings_allow() {
        let plan = of("", "This model's maximum context length is 8192 tokens, however you requested 9000 tokens.");
        assert_eq!(plan.steps[0].attempts.len(), 9, "eight cuts, and the ninth moves on");
    }

    #[test]
    fn models_that_failed_are_not_foreseen_again() {
        let plan = of("session_error: [{strategy: fallback_model, config: {models: [a, b]}}]", OVERLOADED);
        let words: Vec<&str> = plan.steps[0].attempts.iter().map(|attempt| &*attempt.status).collect();
        assert_eq!(words, ["retry", "success"]);
    }

    #[test]
    fn an_own_strategy_is_named_as_unknown_and_not_guessed() {
        let plan = of("known_strategies: [mine]\nsession_error: [mine, abort]", OVERLOADED);
        assert!(plan.steps[0].unknown && !plan.steps[1].unknown);
        assert_eq!(plan.verdict.name(), "aborted");
    }

    #[test]
    fn an_endless_configuration_is_given_up_in_time() {
        let steps = vec!["{strategy: retry, config: {max_retries: 1000, backoff_ms: 0}}"; 20].join(", ");
        let plan = of(&format!("max_total_attempts: 1000000\nsession_error: [{steps}]"), OVERLOADED);
        assert!(!plan.complete);
    }
}
