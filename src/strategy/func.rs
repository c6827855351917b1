use std::future::Future;
use std::sync::Arc;

use super::{Attempt, Execution, RecoveryStrategy};
use crate::policy::Answer;

/// An async closure as a strategy; it gets the [`Attempt`], cheap to clone, by value.
///
/// ```
/// use backstop::strategy::{FnStrategy, RecoveryStrategy};
/// use backstop::{Answer, Attempt};
///
/// let strategy = FnStrategy::new("wake_tunnel", |attempt: Attempt| async move {
///     attempt.inject("The tunnel was restarted.");
///     Answer::success("the tunnel is up")
/// });
/// assert_eq!(strategy.name(), "wake_tunnel");
/// ```
pub struct FnStrategy<F> {
    name: Arc<str>,
    execute: F,
}

impl<F, Fut> FnStrategy<F>
where
    F: Fn(Attempt) -> Fut + Send + Sync,
    Fut: Future<Output = Answer> + Send + 'static,
{
    /// A strategy of this name that asks `execute` at every attempt.
    pub fn new(name: impl Into<Arc<str>>, execute: F) -> Self {
        Self { name: name.into(), execute }
    }
}

impl<F, Fut> RecoveryStrategy for FnStrategy<F>
where
    F: Fn(Attempt) -> Fut + Send + Sync,
    Fut: Future<Output = Answer> + Send + 'static,
{
    fn name(&self) -> &str {
        &self.name
    }

    fn execute<'a>(&'a self, attempt: &'a Attempt) -> Execution<'a> {
        Box::pin((self.execute)(attempt.clone()))
    }
}
