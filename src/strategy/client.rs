use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crate::failure::{Report, SessionId};
use crate::policy::Turn;

/// What a client call returns.
pub type ClientCall<'a, T> = Pin<Box<dyn Future<Output = Result<T, ClientError>> + Send + 'a>>;

/// Why a client call did not do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The client cannot do this at all.
    #[error("the client does not support this")]
    Unsupported,
    /// The client tried and failed.
    #[error("the client failed")]
    Failed(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The redone turn ended in a failure of its own (only from [`SessionClient::redo`] and
    /// [`SessionClient::last_turn`]).
    #[error("the turn failed again")]
    TurnFailed(Box<Report>),
}

impl ClientError {
    /// A failure with this message.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::Failed(message.into().into())
    }
}

/// A message to be sent to the session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// Its text.
    pub text: Arc<str>,
    /// The model that answers; the session's own when absent.
    pub model: Option<Arc<str>>,
}

/// The outside world of a session: what Backstop can ask of the agent's own API.
///
/// Every method defaults to [`ClientError::Unsupported`]; a client implements what its agent can do.
/// What is unsupported counts as a failed remedy, and the chain goes on.
///
/// # Cancellation
///
/// A call that runs out of time is dropped at an `await`.
///
/// # Panics
///
/// A panic is caught and counts as a failed call.
pub trait SessionClient: Send + Sync {
    /// Compacts the conversation's history; succeeds only if that really freed something.
    fn compact<'a>(&'a self, _session: &'a SessionId, _preserve: &'a [Arc<str>]) -> ClientCall<'a, ()> {
        unsupported()
    }

    /// Sends a message and returns once it was accepted.
    fn prompt<'a>(&'a self, _session: &'a SessionId, _prompt: &'a Prompt) -> ClientCall<'a, ()> {
        unsupported()
    }

    /// Makes the session use another model from now on.
    fn switch_model<'a>(&'a self, _session: &'a SessionId, _model: &'a str) -> ClientCall<'a, ()> {
        unsupported()
    }

    /// Cuts the session's input to this share of its size.
    fn truncate<'a>(&'a self, _session: &'a SessionId, _ratio: f64) -> ClientCall<'a, ()> {
        unsupported()
    }

    /// Replaces the history by a summary.
    fn summarize<'a>(&'a self, _session: &'a SessionId, _model: Option<&'a str>) -> ClientCall<'a, ()> {
        unsupported()
    }

    /// Goes back to a checkpoint; the last good one when it has no name.
    fn rollback<'a>(&'a self, _session: &'a SessionId, _checkpoint: Option<&'a str>) -> ClientCall<'a, ()> {
        unsupported()
    }

    /// Whether the next turn can be done in the host's alternative way. [`ClientError::Unsupported`], the
    /// default, leaves it to the turn's own code, which sees [`Turn::degraded`]; any other error refuses.
    fn degrade<'a>(&'a self, _session: &'a SessionId) -> ClientCall<'a, ()> {
        unsupported()
    }

    /// Whether the sub-task may be left out; see [`degrade`](Self::degrade).
    fn skip<'a>(&'a self, _session: &'a SessionId) -> ClientCall<'a, ()> {
        unsupported()
    }

    /// Whether [`redo`](Self::redo) is implemented. Without it a strategy's success is recovery (R6).
    fn can_redo(&self) -> bool {
        false
    }

    /// Redoes the turn and resolves when it has *ended*: `Ok` if it worked,
    /// [`ClientError::TurnFailed`] if it failed again.
    fn redo<'a>(&'a self, _turn: &'a Turn) -> ClientCall<'a, ()> {
        unsupported()
    }

    /// How the session's last turn ended, asked after a crash: `Ok` if it worked,
    /// [`ClientError::TurnFailed`] if it failed.
    fn last_turn<'a>(&'a self, _session: &'a SessionId) -> ClientCall<'a, ()> {
        unsupported()
    }
}

fn unsupported<'a>() -> ClientCall<'a, ()> {
    Box::pin(std::future::ready(Err(ClientError::Unsupported)))
}
