use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use super::{ChildSpec, Control, EndedBy, Exit, Limits, Outputs, StartError, Stdin, run};

/// A user's command that does a part of recovery: `--on-compact CMD` and its like.
///
/// It runs under `sh -c` with the variables given to it; what it prints goes to stderr, so that stdout stays
/// the agent's. Exit code 0 means that it did what it was asked.
#[derive(Debug, Clone)]
pub struct Hook {
    name: String,
    command: OsString,
    limit: Duration,
}

/// Why a hook did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HookError {
    /// No shell could be started.
    #[error("hook {name} could not be started")]
    Start {
        /// The hook.
        name: String,
        /// Why.
        #[source]
        source: StartError,
    },
    /// It ended with a failure.
    #[error("hook {name} failed with {exit}")]
    Failed {
        /// The hook.
        name: String,
        /// How it ended.
        exit: Exit,
    },
    /// It ran for too long and was ended.
    #[error("hook {name} was ended after {} s", limit.as_secs_f64())]
    TimedOut {
        /// The hook.
        name: String,
        /// Its limit.
        limit: Duration,
    },
}

impl Hook {
    /// The usual time limit: that of a strategy.
    pub const LIMIT: Duration = Duration::from_secs(120);

    /// A hook under the name that messages use, such as `on-compact`.
    pub fn new(name: impl Into<String>, command: impl Into<OsString>) -> Self {
        Self { name: name.into(), command: command.into(), limit: Self::LIMIT }
    }

    /// Replaces the time limit.
    #[must_use]
    pub fn with_limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Runs it to its end with these variables, and this text on its stdin.
    ///
    /// # Errors
    ///
    /// [`HookError`]; nothing of the hook is left running.
    ///
    /// # Cancellation
    ///
    /// Dropping the future kills the hook and its children.
    pub async fn run(&self, env: Vec<(OsString, Option<OsString>)>, input: Option<Arc<[u8]>>) -> Result<(), HookError> {
        let spec = ChildSpec::new("sh", [OsString::from("-c"), self.command.clone()])
            .with_env(env)
            .with_stdin(input.map_or(Stdin::Null, Stdin::Replay))
            .with_limits(Limits { turn_timeout: Some(self.limit), tail_bytes: 0, ..Limits::default() });
        let name = || self.name.clone();
        let outcome = run(&spec, Outputs::to_stderr(), Control::new().watch())
            .await
            .map_err(|source| HookError::Start { name: name(), source })?;
        match (outcome.ended_by, outcome.exit) {
            (EndedBy::Own, Exit::Code(0)) => Ok(()),
            (EndedBy::Own, exit) => Err(HookError::Failed { name: name(), exit }),
            _ => Err(HookError::TimedOut { name: name(), limit: self.limit }),
        }
    }
}
