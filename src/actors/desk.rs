use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use super::admission::{Gate, Permit};
use super::outcome::{EngineError, Told};
use crate::failure::{Detection, Timestamp};
use crate::policy::machine::{Plan, Redoer};
use crate::policy::session::ReportKey;
use crate::strategy::SessionClient;

/// How a session's answer gets back.
pub(crate) type ReplyTo = oneshot::Sender<Result<Told, EngineError>>;

/// A failure on its way to its session.
pub(crate) struct Incoming {
    pub detection: Detection,
    pub key: ReportKey,
    pub redoer: Redoer,
    pub client: Option<Arc<dyn SessionClient>>,
    pub deadline: Option<Timestamp>,
    pub wants: Wants,
    /// The caller whose future cancels the episode when it is dropped.
    pub driver: Option<u64>,
    pub reply: ReplyTo,
    pub permit: Permit,
}

/// What somebody waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wants {
    /// The next redo or the verdict, whichever comes first.
    Redo,
    /// The verdict.
    Verdict,
}

/// Somebody who waits for a session.
pub(crate) struct Waiter {
    pub wants: Wants,
    pub reply: ReplyTo,
    pub _permit: Permit,
}

/// What belongs to a session but outlives a panic of its actor: who waits, and the episode's means.
#[derive(Default)]
pub(crate) struct Desk {
    pub gate: Gate,
    inner: Mutex<DeskState>,
}

#[derive(Default)]
pub(crate) struct DeskState {
    pub waiters: Vec<Waiter>,
    /// Reports of later turns, waiting for the running episode's end (R8).
    pub queue: VecDeque<Incoming>,
    pub client: Option<Arc<dyn SessionClient>>,
    /// What the running episode keeps to.
    pub plan: Option<Plan>,
    /// The caller that opened the running episode.
    pub driver: Option<u64>,
    /// A redo is under way outside: its result will come.
    pub redo_pending: bool,
}

impl Desk {
    pub fn lock(&self) -> MutexGuard<'_, DeskState> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DeskState {
    /// Takes out those who are to be told now.
    pub fn take(&mut self, told: &Told) -> Vec<Waiter> {
        match told {
            Told::Stop(_) => std::mem::take(&mut self.waiters),
            Told::Redo { .. } => {
                let (now, later) =
                    std::mem::take(&mut self.waiters).into_iter().partition(|waiter| waiter.wants == Wants::Redo);
                self.waiters = later;
                now
            }
        }
    }
}
