use std::future::Future;
use std::pin::Pin;

use super::Attempt;
use crate::policy::Answer;

/// What [`RecoveryStrategy::execute`] returns.
pub type Execution<'a> = Pin<Box<dyn Future<Output = Answer> + Send + 'a>>;

/// One way to bring a session back.
///
/// Asked once per attempt, it keeps no memory between attempts: all it may know is in the
/// [`Attempt`]. Out of time, it is dropped at an `await`.
///
/// # Panics
///
/// A panic is caught, recorded under the strategy's name, and counts as [`Answer::NextStrategy`].
pub trait RecoveryStrategy: Send + Sync {
    /// The name used in configuration and metrics, such as `retry`.
    fn name(&self) -> &str;

    /// Makes one attempt.
    fn execute<'a>(&'a self, attempt: &'a Attempt) -> Execution<'a>;
}

/// A strategy that only computes its answer: it has no effect of its own, so asking it twice is
/// harmless, it needs no runner, and its attempt and redo are one record (R10).
pub(crate) trait Decide: Send + Sync {
    /// The name used in configuration and metrics.
    fn name(&self) -> &str;

    /// The answer; the same for the same attempt.
    fn decide(&self, attempt: &Attempt) -> Answer;
}
