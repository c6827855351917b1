use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use super::SessionClient;
use crate::failure::{RecoveryError, SessionId, TokenCounts};
use crate::policy::{Injection, StepConfig};

/// What a strategy is told of one attempt. Cloning is cheap.
///
/// A strategy keeps no memory between attempts: all it may know is in here.
#[derive(Clone)]
pub struct Attempt {
    inner: Arc<Inner>,
}

struct Inner {
    session: SessionId,
    error: Arc<RecoveryError>,
    number: u32,
    seq: u64,
    config: Arc<StepConfig>,
    earlier: Arc<[EarlierAttempt]>,
    client: Option<Arc<dyn SessionClient>>,
    seed: u64,
    injections: Mutex<Vec<Injection>>,
}

/// What is remembered of an earlier attempt of the same episode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EarlierAttempt {
    /// Its number in the session.
    pub seq: u64,
    /// The token numbers of the failure it answered.
    pub tokens: TokenCounts,
}

/// Everything an [`Attempt`] is made of; tests of own strategies make one too.
#[derive(Clone)]
pub struct AttemptParts {
    /// The session.
    pub session: SessionId,
    /// The failure to recover from.
    pub error: Arc<RecoveryError>,
    /// The attempt within its step, from 1.
    pub number: u32,
    /// The attempt's number in its session, never used twice.
    pub seq: u64,
    /// The step's settings.
    pub config: Arc<StepConfig>,
    /// Earlier attempts of the same step, oldest first.
    pub earlier: Arc<[EarlierAttempt]>,
    /// The session's client.
    pub client: Option<Arc<dyn SessionClient>>,
    /// The random seed of this attempt.
    pub seed: u64,
}

impl From<AttemptParts> for Attempt {
    fn from(parts: AttemptParts) -> Self {
        let AttemptParts { session, error, number, seq, config, earlier, client, seed } = parts;
        let injections = Mutex::default();
        Self { inner: Arc::new(Inner { session, error, number, seq, config, earlier, client, seed, injections }) }
    }
}

impl Attempt {
    /// The session.
    pub fn session(&self) -> &SessionId {
        &self.inner.session
    }

    /// The failure to recover from.
    pub fn error(&self) -> &RecoveryError {
        &self.inner.error
    }

    /// The attempt within its step, counted from 1 (R4).
    pub fn number(&self) -> u32 {
        self.inner.number
    }

    /// The attempt's number in its session, never used twice.
    pub fn seq(&self) -> u64 {
        self.inner.seq
    }

    /// The step's settings.
    pub fn config(&self) -> &StepConfig {
        &self.inner.config
    }

    /// Earlier attempts of the same step, oldest first.
    pub fn earlier(&self) -> &[EarlierAttempt] {
        &self.inner.earlier
    }

    /// The session's client, if the host gave one.
    pub fn client(&self) -> Option<&Arc<dyn SessionClient>> {
        self.inner.client.as_ref()
    }

    /// A random number that is the same whenever this attempt is asked again.
    pub fn seed(&self) -> u64 {
        self.inner.seed
    }

    /// Adds a text to the next turn's system prompt (R12).
    pub fn inject(&self, text: impl AsRef<str>) {
        self.texts().push(Injection::new(text));
    }

    /// Takes the texts injected so far.
    pub fn take_injections(&self) -> Vec<Injection> {
        std::mem::take(&mut *self.texts())
    }

    fn texts(&self) -> std::sync::MutexGuard<'_, Vec<Injection>> {
        self.inner.injections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attempt")
            .field("session", &self.inner.session)
            .field("number", &self.inner.number)
            .field("seq", &self.inner.seq)
            .field("kind", &self.inner.error.kind)
            .finish_non_exhaustive()
    }
}
