use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tokio::sync::mpsc;

use crate::actors::Outcome;
use crate::cli::output;
use crate::client::command::{Hook, HookError};

/// How long the engine may take to call the host after the verdict was told.
const CALL: Duration = Duration::from_secs(1);

/// Where the engine's call of the host (R18) arrives, to be answered by the user's hook.
pub(super) struct Escalations {
    sender: mpsc::UnboundedSender<Arc<Outcome>>,
    receiver: mpsc::UnboundedReceiver<Arc<Outcome>>,
}

/// What the hook finds on its stdin.
#[derive(Serialize)]
struct Bundle<'a> {
    /// Failure, attempts, and every decision.
    #[serde(flatten)]
    outcome: &'a Outcome,
    /// How to go on once a person has decided.
    resume: String,
}

impl Escalations {
    pub fn new() -> Self {
        let (sender, receiver) = mpsc::unbounded_channel();
        Self { sender, receiver }
    }

    /// What the engine is to call.
    pub fn call(&self) -> impl Fn(Arc<Outcome>) + Send + Sync + 'static {
        let sender = self.sender.clone();
        move |outcome| {
            let _nobody_asks = sender.send(outcome);
        }
    }

    /// The escalation that the host was called for: once per streak of strikes, not for each verdict (R16).
    pub async fn called(&mut self) -> Option<Arc<Outcome>> {
        tokio::time::timeout(CALL, self.receiver.recv()).await.ok().flatten()
    }
}

/// Runs the user's `--on-escalate`.
pub(super) async fn tell(command: &OsString, outcome: &Outcome) -> Result<(), HookError> {
    let session = outcome.session.as_str();
    let resume = format!("mend the cause, then: backstop exec --session {} …", output::quoted(session));
    let set = |name: &str, value: &str| (OsString::from(name), Some(OsString::from(value.replace('\0', ""))));
    let mut env = vec![
        set("BACKSTOP_SESSION", session),
        set("BACKSTOP_VERDICT", outcome.verdict.name()),
        set("BACKSTOP_REASON", &crate::failure::mask(&outcome.verdict.to_string())),
    ];
    env.extend(outcome.error.as_ref().map(|error| set("BACKSTOP_KIND", error.kind.as_str())));
    let bundle = serde_json::to_vec(&Bundle { outcome, resume }).unwrap_or_default();
    Hook::new("on-escalate", command).run(env, Some(bundle.into())).await
}
