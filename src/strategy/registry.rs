use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::future::{Future, ready};
use std::sync::{Arc, PoisonError, RwLock};

use super::built_in::{
    abort::Abort, compact::Compact, degrade::Degrade, escalate::Escalate, fallback_model::FallbackModel,
    remind_and_retry::RemindAndRetry, retry::Retry, rollback::Rollback, skip::Skip, suggested::Suggested,
    summarize::Summarize, truncate::Truncate,
};
use super::{Attempt, Decide, Execution, FnStrategy, RecoveryStrategy};
use crate::policy::Answer;

/// The strategies that chains can name. Clones share one set; a change is seen by all of them.
///
/// It begins with the [built-in ones](super::built_in). A strategy of the host's own takes the place
/// of any other with its name.
///
/// ```
/// use backstop::strategy::StrategyRegistry;
/// use backstop::{Answer, Attempt};
///
/// let registry = StrategyRegistry::new();
/// registry.register_fn("page_kim", |attempt: Attempt| async move {
///     Answer::escalate(format!("Kim was paged about {}", attempt.error().kind))
/// })?;
/// assert!(registry.known("page_kim"));
/// assert!(registry.known("retry"));
/// # Ok::<(), backstop::strategy::UnnamedStrategy>(())
/// ```
#[derive(Clone)]
pub struct StrategyRegistry {
    /// Replaced as a whole at every change, so that a reader holds the lock for a clone only.
    current: Arc<RwLock<Arc<Named>>>,
}

#[derive(Clone)]
struct Named {
    all: BTreeMap<Arc<str>, Strategy>,
    /// The names of those that only compute.
    computing: Arc<BTreeSet<Arc<str>>>,
}

impl Named {
    fn of(all: BTreeMap<Arc<str>, Strategy>) -> Self {
        let computes = |(name, strategy): (&Arc<str>, &Strategy)| {
            matches!(strategy, Strategy::Computes(_)).then(|| Arc::clone(name))
        };
        let computing = Arc::new(all.iter().filter_map(computes).collect());
        Self { all, computing }
    }
}

/// A strategy's name was empty or blank, so no chain could name it; nothing was registered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a strategy needs a name")]
pub struct UnnamedStrategy;

/// A strategy as the shell runs it.
#[derive(Clone)]
pub(crate) enum Strategy {
    /// It only computes: asked in place, without a runner.
    Computes(Arc<dyn Decide>),
    /// It may act: it runs on a runner, with a time limit.
    Acts(Arc<dyn RecoveryStrategy>),
}

impl Default for StrategyRegistry {
    fn default() -> Self {
        Self::new()
    }
}

impl StrategyRegistry {
    /// The built-in strategies.
    pub fn new() -> Self {
        let built_in: [Arc<dyn Decide>; 12] = [
            Arc::new(Retry),
            Arc::new(RemindAndRetry),
            Arc::new(Truncate),
            Arc::new(Compact),
            Arc::new(Summarize),
            Arc::new(FallbackModel),
            Arc::new(Rollback),
            Arc::new(Degrade),
            Arc::new(Skip),
            Arc::new(Suggested),
            Arc::new(Escalate),
            Arc::new(Abort),
        ];
        let named = built_in.into_iter().map(|one| (one.name().into(), Strategy::Computes(one))).collect();
        Self { current: Arc::new(RwLock::new(Arc::new(Named::of(named)))) }
    }

    /// Adds a strategy under its name; returns the one whose place it took.
    ///
    /// # Errors
    ///
    /// [`UnnamedStrategy`] if the name is blank; nothing changes.
    pub fn register(
        &self,
        strategy: Arc<dyn RecoveryStrategy>,
    ) -> Result<Option<Arc<dyn RecoveryStrategy>>, UnnamedStrategy> {
        let name: Arc<str> = strategy.name().into();
        if name.trim().is_empty() {
            return Err(UnnamedStrategy);
        }
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let mut all = current.all.clone();
        let replaced = all.insert(name, Strategy::Acts(strategy));
        *current = Arc::new(Named::of(all));
        Ok(replaced.map(Strategy::into_acting))
    }

    /// Adds an async closure as a strategy; returns the strategy whose place it took.
    ///
    /// # Errors
    ///
    /// [`UnnamedStrategy`] if the name is blank; nothing changes.
    pub fn register_fn<F, Fut>(
        &self,
        name: impl Into<Arc<str>>,
        execute: F,
    ) -> Result<Option<Arc<dyn RecoveryStrategy>>, UnnamedStrategy>
    where
        F: Fn(Attempt) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Answer> + Send + 'static,
    {
        self.register(Arc::new(FnStrategy::new(name, execute)))
    }

