use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use crate::failure::{RecoveryError, SessionId, Timestamp};
use crate::policy::machine::{Episode, Note, Redo};
use crate::policy::{Injection, RecoveryAttempt, Verdict};

/// How an episode ended, with everything that explains it (R15).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// The session.
    pub session: SessionId,
    /// The episode's number within the session; 0 when none was opened.
    pub episode: u64,
    /// How it ended.
    pub verdict: Verdict,
    /// The last failure; absent when none was detected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Arc<RecoveryError>>,
    /// Executions of strategies.
    pub executions: u32,
    /// Redos of the turn.
    pub redos: u32,
    /// The attempts, oldest first.
    pub attempts: Vec<RecoveryAttempt>,
    /// Texts that no redo delivered: the final injections (R12).
    pub injections: Vec<Injection>,
    /// Every decision, oldest first.
    pub notes: Vec<Note>,
    /// Whether a lane's thaw let it go on (R7).
    pub thawed: bool,
    /// When the first failure was reported.
    pub started: Timestamp,
    /// When the verdict fell.
    pub ended: Timestamp,
    /// Whether every record of the episode reached the disk as the configuration asks: without
    /// `durability: ahead` it asks for nothing before the verdict is told.
    pub durable: bool,
}

impl Outcome {
    /// The outcome of a failure that opened no episode.
    pub(crate) fn without_episode(
        session: SessionId,
        verdict: Verdict,
        error: Option<Arc<RecoveryError>>,
        now: Timestamp,
    ) -> Self {
        Self {
            session,
            episode: 0,
            verdict,
            error,
            executions: 0,
            redos: 0,
            attempts: vec![],
            injections: vec![],
            notes: vec![],
            thawed: false,
            started: now,
            ended: now,
            durable: true,
        }
    }

    /// The outcome of an episode.
    pub(crate) fn of(episode: &Episode, verdict: Verdict, notes: Vec<Note>, durable: bool, now: Timestamp) -> Self {
        Self {
            session: episode.session().clone(),
            episode: episode.id(),
            verdict,
            error: Some(Arc::clone(episode.error())),
            executions: episode.executions(),
            redos: episode.redos(),
            attempts: episode.attempts().to_vec(),
            injections: episode.injections().to_vec(),
            notes,
            thawed: episode.thawed(),
            started: episode.started(),
            ended: now,
            durable,
        }
    }

    /// From the first failure to the verdict.
    pub fn elapsed(&self) -> Duration {
        self.ended.since(self.started)
    }
}

/// What a session tells whoever waits for it.
#[derive(Debug, Clone)]
pub(crate) enum Told {
    /// Redo the turn.
    Redo { episode: u64, redo: Arc<Redo>, notes: Vec<Note> },
    /// The episode is over.
    Stop(Arc<Outcome>),
}

/// Why the engine could not take a request; no episode changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// Too many reports wait for this session's episode, or too many callers at this lane.
    #[error("too many requests wait already; try again later")]
    Busy,
    /// `shutdown` has begun; open episodes stay open and resume after a restart.
    #[error("the engine is shutting down")]
    ShuttingDown,
    /// No open episode of this session waits for anybody to go on with it.
    #[error("no open episode waits in this session")]
    NothingOpen,
    /// The session's actor failed while it took this request, which had no effect: make it again.
    #[error("the session's actor failed while it took this request")]
    Interrupted,
    /// The engine's actors have stopped.
    #[error("the engine has stopped")]
    Stopped,
}
