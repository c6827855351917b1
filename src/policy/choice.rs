use std::fmt;
use std::sync::Arc;

use super::{Chain, ChainKey, RecoveryConfig, Step, Unhandled};
use crate::failure::{ErrorSeverity, Kind, RecoveryError};

/// What the configuration and the facts decide for a failure (R3, R17).
#[derive(Debug, Clone, PartialEq)]
pub enum Choice {
    /// This chain is run; [`runnable`] says which of its steps.
    Chain {
        /// The chain; its origin is the line that chose it.
        chain: Arc<Chain>,
        /// Which rule chose it.
        because: Because,
    },
    /// A person must decide; no chain is run.
    Escalate {
        /// Which fact says so.
        reason: &'static str,
    },
    /// No episode is opened.
    Unhandled(Unhandled),
}

/// Which rule chose a chain, for the explain record (R15).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Because {
    /// The user wrote a chain for the failure's kind.
    UsersKind,
    /// The user wrote a chain for the failure's category.
    UsersCategory,
    /// The built-in chain of the failure's kind.
    BuiltInKind,
    /// The built-in chain of the failure's category.
    BuiltInCategory,
}

impl fmt::Display for Because {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UsersKind => "the user's chain for this kind",
            Self::UsersCategory => "the user's chain for this category",
            Self::BuiltInKind => "the built-in chain for this kind",
            Self::BuiltInCategory => "the built-in chain for this category",
        })
    }
}

