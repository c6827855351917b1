use std::sync::Arc;

use serde::Serialize;
use tokio::sync::broadcast;

use super::Outcome;
use crate::failure::{Kind, SessionId};
use crate::policy::machine::Note;

/// What happens in an engine, as it happens.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum EngineEvent {
    /// An episode opened.
    Opened {
        /// The session.
        session: SessionId,
        /// The episode's number within the session.
        episode: u64,
        /// The failure's kind.
        kind: Kind,
    },
    /// A decision was taken (R15).
    Decided {
        /// The session.
        session: SessionId,
        /// The episode's number within the session.
        episode: u64,
        /// The decision.
        note: Note,
    },
    /// An episode ended, or a failure opened none.
    Ended(Arc<Outcome>),
    /// Records do not reach the disk; memory counts meanwhile (R10).
    NotDurable {
        /// The store's words.
        reason: Arc<str>,
    },
    /// Records reach the disk again, those kept meanwhile included.
    DurableAgain,
    /// This receiver was too slow and missed events.
    Gap {
        /// How many.
        missed: u64,
    },
}

/// A bounded stream of [`EngineEvent`]s; a receiver that is too slow sees a [`EngineEvent::Gap`].
#[derive(Debug)]
pub struct EventStream {
    receiver: broadcast::Receiver<EngineEvent>,
}

impl EventStream {
    /// The next event; `None` once the engine is gone.
    ///
    /// # Cancellation
    ///
    /// Safe: no event is lost when the future is dropped.
    pub async fn next(&mut self) -> Option<EngineEvent> {
        match self.receiver.recv().await {
            Ok(event) => Some(event),
            Err(broadcast::error::RecvError::Lagged(missed)) => Some(EngineEvent::Gap { missed }),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }
}

/// Where events are published; costs nothing while nobody listens.
#[derive(Debug, Clone)]
pub(crate) struct EventBus {
    sender: broadcast::Sender<EngineEvent>,
}

impl EventBus {
    /// Events that a receiver may lag behind before it misses some.
    const CAPACITY: usize = 4_096;

    pub fn new() -> Self {
        Self { sender: broadcast::channel(Self::CAPACITY).0 }
    }

    pub fn subscribe(&self) -> EventStream {
        EventStream { receiver: self.sender.subscribe() }
    }

    pub fn is_heard(&self) -> bool {
        self.sender.receiver_count() > 0
    }

    pub fn publish(&self, event: EngineEvent) {
        if self.is_heard() {
            // An error means that the last receiver just left.
            let _ = self.sender.send(event);
        }
    }
}
