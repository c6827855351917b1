//! `fallback_model`: the turn again with another model.
//!
//! | setting | default | meaning |
//! | --- | --- | --- |
//! | `model` | none | the model to use, `provider/name` or `name` |
//! | `models` | none | several, in order; `model`, if given too, comes first |
//!
//! Attempt n uses model n; the last one is this step's final word, so its failure moves the chain on.
//! A model that has just failed is passed over. With no model left, the chain goes on at once.
//!
//! ```yaml
//! kinds:
//!   quota_exhausted:
//!     chain:
//!       - strategy: fallback_model
//!         config: { models: [acme/large-2, other/mini-1] }
//!       - strategy: escalate
//! ```

use std::time::Duration;

use crate::failure::RecoveryError;
use crate::policy::{Answer, Remedy, StepConfig};
use crate::strategy::{Attempt, Decide};

pub(crate) struct FallbackModel;

impl Decide for FallbackModel {
    fn name(&self) -> &str {
        "fallback_model"
    }

    fn decide(&self, attempt: &Attempt) -> Answer {
        let models = models(attempt.config());
        if models.is_empty() {
            return Answer::next_strategy("no fallback model is configured");
        }
        let turn = usize::try_from(attempt.number().saturating_sub(1)).unwrap_or(usize::MAX);
        let mut left = models.iter().skip(turn).filter(|name| !has_just_failed(name, attempt.error()));
        match (left.next(), left.next()) {
            (None, _) => Answer::next_strategy("no fallback model is left"),
            (Some(last), None) => Answer::success_with(format!("the last fallback model is {last}"), switch(last)),
            (Some(one), Some(_)) => {
                Answer::retry_with(Duration::ZERO, format!("the fallback model is {one}"), switch(one))
            }
        }
    }
}

fn switch(name: &str) -> Remedy {
    Remedy::SwitchModel { model: name.into() }
}

/// The configured names in order, each once.
fn models(config: &StepConfig) -> Vec<&str> {
    let mut models = vec![];
    for name in config.texts("model").into_iter().chain(config.texts("models")).map(str::trim) {
        if !name.is_empty() && !models.contains(&name) {
            models.push(name);
        }
    }
    models
}

/// Whether the failed turn used this model. A name without a provider means the session's own
/// provider; the same name at two providers is two models.
fn has_just_failed(name: &str, error: &RecoveryError) -> bool {
    let used = error.model.as_deref().unwrap_or_default();
    let bare_name_of = |full: &str| full.rsplit_once('/').is_some_and(|(_, bare)| bare == name);
    let lane = error.lane.as_ref().map_or("", |lane| lane.as_str());
    let of_lane = lane.rsplit_once('@').map_or(lane, |(model, _account)| model);
    name == used || name == of_lane || bare_name_of(used)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::failure::LaneKey;
    use crate::strategy::testing::trial;

    fn answers(settings: serde_json::Value, failing: [&str; 4]) -> Vec<String> {
        (1..)
            .zip(failing)
            .map(|(number, model)| {
                let answer = FallbackModel.decide(&trial(settings.clone()).number(number).model(model).attempt());
                match &answer {
                    Answer::Success { remedy: Some(Remedy::SwitchModel { model }), .. }
                    | Answer::Retry { delay: Duration::ZERO, remedy: Some(Remedy::SwitchModel { model }), .. } => {
                        format!("{} {model}", answer.status())
                    }
                    _ => answer.status().to_owned(),
                }
            })
            .collect()
    }

    #[test]
    fn each_attempt_takes_the_next_model_and_the_last_is_the_final_word() {
        assert_eq!(
            answers(json!({"models": ["a", "b", "c"]}), ["main", "a", "b", "c"]),
            ["retry a", "retry b", "success c", "next_strategy"]
        );
    }

    #[test]
    fn one_model_is_a_list_of_one_and_comes_before_the_list() {
        assert_eq!(answers(json!({"model": "a"}), ["main"; 4])[..2], ["success a", "next_strategy"]);
        assert_eq!(
            answers(json!({"model": "a", "models": ["a", "b"]}), ["main"; 4])[..3],
            ["retry a", "success b", "next_strategy"]
        );
    }

    #[test]
    fn the_model_that_failed_is_passed_over() {
        assert_eq!(answers(json!({"model": "a"}), ["a"; 4])[0], "next_strategy");
        assert_eq!(
            answers(json!({"models": ["a", "b", "c"]}), ["a", "b", "c", "c"]),
            ["retry b", "success c", "next_strategy", "next_strategy"]
        );
        assert_eq!(answers(json!({"models": ["a", "b"]}), ["acme/a"; 4])[0], "success b");
    }

    #[test]
    fn the_same_model_at_another_provider_is_another_model() {
        assert_eq!(answers(json!({"model": "other/a"}), ["a"; 4])[0], "success other/a");
        let at = |lane| trial(json!({"model": "acme/a"})).model("a").lane(LaneKey::of("acme", "a", lane)).attempt();
        assert_eq!(FallbackModel.decide(&at("")).status(), "next_strategy");
        assert_eq!(FallbackModel.decide(&at("team")).status(), "next_strategy");
    }

    #[test]
    fn without_a_usable_model_the_chain_goes_on() {
        for none in [json!({}), json!({"model": ""}), json!({"model": 7}), json!({"models": [" ", 3]})] {
            assert_eq!(answers(none, ["main"; 4])[0], "next_strategy");
        }
    }
}
