use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::actors::{CheckpointAnswer, CheckpointAsk, CheckpointError, Shared, ask_checkpoints};
use crate::engine::RecoveryEngine;
use crate::failure::SessionId;
use crate::state::{Checkpoint, CheckpointInfo};

/// The checkpoints of one loop: kept, listed, restored and removed by name.
///
/// # What an acknowledgement means
///
/// When [`save`](Self::save) returns, the checkpoint is on disk, whole, in place of an earlier one of its
/// name; before that the earlier one is. Without a state directory it is in memory, for the life of the
/// engine. The state is kept as it is: secrets in it are not masked, only the file is private.
///
/// # Cancellation
///
/// A call that is dropped may still take effect.
#[derive(Clone)]
pub struct CheckpointManager {
    shared: Arc<Shared>,
    session: SessionId,
}

/// What the loop itself takes at its intervals is named so, with the iteration behind.
const AUTOMATIC: &str = "iter_";
/// The loop's own record.
pub(super) const PROGRESS: &str = "backstop:progress";
/// The longest name, in bytes.
const LONGEST_NAME: usize = 200;
/// Named checkpoints of one loop; the oldest beyond go.
const NAMED_KEPT: usize = 32;

impl CheckpointManager {
    pub(super) fn new(shared: Arc<Shared>, session: SessionId) -> Self {
        Self { shared, session }
    }

    /// Keeps a state under a name, in place of an earlier one. Of more than 32 named ones the oldest goes.
    ///
    /// # Errors
    ///
    /// [`CheckpointError`]; what was there before is whole.
    pub async fn save<S: Serialize>(&self, name: &str, state: &S) -> Result<(), CheckpointError> {
        let is_own = name.starts_with(AUTOMATIC) || name.starts_with("backstop:");
        if name.trim().is_empty() || name.len() > LONGEST_NAME || is_own {
            return Err(CheckpointError::Name(name.into()));
        }
        self.keep(name, 0, &to_json(state)?).await?;
        self.prune_to(NAMED_KEPT, |name| !is_automatic(name)).await
    }

    /// The state kept under a name.
    ///
    /// # Errors
    ///
    /// [`CheckpointError::Missing`] when there is none; [`CheckpointError`] otherwise.
    pub async fn restore<S: DeserializeOwned>(&self, name: &str) -> Result<S, CheckpointError> {
        let found = self.load(name).await?.ok_or_else(|| CheckpointError::Missing(name.into()))?;
        from_json(&found.state)
    }

    /// What is kept, oldest first; those that the loop takes itself are named `iter_` and the iteration that
    /// they were taken before.
    ///
    /// # Errors
    ///
    /// [`CheckpointError`] when the store cannot be read.
    pub async fn list(&self) -> Result<Vec<CheckpointInfo>, CheckpointError> {
        let answer = ask_checkpoints(&self.shared, CheckpointAsk::List(self.session.clone())).await?;
        let CheckpointAnswer::Listed(mut all) = answer else { return Ok(vec![]) };
        all.retain(|info| &*info.name != PROGRESS);
        Ok(all)
    }

    /// Removes a checkpoint; tells whether there was one.
    ///
    /// # Errors
    ///
    /// [`CheckpointError`] when the store cannot be written.
    pub async fn remove(&self, name: &str) -> Result<bool, CheckpointError> {
        let ask = CheckpointAsk::Remove(self.session.clone(), name.into());
        Ok(matches!(ask_checkpoints(&self.shared, ask).await?, CheckpointAnswer::Removed(true)))
    }

    /// Removes all but this many of the newest that the loop took itself.
    ///
    /// # Errors
    ///
    /// [`CheckpointError`] when the store cannot be written.
    pub async fn prune(&self, keep: usize) -> Result<(), CheckpointError> {
        self.prune_to(keep, is_automatic).await
    }

    async fn prune_to(&self, keep: usize, which: impl Fn(&str) -> bool) -> Result<(), CheckpointError> {
        let mut all = self.list().await?;
        all.retain(|info| which(&info.name));
        all.truncate(all.len().saturating_sub(keep));
        for info in all {
            self.remove(&info.name).await?;
        }
        Ok(())
    }

    pub(super) async fn keep_automatic(&self, iteration: u32, state: &Arc<str>) -> Result<Arc<str>, CheckpointError> {
        let name: Arc<str> = format!("{AUTOMATIC}{iteration}").into();
        self.keep(&name, iteration, state).await?;
        Ok(name)
    }

    pub(super) async fn keep(&self, name: &str, iteration: u32, state: &Arc<str>) -> Result<(), CheckpointError> {
        let (session, at) = (self.session.clone(), self.shared.now());
        let order = self.shared.checkpoints.next_order(at);
        let checkpoint = Checkpoint { session, name: name.into(), iteration, at, order, state: Arc::clone(state) };
        ask_checkpoints(&self.shared, CheckpointAsk::Save(checkpoint)).await.map(|_| ())
    }

    pub(super) async fn load(&self, name: &str) -> Result<Option<Checkpoint>, CheckpointError> {
        let ask = CheckpointAsk::Load(self.session.clone(), name.into());
        let CheckpointAnswer::Loaded(found) = ask_checkpoints(&self.shared, ask).await? else { return Ok(None) };
        Ok(found)
    }

    /// The newest that the loop took itself: the state before an iteration, after all that were seen to work.
    pub(super) async fn last_good(&self) -> Result<Option<Checkpoint>, CheckpointError> {
        let all = self.list().await?;
        match all.iter().rev().find(|info| is_automatic(&info.name)) {
            Some(info) => self.load(&info.name).await,
            None => Ok(None),
        }
    }
}

impl RecoveryEngine {
    /// The checkpoints of a self-healing loop.
    pub fn checkpoints(&self, id: &SessionId) -> CheckpointManager {
        CheckpointManager::new(Arc::clone(self.shared()), id.clone())
    }
}

pub(super) fn to_json<S: Serialize>(state: &S) -> Result<Arc<str>, CheckpointError> {
    serde_json::to_string(state).map(Into::into).map_err(CheckpointError::Json)
}

pub(super) fn from_json<S: DeserializeOwned>(state: &str) -> Result<S, CheckpointError> {
    serde_json::from_str(state).map_err(CheckpointError::Json)
}

fn is_automatic(name: &str) -> bool {
    name.starts_with(AUTOMATIC)
}

impl std::fmt::Debug for CheckpointManager {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CheckpointManager").field("session", &self.session).finish_non_exhaustive()
    }
}
