use crate::failure::{Category, Kind};
use crate::policy::config::ConfigBuilder;
use crate::policy::{Chain, ChainKey, RecoveryConfig, Step};

/// Failures of the session that come from the model's server, so that another model may serve.
///
/// Not a broken network or a wrong request: those follow the user to every model.
const OF_THE_SERVER: [Kind; 5] =
    [Kind::RateLimit, Kind::Overloaded, Kind::ServerError, Kind::ServiceUnavailable, Kind::Timeout];

/// Puts the fallback models into the chains; `so_far` is what the configuration says without them.
///
/// `fallback_model` steps that name no model get them, in every chain. For failures of the server, the built-in
/// chain of the session gets such a step before it gives up: one chain for each of these kinds, because one for
/// the whole category would be the user's chain for all its other kinds too, and silence their facts (R17).
pub(super) fn with_fallbacks(mut builder: ConfigBuilder, so_far: &RecoveryConfig, models: &[String]) -> ConfigBuilder {
    if models.is_empty() {
        return builder;
    }
    for chain in so_far.chains() {
        if chain.steps.iter().any(lacks_models) {
            builder = builder.chain(chain.key.clone(), filled(chain, models));
            if !chain.enabled {
                builder = builder.chain_enabled(chain.key.clone(), false);
            }
        }
    }
    let session = so_far.chain(&ChainKey::Category(Category::SessionError));
    let Some(session) = session.filter(|chain| !chain.origin.is_users()) else { return builder };
    for kind in OF_THE_SERVER {
        let key = ChainKey::Kind(kind);
        if so_far.chain(&key).is_none() {
            builder = builder.chain(key, before_giving_up(&session.steps, models));
        }
    }
    builder
}

fn lacks_models(step: &Step) -> bool {
    let named = |setting| !step.config.texts(setting).is_empty();
    &*step.strategy == "fallback_model" && !named("model") && !named("models")
}

fn filled(chain: &Chain, models: &[String]) -> Vec<Step> {
    let fill = |step: &Step| if lacks_models(step) { step.clone().with("models", models) } else { step.clone() };
    chain.steps.iter().map(fill).collect()
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

    fn config(yaml: &str, models: &[&str]) -> RecoveryConfig {
        let models: Vec<String> = models.iter().map(|model| (*model).to_owned()).collect();
        let so_far = ConfigBuilder::new().yaml("test.yaml", yaml).build().unwrap().config;
        with_fallbacks(ConfigBuilder::new().yaml("test.yaml", yaml), &so_far, &models).build().unwrap().config
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
        let session = config.chain(&ChainKey::Category(Category::SessionError)).unwrap();
        assert!(!session.origin.is_users(), "the facts of other kinds must keep their say");
    }

    #[test]
    fn chains_of_the_users_own_stay_as_they_are() {
        let yaml = "session_error: [retry, abort]\nkinds: {auth: [escalate], quota_exhausted: [fallback_model]}";
        let config = config(yaml, &["a"]);
        assert!(config.chain(&ChainKey::Kind(Kind::RateLimit)).is_none());
        assert_eq!(steps(&config, ChainKey::Kind(Kind::Auth)), ["escalate[]"]);
        assert_eq!(steps(&config, ChainKey::Kind(Kind::QuotaExhausted)), [r#"fallback_model["a"]"#]);
    }

    #[test]
    fn without_fallback_models_nothing_changes() {
        assert_eq!(config("{}", &[]), RecoveryConfig::default());
    }
}
