use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use super::admission::{Gate, Permit};
use super::messages::SessionMsg;
use super::outcome::{EngineError, Outcome, Told};
use crate::failure::{Detection, Kind, RecoveryError, Timestamp};
use crate::policy::machine::{Looked, Note, PhaseName, Plan, Redoer};
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

impl Incoming {
    /// Whether it came from a caller that has gone and that nobody else could stand in for.
    pub fn is_orphan(&self) -> bool {
        self.driver.is_some() && self.reply.is_closed()
    }
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

/// What belongs to a session but outlives a panic of its actor: its mail, who waits, and the running
/// episode's means.
#[derive(Default)]
pub(crate) struct Desk {
    /// Failures that outsiders report.
    pub reports: Gate,
    /// What has to get through a flood of reports: cancelling, looking, and the results of redos.
    pub control: Gate,
    inbox: Mutex<VecDeque<SessionMsg>>,
    serving: Mutex<u64>,
    inner: Mutex<DeskState>,
}

#[derive(Default)]
pub(crate) struct DeskState {
    pub waiters: Vec<Waiter>,
    /// Reports of later turns, and those that come while a verdict is being written (R8).
    pub queue: VecDeque<Incoming>,
    /// The running episode's means; `None` also for an episode found on disk that nobody goes on with.
    pub running: Option<Running>,
    /// Who waits for the session to be forgotten durably.
    pub resets: Vec<oneshot::Sender<()>>,
}

/// What a running episode needs besides its memory.
pub(crate) struct Running {
    /// What it keeps to.
    pub plan: Plan,
    pub client: Option<Arc<dyn SessionClient>>,
    /// The caller that opened it.
    pub driver: Option<u64>,
    /// What goes on outside for it.
    pub outside: Option<Outside>,
    /// The last thing that was begun outside, its result known or not.
    pub begun: Option<(u64, What)>,
    /// How the redo ended, until a record holds what follows from it.
    pub result: Option<Looked>,
    /// How it began, until a record holds it.
    pub opening: Option<Began>,
    /// The failure that began it, until the metrics know of it.
    pub uncounted: Option<Kind>,
    /// Every decision so far, the newest [`Running::NOTES_KEPT`].
    pub notes: Vec<Note>,
    /// How many of them the last redo's directive told.
    pub told_notes: usize,
    /// Whether every record was written so far.
    pub durable: bool,
    /// How it ended, while that is being written; of episode 0: that none was opened.
    pub closing: Option<Box<Outcome>>,
    /// Whether the host is called for that, where the verdict alone does not say so.
    pub calls_host: Option<bool>,
    /// Its place in the log.
    pub span: tracing::Span,
}

/// What opens an episode anew if its actor fails before the first record.
#[derive(Clone)]
pub(crate) struct Began {
    pub error: Arc<RecoveryError>,
    pub redoer: Redoer,
    pub turn: Option<u64>,
    pub deadline: Option<Timestamp>,
}

/// Something that goes on outside the actor.
pub(crate) struct Outside {
    pub what: What,
    pub seq: u64,
    /// Ended when the episode goes on without it.
    pub task: Option<AbortHandle>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    /// An own strategy.
    Strategy,
    /// The client carries a remedy out.
    Remedy,
    /// The turn is redone.
    Redo,
    /// The client is asked how the last turn ended.
    Look,
}

impl Running {
    /// The most decisions that an outcome tells: those of an episode within the default limits fit.
    pub const NOTES_KEPT: usize = 1_024;

    pub fn new(plan: Plan, client: Option<Arc<dyn SessionClient>>, driver: Option<u64>) -> Self {
        Self {
            plan,
            client,
            driver,
            outside: None,
            begun: None,
            result: None,
            opening: None,
            uncounted: None,
            notes: vec![],
            told_notes: 0,
            durable: true,
            closing: None,
            calls_host: None,
            span: tracing::Span::none(),
        }
    }

