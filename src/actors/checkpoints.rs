//! Checkpoints of self-healing loops, on their way to their store by the persistence actor.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::oneshot;

use super::messages::{PersistenceMsg, ask};
use super::{EngineError, Shared};
use crate::failure::{SessionId, Timestamp};
use crate::state::{Checkpoint, CheckpointInfo, CheckpointStore, StateError};

/// What is asked of the store. Each can be asked twice without harm.
#[derive(Debug, Clone)]
pub(crate) enum CheckpointAsk {
    Save(Checkpoint),
    Load(SessionId, Arc<str>),
    List(SessionId),
    Remove(SessionId, Arc<str>),
}

/// What the store answered.
#[derive(Debug)]
pub(crate) enum CheckpointAnswer {
    Saved,
    Loaded(Option<Checkpoint>),
    Listed(Vec<CheckpointInfo>),
    Removed(bool),
}

/// Why a checkpoint could not be kept, found or removed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// The store refused; what was there before is whole.
    #[error("the checkpoint store refused")]
    Store(#[from] StateError),
    /// The engine took no request; nothing changed, or the store finishes it unheard.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The state does not become JSON, or the JSON of a checkpoint is no such state.
    #[error("the state and its JSON do not fit")]
    Json(#[source] serde_json::Error),
    /// No checkpoint has this name.
    #[error("there is no checkpoint `{0}`")]
    Missing(Arc<str>),
    /// Such names are the loop's own.
    #[error("`{0}` is no name for a checkpoint of the host's: it is empty, too long, or the loop's own")]
    Name(Arc<str>),
}

/// The store behind the persistence actor, one caller at a time.
pub(crate) struct Checkpoints {
    store: Mutex<Box<dyn CheckpointStore>>,
    last_order: AtomicU64,
}

impl Checkpoints {
    pub fn new(store: Box<dyn CheckpointStore>) -> Self {
        Self { store: Mutex::new(store), last_order: AtomicU64::new(0) }
    }

    /// The place of a new checkpoint behind all others: by the clock over restarts, by count within a process.
    pub fn next_order(&self, now: Timestamp) -> u64 {
        let by_clock = now.as_millis().saturating_mul(1_000);
        let next = |last: u64| Some(by_clock.max(last + 1));
        let last = self.last_order.fetch_update(Ordering::SeqCst, Ordering::SeqCst, next);
        last.map_or(by_clock, |last| by_clock.max(last + 1))
    }

    /// Calls the store; may block.
    pub fn answer(&self, ask: &CheckpointAsk) -> Result<CheckpointAnswer, StateError> {
        let mut store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        let call = || match ask {
            CheckpointAsk::Save(checkpoint) => store.save(checkpoint).map(|()| CheckpointAnswer::Saved),
            CheckpointAsk::Load(session, name) => store.load(session, name).map(CheckpointAnswer::Loaded),
            CheckpointAsk::List(session) => store.list(session).map(CheckpointAnswer::Listed),
            CheckpointAsk::Remove(session, name) => store.remove(session, name).map(CheckpointAnswer::Removed),
        };
        // A store of the host's that panics is a disk that fails.
        catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|_| {
            let source = std::io::Error::other("the checkpoint store panicked");
            Err(StateError::Save { path: "checkpoints".into(), source })
        })
    }
}

/// Asks the store by way of the persistence actor; one that fails meanwhile is asked again.
pub(crate) async fn ask_checkpoints(shared: &Shared, what: CheckpointAsk) -> Result<CheckpointAnswer, CheckpointError> {
    let message = |done: oneshot::Sender<_>| PersistenceMsg::Checkpoint { ask: Box::new(what.clone()), done };
    Ok(ask(shared, Shared::persistence, message).await??)
}
