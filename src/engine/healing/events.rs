use std::sync::Arc;

use serde::Serialize;
use tokio::sync::broadcast;

use crate::failure::{Domain, Kind};
use crate::policy::spiral::Spiral;

/// What happens in a self-healing loop, as it happens.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum LoopEvent {
    /// The loop begins.
    Started {
        /// Iterations begun before a crash; 0 for a loop that begins anew.
        begun: u32,
        /// The checkpoint that it goes on from.
        from: Option<Arc<str>>,
    },
    /// An iteration begins.
    Iteration {
        /// Its number, from 1.
        iteration: u32,
    },
    /// A try of the iteration begins after recovery.
    Redo {
        /// The iteration.
        iteration: u32,
        /// How often it was redone.
        redo: u32,
    },
    /// A step or its verification failed.
    Failed {
        /// The iteration.
        iteration: u32,
        /// What it was; `None` for what no pattern takes for a failure.
        kind: Option<Kind>,
        /// Who is at fault.
        domain: Domain,
        /// The failure's masked words.
        message: Arc<str>,
    },
    /// A checkpoint is kept.
    Checkpoint {
        /// Its name.
        name: Arc<str>,
    },
    /// The state is that of a checkpoint again.
    RolledBack {
        /// The checkpoint.
        name: Arc<str>,
    },
    /// The sub-task was left out.
    Skipped {
        /// The iteration.
        iteration: u32,
    },
    /// An iteration is over.
    Completed {
        /// The iteration.
        iteration: u32,
        /// It was done in the host's alternative way.
        degraded: bool,
    },
    /// The loop goes round without getting on.
    Spiral {
        /// How that was seen.
        spiral: Spiral,
        /// The host brought its agent back on course, and the loop goes on.
        anchored: bool,
    },
    /// Progress or checkpoints do not reach their store; memory counts meanwhile.
    NotDurable {
        /// The store's words.
        reason: Arc<str>,
    },
    /// The loop is over.
    Ended {
        /// How, in words.
        how: Arc<str>,
    },
    /// This receiver was too slow and missed events.
    Gap {
        /// How many.
        missed: u64,
    },
}

/// A bounded stream of [`LoopEvent`]s; a receiver that is too slow sees a [`LoopEvent::Gap`].
#[derive(Debug)]
pub struct LoopEvents(pub(super) broadcast::Receiver<LoopEvent>);

impl LoopEvents {
    /// Events that a receiver may lag behind before it misses some.
    pub(super) const CAPACITY: usize = 1_024;

    /// The next event; `None` once the loop is gone.
    ///
    /// # Cancellation
    ///
    /// Safe: no event is lost when the future is dropped.
    pub async fn next(&mut self) -> Option<LoopEvent> {
        match self.0.recv().await {
            Ok(event) => Some(event),
            Err(broadcast::error::RecvError::Lagged(missed)) => Some(LoopEvent::Gap { missed }),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }
}
