use std::ffi::OsString;
use std::sync::{Arc, Mutex, PoisonError};

use super::Hook;
use super::invocation::clean;
use crate::failure::{Kind, SessionId};
use crate::strategy::{ClientCall, ClientError, SessionClient};

/// A session client made of users' hooks; what has no hook is unsupported.
///
/// Each hook finds `BACKSTOP_SESSION`, `BACKSTOP_REMEDY`, `BACKSTOP_KIND` (once a failure was noted) and, where
/// they apply, `BACKSTOP_PRESERVE` (one entry a line), `BACKSTOP_MODEL` and `BACKSTOP_CHECKPOINT`.
///
/// ```
/// use backstop::client::command::{Hook, HookClient};
///
/// let client = HookClient::new().on_compact(Hook::new("on-compact", "my-agent compact \"$BACKSTOP_SESSION\""));
/// ```
#[derive(Debug, Default)]
pub struct HookClient {
    compact: Option<Hook>,
    summarize: Option<Hook>,
    rollback: Option<Hook>,
    kind: Mutex<Option<Kind>>,
}

impl HookClient {
    /// A client that supports nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Compacts with this hook.
    #[must_use]
    pub fn on_compact(mut self, hook: Hook) -> Self {
        self.compact = Some(hook);
        self
    }

    /// Summarizes with this hook.
    #[must_use]
    pub fn on_summarize(mut self, hook: Hook) -> Self {
        self.summarize = Some(hook);
        self
    }

    /// Rolls back with this hook.
    #[must_use]
    pub fn on_rollback(mut self, hook: Hook) -> Self {
        self.rollback = Some(hook);
        self
    }

    /// Notes the failure that the next hooks are about.
    pub fn note_failure(&self, kind: &Kind) {
        *self.kind.lock().unwrap_or_else(PoisonError::into_inner) = Some(kind.clone());
    }

    fn call<'a>(
        &'a self,
        hook: Option<&'a Hook>,
        remedy: &str,
        session: &SessionId,
        more: [(&str, Option<String>); 3],
    ) -> ClientCall<'a, ()> {
        let Some(hook) = hook else { return Box::pin(std::future::ready(Err(ClientError::Unsupported))) };
        let kind = self.kind.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let first = [
            ("BACKSTOP_SESSION", Some(session.as_str().to_owned())),
            ("BACKSTOP_REMEDY", Some(remedy.to_owned())),
            ("BACKSTOP_KIND", kind.map(|kind| kind.as_str().to_owned())),
        ];
        let env = first
            .into_iter()
            .chain(more)
            .map(|(name, value)| (name.into(), value.map(|value| OsString::from(clean(&value)))))
            .collect();
        Box::pin(async move { hook.run(env, None).await.map_err(|error| ClientError::Failed(error.into())) })
    }
}

/// The variables that only some remedies have; the others remove them.
fn details(
    preserve: &[Arc<str>],
    model: Option<&str>,
    checkpoint: Option<&str>,
) -> [(&'static str, Option<String>); 3] {
    let preserve = (!preserve.is_empty()).then(|| preserve.join("\n"));
    [
        ("BACKSTOP_PRESERVE", preserve),
        ("BACKSTOP_MODEL", model.map(str::to_owned)),
        ("BACKSTOP_CHECKPOINT", checkpoint.map(str::to_owned)),
    ]
}

impl SessionClient for HookClient {
    fn compact<'a>(&'a self, session: &'a SessionId, preserve: &'a [Arc<str>]) -> ClientCall<'a, ()> {
        self.call(self.compact.as_ref(), "compact", session, details(preserve, None, None))
    }

    fn summarize<'a>(&'a self, session: &'a SessionId, model: Option<&'a str>) -> ClientCall<'a, ()> {
        self.call(self.summarize.as_ref(), "summarize", session, details(&[], model, None))
    }

    fn rollback<'a>(&'a self, session: &'a SessionId, checkpoint: Option<&'a str>) -> ClientCall<'a, ()> {
        self.call(self.rollback.as_ref(), "rollback", session, details(&[], None, checkpoint))
    }
}
