use std::sync::Arc;

use super::RecoveryConfig;
use crate::failure::Kind;
use crate::policy::{Chain, ChainKey, Origin, Step};

/// Redos by `retry` in a self-healing loop, after 2, 4 and 8 seconds.
const RETRIES: u64 = 3;

impl RecoveryConfig {
    /// The same configuration as a self-healing loop keeps to it: only built-in chains differ. Nobody watches
    /// a loop, so what would abort escalates; `retry` redoes at most three times; and a verifier's no is
    /// answered by reminders, then a rollback, then a person.
    ///
    /// ```
    /// use backstop::failure::Kind;
    /// use backstop::{ChainKey, RecoveryConfig};
    ///
    /// let config = RecoveryConfig::default().for_loops();
    /// let chain = config.chain(&ChainKey::Kind(Kind::VerificationFailed)).unwrap();
    /// let steps: Vec<&str> = chain.steps.iter().map(|step| &*step.strategy).collect();
    /// assert_eq!(steps, ["remind_and_retry", "rollback", "escalate"]);
    /// ```
    #[must_use]
    pub fn for_loops(&self) -> Self {
        let mut config = self.clone();
        for chain in config.chains.values_mut().filter(|chain| !chain.origin.is_users()) {
            let steps = chain.steps.iter().map(for_loop).collect();
            *chain = Arc::new(Chain { steps, ..(**chain).clone() });
        }
        let remind = Step::new("remind_and_retry").with("max_retries", 2);
        let own = [
            (Kind::VerificationFailed, vec![remind, Step::new("rollback"), Step::new("escalate")]),
            (Kind::VerifierContradiction, vec![Step::new("escalate")]),
        ];
        for (kind, steps) in own {
            let key = ChainKey::Kind(kind);
            let chain = Chain { key: key.clone(), steps, enabled: true, origin: Origin::BUILT_IN };
            config.chains.entry(key).or_insert_with(|| Arc::new(chain));
        }
        config
    }
}

fn for_loop(step: &Step) -> Step {
    match &*step.strategy {
        "abort" => Step { strategy: "escalate".into(), config: Arc::clone(&step.config) },
        "retry" if step.config.get("max_retries").is_none() => step.clone().with("max_retries", RETRIES),
        _ => step.clone(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn built_in_chains_escalate_where_they_aborted_and_the_users_stay() {
        let text = "json_error: [{strategy: abort}]\nkinds:\n  verification_failed: {chain: [{strategy: abort}]}\n";
        let config = RecoveryConfig::parse("r.yaml", text).unwrap().config.for_loops();
        let key_of = |key: &str| ChainKey::try_from(key.to_owned()).unwrap();
        let steps = |key: &str| {
            let chain = config.chain(&key_of(key)).unwrap();
            chain.steps.iter().map(|step| step.strategy.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(steps("session_error"), ["retry", "compact", "escalate"]);
        assert_eq!(steps("json_error"), ["abort"]);
        assert_eq!(steps("kinds.verification_failed"), ["abort"]);
        assert_eq!(steps("kinds.verifier_contradiction"), ["escalate"]);
        let retry = &config.chain(&key_of("session_error")).unwrap().steps[0];
        assert_eq!(retry.config.integer("max_retries"), Some(3));
    }
}
