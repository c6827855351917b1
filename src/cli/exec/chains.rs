use std::collections::BTreeMap;
use std::sync::Arc;

use super::means::Means;
use crate::failure::{Category, Kind};
use crate::policy::config::ConfigBuilder;
use crate::policy::{ChainKey, RecoveryConfig, Step};

/// Failures of the session that come from the model's server, so that another model may serve.
///
/// Not a broken network or a wrong request: those follow the user to every model.
const OF_THE_SERVER: [Kind; 5] =
    [Kind::RateLimit, Kind::Overloaded, Kind::ServerError, Kind::ServiceUnavailable, Kind::Timeout];

/// Steps that were taken out of the chains, because this run could not carry them out.
#[derive(Debug, Default)]
pub(super) struct PassedOver(BTreeMap<ChainKey, Vec<(Arc<str>, &'static str)>>);

impl PassedOver {
    /// What a chain lost, as people read it: `compact (no --on-compact)`.
    pub fn of(&self, chain: &ChainKey) -> Vec<String> {
        let lost = self.0.get(chain).into_iter().flatten();
        lost.map(|(strategy, lacks)| format!("{strategy} ({lacks})")).collect()
    }

    /// The same once: what was taken is not said of another chain either.
    pub fn take(&mut self, chain: &ChainKey) -> Vec<String> {
        let lost = self.0.remove(chain).unwrap_or_default();
        for others in self.0.values_mut() {
            others.retain(|(strategy, _)| lost.iter().all(|(said, _)| said != strategy));
        }
        lost.into_iter().map(|(strategy, lacks)| format!("{strategy} ({lacks})")).collect()
    }
}

/// Fits the chains to what a run can do; `so_far` is what the configuration says by itself.
///
/// `fallback_model` steps that name no model get these, in every chain. For failures of the server, the built-in
/// chain of the session gets such a step before it gives up. What the run cannot carry out is taken out, so that
/// it costs neither an attempt nor the same request again. Each chain stays the chain of whoever wrote it, except
/// where the user's chain for the session would hide a built-in one that these models are for.
pub(super) fn fitted(
    mut builder: ConfigBuilder,
    so_far: &RecoveryConfig,
    models: &[String],
    means: Means,
) -> (ConfigBuilder, PassedOver) {
    let mut passed_over = PassedOver::default();
    let mut fit = |key: &ChainKey, steps: Vec<Step>, before: &[Step]| {
        let (lost, kept): (Vec<Step>, Vec<Step>) =
            steps.into_iter().partition(|step| means.lacks(&step.strategy).is_some());
        let named = |step: Step| means.lacks(&step.strategy).map(|lacks| (step.strategy, lacks));
        if !lost.is_empty() {
            passed_over.0.insert(key.clone(), lost.into_iter().filter_map(named).collect());
        }
        (kept != before).then_some(kept)
    };
    let session = so_far.chain(&ChainKey::Category(Category::SessionError));
    let hides = session.is_some_and(|chain| chain.origin.is_users());
    for chain in so_far.chains() {
        let filled = filled(&chain.steps, models);
        let is_hidden = hides && !chain.origin.is_users() && filled != chain.steps;
        match fit(&chain.key, filled, &chain.steps) {
            Some(steps) if is_hidden => builder = builder.chain(chain.key.clone(), steps),
            Some(steps) => builder = builder.adapt(chain.key.clone(), steps),
            None => {}
        }
    }
    if let Some(session) = session.filter(|chain| !chain.origin.is_users() && !models.is_empty()) {
        let keys = OF_THE_SERVER.into_iter().map(ChainKey::Kind);
        for key in keys.filter(|key| so_far.chain(key).is_none()) {
            if let Some(steps) = fit(&key, before_giving_up(&session.steps, models), &[]) {
                builder = builder.adapt(key, steps);
            }
        }
    }
    (builder, passed_over)
}

fn filled(steps: &[Step], models: &[String]) -> Vec<Step> {
    let named = |step: &Step, setting| !step.config.texts(setting).is_empty();
    let lacks_models =
        |step: &Step| &*step.strategy == "fallback_model" && !named(step, "model") && !named(step, "models");
    let fill = |step: &Step| match lacks_models(step) && !models.is_empty() {
        true => step.clone().with("models", models),
        false => step.clone(),
    };
    steps.iter().map(fill).collect()
}

fn before_giving_up(steps: &[Step], models: &[String]) -> Vec<Step> {
    let gives_up = |step: &Step| matches!(&*step.strategy, "abort" | "escalate");
    let at = steps.iter().position(gives_up).unwrap_or(steps.len());
    let mut steps = steps.to_vec();
    steps.insert(at, Step::new("fallback_model").with("models", models));
    steps
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const ALL: Means = Means { compact: true, summarize: true, rollback: true, inject: true };
    const NONE: Means = Means { compact: false, summarize: false, rollback: false, inject: false };

    fn fitted_to(yaml: &str, models: &[&str], means: Means) -> (RecoveryConfig, PassedOver) {
        let models: Vec<String> = models.iter().map(|model| (*model).to_owned()).collect();
        let so_far = ConfigBuilder::new().yaml("test.yaml", yaml).build().unwrap().config;
        let (builder, passed) = fitted(ConfigBuilder::new().yaml("test.yaml", yaml), &so_far, &models, means);
        (builder.build().unwrap().config, passed)
    }

    fn config(yaml: &str, models: &[&str]) -> RecoveryConfig {
        fitted_to(yaml, models, ALL).0
    }

    fn steps(config: &RecoveryConfig, key: ChainKey) -> Vec<String> {
        let chain = config.chain(&key).unwrap();
        chain.steps.iter().map(|step| format!("{}{:?}", step.strategy, step.config.texts("models"))).collect()
    }

    #[test]
    fn another_model_is_tried_at_once_where_the_first_one_is_the_trouble() {
        let config = config("{}", &["a", "b"]);
        for kind in [Kind::Auth, Kind::QuotaExhausted, Kind::ModelNotFound] {
            assert_eq!(steps(&config, ChainKey::Kind(kind)), [r#"fallback_model["a", "b"]"#, "escalate[]"]);
        }
    }

    #[test]
    fn another_model_is_the_last_resort_where_the_server_is_the_trouble() {
        let config = config("{}", &["a"]);
        let chain = steps(&config, ChainKey::Kind(Kind::Overloaded));
        assert_eq!(chain, ["retry[]", "compact[]", r#"fallback_model["a"]"#, "abort[]"]);
    }

    #[test]
    fn chains_that_are_only_fitted_leave_the_facts_their_say() {
        let (config, _) = fitted_to("{}", &["a"], NONE);
        assert!(config.chains().all(|chain| !chain.origin.is_users()), "{config:#?}");
        let own = fitted_to("kinds: {timeout: [compact, fallback_model, abort]}", &["a"], NONE).0;
        let timeout = own.chain(&ChainKey::Kind(Kind::Timeout)).unwrap();
        assert!(timeout.origin.to_string().starts_with("test.yaml:1:"), "{}", timeout.origin);
        assert_eq!(steps(&own, ChainKey::Kind(Kind::Timeout)), [r#"fallback_model["a"]"#, "abort[]"]);
    }

    #[test]
    fn what_nobody_can_carry_out_is_taken_out_and_said_once() {
        let (config, mut passed) = fitted_to("{}", &["a"], NONE);
        let (context, session) = (Category::ContextWindow, Category::SessionError);
        assert_eq!(steps(&config, ChainKey::Category(context)), ["abort[]"]);
        assert_eq!(steps(&config, ChainKey::Category(session)), ["retry[]", "abort[]"]);
        assert_eq!(steps(&config, ChainKey::Kind(Kind::Overloaded)), ["retry[]", r#"fallback_model["a"]"#, "abort[]"]);
        assert_eq!(passed.take(&ChainKey::Kind(Kind::Overloaded)), ["compact (no --on-compact)"]);
        assert!(passed.take(&ChainKey::Category(session)).is_empty());
        assert_eq!(passed.take(&ChainKey::Category(context)).len(), 2);
    }

    #[test]
    fn a_chain_of_which_nothing_is_left_is_exhausted_at_once() {
        let (config, _) = fitted_to("context_window: [truncate]", &[], NONE);
        let chain = config.chain(&ChainKey::Category(Category::ContextWindow)).unwrap();
        assert!(chain.enabled && chain.steps.is_empty());
    }

    #[test]
    fn a_chain_that_is_switched_off_stays_off() {
        let (config, _) = fitted_to("session_error: false\nkinds: {auth: false}", &["a"], NONE);
        assert!(!config.chain(&ChainKey::Category(Category::SessionError)).unwrap().enabled);
        assert!(!config.chain(&ChainKey::Kind(Kind::Auth)).unwrap().enabled);
        assert!(config.chain(&ChainKey::Kind(Kind::Timeout)).is_none());
    }

    #[test]
    fn chains_of_the_users_own_stay_as_they_are() {
        let yaml = "session_error: [retry, abort]\nkinds: {auth: [escalate], quota_exhausted: [fallback_model]}";
        let config = config(yaml, &["a"]);
        assert!(config.chain(&ChainKey::Kind(Kind::RateLimit)).is_none());
        assert_eq!(steps(&config, ChainKey::Kind(Kind::Auth)), ["escalate[]"]);
        assert_eq!(steps(&config, ChainKey::Kind(Kind::QuotaExhausted)), [r#"fallback_model["a"]"#]);
        let unknown = config.chain(&ChainKey::Kind(Kind::ModelNotFound)).unwrap();
        assert!(unknown.origin.is_users(), "else the chain for the session would hide it");
    }

    #[test]
    fn where_all_is_at_hand_nothing_changes() {
        assert_eq!(config("{}", &[]), RecoveryConfig::default());
    }
}