/// What the facts alone decide.
enum Facts {
    Escalate(&'static str),
    NoChain,
    Open,
}

impl RecoveryConfig {
    /// Which chain answers this failure: the user's for the kind, the user's for the category, the
    /// facts, the built-in one for the kind, the built-in one for the category (R3).
    ///
    /// ```
    /// # fn look(error: &backstop::RecoveryError) {
    /// use backstop::RecoveryConfig;
    /// use backstop::policy::Choice;
    ///
    /// if let Choice::Chain { chain, because } = RecoveryConfig::default().choose(error) {
    ///     println!("{} from {}: {because}", chain.key, chain.origin);
    /// }
    /// # }
    /// ```
    pub fn choose(&self, error: &RecoveryError) -> Choice {
        if !self.enabled() {
            return Choice::Unhandled(Unhandled::Disabled);
        }
        let kind = self.chain(&ChainKey::Kind(error.kind.clone()));
        let category = self.chain(&ChainKey::Category(error.category));
        let users = |chain: &&Arc<Chain>| chain.origin.is_users();

        if let Some(chain) = kind.filter(users) {
            return run(chain, Because::UsersKind);
        }
        if let Some(chain) = category.filter(users) {
            return run(chain, Because::UsersCategory);
        }
        match facts(error) {
            Facts::Escalate(reason) => return Choice::Escalate { reason },
            Facts::NoChain => return Choice::Unhandled(Unhandled::NoChain),
            Facts::Open => {}
        }
        match (kind, category) {
            (Some(chain), _) => run(chain, Because::BuiltInKind),
            (None, Some(chain)) => run(chain, Because::BuiltInCategory),
            (None, None) => Choice::Unhandled(Unhandled::NoChain),
        }
    }
}

fn run(chain: &Arc<Chain>, because: Because) -> Choice {
    if !chain.enabled {
        return Choice::Unhandled(Unhandled::Disabled);
    }
    Choice::Chain { chain: Arc::clone(chain), because }
}

fn facts(error: &RecoveryError) -> Facts {
    match error.kind {
        // Decided by a person or bound to the host's transcript: not ours to touch.
        Kind::UserRejected | Kind::ContentFilter | Kind::ToolPairMismatch => Facts::NoChain,
        Kind::DataCorruption => Facts::Escalate("stored data is damaged: a redo could spread it"),
        Kind::GuardBlocked => Facts::Escalate("a guard said no: only a person may overrule it"),
        _ if !counts_as_recoverable(error) => Facts::Escalate("nothing but a person can help"),
        _ => Facts::Open,
    }
}

/// Another model may serve where a key, an allowance or a model's name is the trouble.
const fn another_model_may_serve(kind: &Kind) -> bool {
    matches!(kind, Kind::Auth | Kind::QuotaExhausted | Kind::ModelNotFound)
}

const fn counts_as_recoverable(error: &RecoveryError) -> bool {
    error.recoverable || another_model_may_serve(&error.kind)
}

/// Whether a step may run for this failure, or why it is passed over without a wait, a redo or an
/// attempt (R17).
///
/// Chains that a user wrote run as they are written. Critical failures of the kinds that another
/// model may cure keep their `fallback_model` step besides the drastic ones.
///
/// # Errors
///
/// The reason for passing the step over, for the explain record.
pub fn runnable(step: &Step, error: &RecoveryError, chain: &Chain) -> Result<(), &'static str> {
    if chain.origin.is_users() {
        return Ok(());
    }
    let strategy = &*step.strategy;
    if strategy == "retry" && !error.retryable {
        return Err("the failure is not retryable: the same request would fail again");
    }
    if error.severity == ErrorSeverity::Critical {
        let drastic = matches!(strategy, "degrade" | "rollback" | "skip" | "escalate" | "abort");
        let other_model = strategy == "fallback_model" && another_model_may_serve(&error.kind);
        if !drastic && !other_model {
            return Err("the failure is critical: only degrade, rollback, skip, escalate and abort may run");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::{Category, Domain, RecoveryAction, Timestamp};
    use crate::policy::{Layer, Origin};

    fn failure(kind: Kind) -> RecoveryError {
        RecoveryError {
            category: kind.usual_category().unwrap_or(Category::SessionError),
            kind,
            message: "it failed".into(),
            domain: Domain::Environment,
            severity: ErrorSeverity::Medium,
            retryable: true,
            recoverable: true,
            suggested_action: RecoveryAction::Retry,
            diagnosis: "it failed".into(),
            details: Default::default(),
            pattern: "test".into(),
            fingerprint: 1,
            lane: None,
            model: None,
            tool: None,
            timestamp: Timestamp::from_millis(0),
            raw: None,
        }
    }

    fn written(key: ChainKey, steps: &[&str], layer: Layer) -> Chain {
        let steps = steps.iter().map(|name| Step::new(*name)).collect();
        Chain { key, steps, enabled: true, origin: Origin { layer, place: None } }
    }

    fn with(chains: impl IntoIterator<Item = Chain>) -> RecoveryConfig {
        let mut config = RecoveryConfig::default();
        config.chains.extend(chains.into_iter().map(|chain| (chain.key.clone(), Arc::new(chain))));
        config
    }

    fn users_kind(kind: Kind) -> Chain {
        written(ChainKey::Kind(kind), &["retry"], Layer::File)
    }

    fn users_category(category: Category) -> Chain {
        written(ChainKey::Category(category), &["compact"], Layer::File)
    }

    fn because(choice: &Choice) -> Option<Because> {
        match choice {
            Choice::Chain { because, .. } => Some(*because),
            _ => None,
        }
    }

    #[test]
    fn disabled_recovery_handles_nothing_even_with_a_users_chain() {
        let mut config = with([users_kind(Kind::RateLimit)]);
        config.enabled = false;
        assert_eq!(config.choose(&failure(Kind::RateLimit)), Choice::Unhandled(Unhandled::Disabled));
    }

    #[test]
    fn the_users_chain_for_the_kind_comes_before_the_one_for_the_category() {
        let config = with([users_kind(Kind::Auth), users_category(Category::SessionError)]);
        assert_eq!(because(&config.choose(&failure(Kind::Auth))), Some(Because::UsersKind));
        assert_eq!(because(&config.choose(&failure(Kind::RateLimit))), Some(Because::UsersCategory));
    }

    #[test]
    fn the_users_chain_for_the_category_comes_before_the_built_in_one_for_the_kind() {
        let config = with([users_category(Category::SessionError)]);
        assert_eq!(because(&config.choose(&failure(Kind::Auth))), Some(Because::UsersCategory));
    }

    #[test]
    fn every_layer_but_the_built_in_one_counts_as_the_users() {
        for layer in [Layer::File, Layer::Role, Layer::Builder] {
            let key = ChainKey::Category(Category::GuardViolation);
            let config = with([written(key, &["escalate"], layer)]);
            assert_eq!(because(&config.choose(&failure(Kind::GuardBlocked))), Some(Because::UsersCategory));
        }
    }

    #[test]
    fn the_users_chain_comes_before_the_facts() {
        let config = with([users_kind(Kind::UserRejected), users_kind(Kind::DataCorruption)]);
        let mut error = failure(Kind::DataCorruption);
        error.recoverable = false;
        assert_eq!(because(&config.choose(&error)), Some(Because::UsersKind));
        assert_eq!(because(&config.choose(&failure(Kind::UserRejected))), Some(Because::UsersKind));
    }

    #[test]
    fn an_unrecoverable_failure_is_escalated() {
        let mut error = failure(Kind::DiskFull);
        error.recoverable = false;
        assert!(matches!(RecoveryConfig::default().choose(&error), Choice::Escalate { .. }));
    }

    #[test]
    fn where_another_model_may_serve_the_failure_counts_as_recoverable() {
        for kind in [Kind::Auth, Kind::QuotaExhausted, Kind::ModelNotFound] {
            let mut error = failure(kind);
            error.recoverable = false;
            error.severity = ErrorSeverity::Critical;
            let Choice::Chain { chain, because } = RecoveryConfig::default().choose(&error) else {
                panic!("{} has a chain", error.kind);
            };
            assert_eq!(because, Because::BuiltInKind);
            assert_eq!(&*chain.steps[0].strategy, "fallback_model");
            assert_eq!(runnable(&chain.steps[0], &error, &chain), Ok(()));
        }
    }

    #[test]
    fn damaged_data_and_a_guards_no_are_escalated() {
        for kind in [Kind::DataCorruption, Kind::GuardBlocked] {
            assert!(matches!(RecoveryConfig::default().choose(&failure(kind)), Choice::Escalate { .. }));
        }
    }

    #[test]
    fn what_is_the_persons_or_the_hosts_business_has_no_chain() {
        for kind in [Kind::UserRejected, Kind::ContentFilter, Kind::ToolPairMismatch] {
            let mut error = failure(kind);
            error.recoverable = false;
            assert_eq!(RecoveryConfig::default().choose(&error), Choice::Unhandled(Unhandled::NoChain));
        }
    }

    #[test]
    fn the_built_in_chain_for_the_kind_comes_before_the_one_for_the_category() {
        let config = RecoveryConfig::default();
        assert_eq!(because(&config.choose(&failure(Kind::FileNotFound))), Some(Because::BuiltInKind));
        assert_eq!(because(&config.choose(&failure(Kind::RateLimit))), Some(Because::BuiltInCategory));
    }

    #[test]
    fn a_failure_without_any_chain_is_unhandled() {
        let choice = RecoveryConfig::default().choose(&failure(Kind::VerificationFailed));
        assert_eq!(choice, Choice::Unhandled(Unhandled::NoChain));
    }

    #[test]
    fn a_chain_that_is_switched_off_is_unhandled_and_not_replaced_by_a_less_specific_one() {
        let off = Chain { enabled: false, ..users_kind(Kind::RateLimit) };
        let choice = with([off]).choose(&failure(Kind::RateLimit));
        assert_eq!(choice, Choice::Unhandled(Unhandled::Disabled));
    }

    #[test]
    fn a_category_that_is_switched_off_takes_its_built_in_kinds_with_it() {
        let off = Chain { enabled: false, ..users_category(Category::SessionError) };
        assert_eq!(with([off]).choose(&failure(Kind::Auth)), Choice::Unhandled(Unhandled::Disabled));
    }

    #[test]
    fn a_critical_failure_runs_only_drastic_steps() {
        let names = ["retry", "compact", "fallback_model", "own", "degrade", "rollback", "skip", "escalate", "abort"];
        let chain = written(ChainKey::Category(Category::SessionError), &names, Layer::BuiltIn);
        let mut error = failure(Kind::DiskFull);
        error.severity = ErrorSeverity::Critical;
        let run: Vec<&str> = chain
            .steps
            .iter()
            .filter(|step| runnable(step, &error, &chain).is_ok())
            .map(|step| &*step.strategy)
            .collect();
        assert_eq!(run, ["degrade", "rollback", "skip", "escalate", "abort"]);
    }

    #[test]
    fn a_failure_that_is_not_retryable_passes_over_retry_and_nothing_else() {
        let names = ["retry", "remind_and_retry", "compact"];
        let chain = written(ChainKey::Category(Category::SessionError), &names, Layer::BuiltIn);
        let mut error = failure(Kind::Overloaded);
        error.retryable = false;
        let passed: Vec<bool> = chain.steps.iter().map(|step| runnable(step, &error, &chain).is_err()).collect();
        assert_eq!(passed, [true, false, false]);
    }

    #[test]
    fn a_users_chain_runs_as_it_is_written() {
        let chain = users_kind(Kind::DiskFull);
        let mut error = failure(Kind::DiskFull);
        error.severity = ErrorSeverity::Critical;
        error.retryable = false;
        assert_eq!(runnable(&chain.steps[0], &error, &chain), Ok(()));
    }
}
