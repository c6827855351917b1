use std::sync::Arc;

use tokio::sync::watch;

/// What was asked of a command from outside, counted since the start of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Asked {
    /// How often it was cancelled: once interrupts the child, twice kills it.
    pub cancels: u32,
    /// How often it was to be suspended: once terminates the child, twice kills it.
    pub suspends: u32,
}

impl Asked {
    /// Nothing was asked.
    pub fn nothing(self) -> bool {
        self == Self::default()
    }
}

/// The handle that cancels or suspends a command from anywhere; cloning it is cheap.
///
/// What is asked stays asked: a run that starts afterwards ends before it begins.
///
/// ```
/// use backstop::client::command::Control;
///
/// let control = Control::new();
/// control.cancel();
/// assert_eq!(control.watch().asked().cancels, 1);
/// ```
#[derive(Debug, Clone)]
pub struct Control {
    asked: Arc<watch::Sender<Asked>>,
}

impl Control {
    /// A handle with nothing asked yet.
    pub fn new() -> Self {
        Self { asked: Arc::new(watch::Sender::new(Asked::default())) }
    }

    /// Cancels: SIGINT to the child's group; SIGKILL the second time.
    pub fn cancel(&self) {
        self.asked.send_modify(|asked| asked.cancels = asked.cancels.saturating_add(1));
    }

    /// Suspends: SIGTERM to the child's group; SIGKILL the second time.
    pub fn suspend(&self) {
        self.asked.send_modify(|asked| asked.suspends = asked.suspends.saturating_add(1));
    }

    /// What follows this handle: each run takes one, and so does whoever waits between runs.
    pub fn watch(&self) -> Watch {
        Watch { asked: self.asked.subscribe() }
    }
}

impl Default for Control {
    fn default() -> Self {
        Self::new()
    }
}

/// The receiving side of a [`Control`].
#[derive(Debug, Clone)]
pub struct Watch {
    asked: watch::Receiver<Asked>,
}

impl Watch {
    /// What was asked so far.
    pub fn asked(&self) -> Asked {
        *self.asked.borrow()
    }

    /// Resolves when something more is asked; never when every [`Control`] is gone.
    ///
    /// # Cancellation
    ///
    /// Dropping the future loses nothing.
    pub async fn changed(&mut self) -> Asked {
        if self.asked.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
        *self.asked.borrow_and_update()
    }

    /// Resolves as soon as anything at all has been asked; at once if it already was.
    pub async fn first(&mut self) -> Asked {
        match self.asked() {
            asked if asked.nothing() => self.changed().await,
            asked => asked,
        }
    }
}
