use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::CheckpointManager;
use crate::failure::SessionId;
use crate::policy::Turn;
use crate::state::Checkpoint;
use crate::strategy::{ClientCall, ClientError, Prompt, SessionClient};

/// What a loop itself can do of a remedy; the rest is its host's client's.
pub(super) struct LoopClient {
    pub checkpoints: CheckpointManager,
    pub host: Option<Arc<dyn SessionClient>>,
    pub has_alternative: bool,
    pub max_degrades: u32,
    pub max_skips: u32,
    pub granted: Granted,
}

/// What was granted and is not yet applied, and how often over the whole loop.
#[derive(Default)]
pub(super) struct Granted {
    pub degrades: AtomicU32,
    pub skips: AtomicU32,
    pub compacted: AtomicBool,
    restored: Mutex<Option<Checkpoint>>,
}

impl Granted {
    /// The checkpoint to go back to before the next try.
    pub fn take_restored(&self) -> Option<Checkpoint> {
        self.restored.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Counts one up to a cap; `false` once it is reached.
fn grant(count: &AtomicU32, cap: u32) -> bool {
    let more = |now: u32| (now < cap).then_some(now + 1);
    count.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more).is_ok()
}

impl LoopClient {
    /// A host's call that shrinks the context when it works.
    fn shrinking<'a>(&'a self, call: Option<ClientCall<'a, ()>>) -> ClientCall<'a, ()> {
        Box::pin(async move {
            call.ok_or(ClientError::Unsupported)?.await?;
            self.granted.compacted.store(true, Ordering::SeqCst);
            Ok(())
        })
    }

    fn host(&self) -> Option<&dyn SessionClient> {
        self.host.as_deref()
    }
}

impl SessionClient for LoopClient {
    fn rollback<'a>(&'a self, _: &'a SessionId, checkpoint: Option<&'a str>) -> ClientCall<'a, ()> {
        Box::pin(async move {
            let found = match checkpoint {
                Some(name) => self.checkpoints.load(name).await,
                None => self.checkpoints.last_good().await,
            };
            let found = found.map_err(|error| ClientError::Failed(error.into()))?;
            let found = found.ok_or_else(|| ClientError::failed("there is no such checkpoint"))?;
            *self.granted.restored.lock().unwrap_or_else(PoisonError::into_inner) = Some(found);
            Ok(())
        })
    }

    fn degrade<'a>(&'a self, _: &'a SessionId) -> ClientCall<'a, ()> {
        let refusal = if !self.has_alternative {
            ClientError::failed("the loop has no alternative way")
        } else if grant(&self.granted.degrades, self.max_degrades) {
            // Granted: the turn carries it.
            ClientError::Unsupported
        } else {
            ClientError::failed("`max_degrades` is reached")
        };
        Box::pin(std::future::ready(Err(refusal)))
    }

    fn skip<'a>(&'a self, _: &'a SessionId) -> ClientCall<'a, ()> {
        let refusal = match grant(&self.granted.skips, self.max_skips) {
            true => ClientError::Unsupported,
            false => ClientError::failed("`max_skips` is reached"),
        };
        Box::pin(std::future::ready(Err(refusal)))
    }

    fn compact<'a>(&'a self, session: &'a SessionId, preserve: &'a [Arc<str>]) -> ClientCall<'a, ()> {
        self.shrinking(self.host().map(|host| host.compact(session, preserve)))
    }

    fn truncate<'a>(&'a self, session: &'a SessionId, ratio: f64) -> ClientCall<'a, ()> {
        self.shrinking(self.host().map(|host| host.truncate(session, ratio)))
    }

    fn summarize<'a>(&'a self, session: &'a SessionId, model: Option<&'a str>) -> ClientCall<'a, ()> {
        self.shrinking(self.host().map(|host| host.summarize(session, model)))
    }

    fn prompt<'a>(&'a self, session: &'a SessionId, prompt: &'a Prompt) -> ClientCall<'a, ()> {
        self.host().map_or_else(unsupported, |host| host.prompt(session, prompt))
    }

    fn switch_model<'a>(&'a self, session: &'a SessionId, model: &'a str) -> ClientCall<'a, ()> {
        self.host().map_or_else(unsupported, |host| host.switch_model(session, model))
    }

    fn can_redo(&self) -> bool {
        // The step is the redo.
        false
    }

    fn redo<'a>(&'a self, _: &'a Turn) -> ClientCall<'a, ()> {
        unsupported()
    }

    fn last_turn<'a>(&'a self, session: &'a SessionId) -> ClientCall<'a, ()> {
        self.host().map_or_else(unsupported, |host| host.last_turn(session))
    }
}

fn unsupported<'a>() -> ClientCall<'a, ()> {
    Box::pin(std::future::ready(Err(ClientError::Unsupported)))
}
