use std::sync::{Arc, PoisonError, RwLock};

use serde::Serialize;
use tokio::sync::broadcast;

use super::Outcome;
use crate::failure::{Kind, LaneKey, SessionId};
use crate::policy::lane::LaneNote;
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
    /// A lane decided: its circuit, its ramp, its width (R15).
    Lane {
        /// The lane.
        lane: LaneKey,
        /// The decision.
        note: LaneNote,
    },
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

/// Where events are published; costs little while nobody listens.
#[derive(Debug)]
pub(crate) struct EventBus {
    /// Gone with the engine, so that its listeners see its end.
    sender: RwLock<Option<broadcast::Sender<EngineEvent>>>,
}

impl EventBus {
    /// Events that a receiver may lag behind before it misses some.
    const CAPACITY: usize = 4_096;

    pub fn new() -> Self {
        Self { sender: RwLock::new(Some(broadcast::channel(Self::CAPACITY).0)) }
    }

    pub fn subscribe(&self) -> EventStream {
        let receiver = self.with(broadcast::Sender::subscribe);
        EventStream { receiver: receiver.unwrap_or_else(|| broadcast::channel(1).1) }
    }

    pub fn is_heard(&self) -> bool {
        self.with(|sender| sender.receiver_count() > 0).unwrap_or(false)
    }

    pub fn publish(&self, event: EngineEvent) {
        if self.is_heard() {
            // An error means that the last receiver just left.
            let _ = self.with(|sender| sender.send(event));
        }
    }

    /// Ends every stream.
    pub fn close(&self) {
        self.sender.write().unwrap_or_else(PoisonError::into_inner).take();
    }

    fn with<T>(&self, look: impl FnOnce(&broadcast::Sender<EngineEvent>) -> T) -> Option<T> {
        self.sender.read().unwrap_or_else(PoisonError::into_inner).as_ref().map(look)
    }
}