    /// Notes that something was begun outside.
    pub fn begin(&mut self, what: What, seq: u64, task: Option<AbortHandle>) {
        self.begun = Some((seq, what));
        self.outside = Some(Outside { what, seq, task });
    }

    /// Whether this goes on outside for this attempt.
    pub fn awaits(&self, what: What, seq: u64) -> bool {
        self.outside.as_ref().is_some_and(|outside| outside.what == what && outside.seq == seq)
    }

    /// Adds decisions; of too many the oldest are dropped.
    pub fn note(&mut self, notes: Vec<Note>) {
        self.notes.extend(notes);
        let excess = self.notes.len().saturating_sub(Self::NOTES_KEPT);
        self.notes.drain(..excess);
        self.told_notes = self.told_notes.saturating_sub(excess);
    }
}

impl Outside {
    /// Whether an attempt in this phase waits for it.
    pub fn belongs_to(&self, seq: u64, phase: PhaseName) -> bool {
        let phase_fits = match self.what {
            What::Strategy => phase == PhaseName::Acting,
            What::Remedy | What::Redo => phase == PhaseName::Redoing,
            What::Look => true,
        };
        self.seq == seq && phase_fits
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
        }
    }
}

impl Desk {
    pub fn lock(&self) -> MutexGuard<'_, DeskState> {
        held(&self.inner)
    }

    /// Adds to the session's mail; its actor has to be woken for it.
    pub fn push(&self, message: SessionMsg) {
        held(&self.inbox).push_back(message);
    }

    /// The oldest message. A message that makes the actor panic is gone by then; the others wait for
    /// the actor that follows.
    pub fn pop(&self) -> Option<SessionMsg> {
        held(&self.inbox).pop_front()
    }

    /// All messages.
    pub fn take_mail(&self) -> VecDeque<SessionMsg> {
        std::mem::take(&mut *held(&self.inbox))
    }

    /// The number of the actor that serves this desk, which no other takes over while it is held.
    pub fn serving(&self) -> MutexGuard<'_, u64> {
        held(&self.serving)
    }

    /// Takes the desk from the actor with this number, once what it is doing is done; false if
    /// somebody did so before.
    pub fn supersede(&self, incarnation: u64) -> bool {
        let mut serving = self.serving();
        let is_mine = *serving == incarnation;
        if is_mine {
            *serving += 1;
        }
        is_mine
    }

    /// Whether nobody waits for anything here.
    pub fn is_unused(&self) -> bool {
        self.reports.is_empty() && self.control.is_empty() && held(&self.inbox).is_empty()
    }

    /// Lets go of those who no longer wait.
    pub fn prune(&self) {
        let mut desk = self.lock();
        let gone: Vec<Waiter> = desk.waiters.extract_if(.., |waiter| waiter.reply.is_closed()).collect();
        let (left, queue) = std::mem::take(&mut desk.queue).into_iter().partition(Incoming::is_orphan);
        desk.queue = queue;
        drop(desk);
        let _: (Vec<Waiter>, VecDeque<Incoming>) = (gone, left);
    }

    /// Tells everybody who waits that the engine's end came first.
    pub fn dismiss(&self, why: EngineError) {
        let mail = self.take_mail();
        let mut desk = self.lock();
        let waiters = std::mem::take(&mut desk.waiters);
        let queue = std::mem::take(&mut desk.queue);
        let resets = std::mem::take(&mut desk.resets);
        drop(desk);
        let mailed = mail.into_iter().filter_map(SessionMsg::into_reply);
        let waiting = waiters.into_iter().map(|waiter| waiter.reply).chain(queue.into_iter().map(|one| one.reply));
        for reply in waiting.chain(mailed) {
            let _ = reply.send(Err(why));
        }
        drop(resets);
    }
}

impl DeskState {
    /// Takes out those who are to be told now.
    pub fn take(&mut self, told: &Told) -> Vec<Waiter> {
        match told {
            Told::Stop(_) => std::mem::take(&mut self.waiters),
            Told::Redo { .. } => self.waiters.extract_if(.., |waiter| waiter.wants == Wants::Redo).collect(),
        }
    }
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