    /// The strategy of this name, to be wrapped by another or tried out.
    pub fn strategy(&self, name: &str) -> Option<Arc<dyn RecoveryStrategy>> {
        self.get(name).map(Strategy::into_acting)
    }

    /// All names, in alphabetical order.
    pub fn names(&self) -> Vec<Arc<str>> {
        self.snapshot().all.keys().cloned().collect()
    }

    /// Whether a chain can name it.
    pub fn known(&self, name: &str) -> bool {
        self.snapshot().all.contains_key(name)
    }

    /// The names of those that only compute.
    pub(crate) fn computing(&self) -> Arc<BTreeSet<Arc<str>>> {
        Arc::clone(&self.snapshot().computing)
    }

    /// The strategy of this name, as the shell runs it.
    pub(crate) fn get(&self, name: &str) -> Option<Strategy> {
        self.snapshot().all.get(name).cloned()
    }

    fn snapshot(&self) -> Arc<Named> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl fmt::Debug for StrategyRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StrategyRegistry").field(&self.names()).finish()
    }
}

impl Strategy {
    fn into_acting(self) -> Arc<dyn RecoveryStrategy> {
        match self {
            Self::Computes(strategy) => Arc::new(Computed(strategy)),
            Self::Acts(strategy) => strategy,
        }
    }
}

/// A built-in strategy behind the public trait.
struct Computed(Arc<dyn Decide>);

impl RecoveryStrategy for Computed {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn execute<'a>(&'a self, attempt: &'a Attempt) -> Execution<'a> {
        Box::pin(ready(self.0.decide(attempt)))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::policy::config::BUILT_IN_STRATEGIES;
    use crate::strategy::testing::trial;

    async fn ask(registry: &StrategyRegistry, name: &str) -> Answer {
        registry.strategy(name).unwrap().execute(&trial(json!({"jitter": false})).attempt()).await
    }

    #[test]
    fn it_knows_what_the_configuration_calls_built_in_and_nothing_else() {
        let mut expected = BUILT_IN_STRATEGIES.to_vec();
        expected.sort_unstable();
        let registry = StrategyRegistry::new();
        assert_eq!(registry.names().iter().map(|name| &**name).collect::<Vec<_>>(), expected);
        assert!(expected.iter().all(|name| matches!(registry.get(name), Some(Strategy::Computes(_)))));
        assert!(registry.get("compct").is_none() && !registry.known("compct"));
    }

    #[tokio::test]
    async fn a_closure_is_a_strategy_and_every_clone_sees_it() {
        let registry = StrategyRegistry::new();
        let clone = registry.clone();
        let replaced = registry.register_fn("own", async |attempt: Attempt| {
            attempt.inject("hello");
            Answer::success(format!("attempt {}", attempt.number()))
        });
        assert!(replaced.unwrap().is_none());
        assert!(clone.known("own") && matches!(clone.get("own"), Some(Strategy::Acts(_))));
        assert_eq!(ask(&clone, "own").await, Answer::success("attempt 1"));
    }

    #[tokio::test]
    async fn an_own_strategy_replaces_the_built_in_one_and_can_still_ask_it() {
        let registry = StrategyRegistry::new();
        let built_in = registry.strategy("retry").unwrap();
        let own = move |attempt: Attempt| {
            let built_in = Arc::clone(&built_in);
            async move {
                match built_in.execute(&attempt).await {
                    Answer::Retry { delay, .. } => Answer::retry(delay * 2, "twice as patient"),
                    other => other,
                }
            }
        };
        let replaced = registry.register_fn("retry", own).unwrap().unwrap();
        assert_eq!(replaced.name(), "retry");
        assert_eq!(registry.names().len(), BUILT_IN_STRATEGIES.len());
        assert!(matches!(registry.get("retry"), Some(Strategy::Acts(_))));
        let Answer::Retry { delay, .. } = ask(&registry, "retry").await else { panic!("it retries") };
        assert_eq!(delay.as_millis(), 4_000);
    }

    #[test]
    fn a_strategy_without_a_name_is_refused() {
        let registry = StrategyRegistry::new();
        for name in ["", " \t"] {
            let refused = registry.register_fn(name, async |_| Answer::success("never asked"));
            assert!(matches!(refused, Err(UnnamedStrategy)));
        }
        assert_eq!(registry.names().len(), BUILT_IN_STRATEGIES.len());
    }
}
