use std::time::SystemTime;

use crate::failure::Timestamp;

/// Where the actors read the time; decisions get it as an argument.
pub trait Clock: Send + Sync {
    /// The wall-clock time now.
    fn now(&self) -> Timestamp;
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Timestamp::default() + since_epoch
    }
}

/// A clock that follows tokio's time, so that it stands still and jumps when that is paused.
#[derive(Debug, Clone, Copy)]
pub struct TokioClock {
    base: Timestamp,
    started: tokio::time::Instant,
}

impl TokioClock {
    /// A clock that shows `base` now.
    pub fn starting_at(base: Timestamp) -> Self {
        Self { base, started: tokio::time::Instant::now() }
    }
}

impl Clock for TokioClock {
    fn now(&self) -> Timestamp {
        self.base + self.started.elapsed()
    }
}
