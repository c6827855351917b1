use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::RecoveryEngine;
use crate::actors::{EngineError, PersistenceMsg, SessionMsg, Shared, ask};
use crate::state::StateError;

/// Readable copies are a convenience: the next start brings up to date what is left.
const VIEWS_LIMIT: Duration = Duration::from_secs(1);

/// How a shutdown went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shutdown {
    /// Everything is on disk, as far as the configuration asks for it.
    pub durable: bool,
    /// Episodes that stay open and resume after a restart.
    pub open_episodes: usize,
}

impl RecoveryEngine {
    /// Ends the engine within `shutdown_timeout`: nothing new is taken, whoever waits is told, open
    /// episodes stay open, own strategies are dropped at their next `await`, and everything queued is
    /// written. Called again, it tells how the first shutdown went.
    ///
    /// # Cancellation
    ///
    /// Once begun, the shutdown is not taken back; call again to have it finished.
    pub async fn shutdown(&self) -> Shutdown {
        *self.ended().get_or_init(|| self.shut_down()).await
    }

    async fn shut_down(&self) -> Shutdown {
        let shared = self.shared();
        shared.begin_closing();
        let limit = shared.config().limits().shutdown_timeout;
        let end = Instant::now() + limit;
        let live = shared.directory.all();
        for (_, entry) in &live {
            let _ = entry.actor.send_message(SessionMsg::Suspend);
            // What is in the mailbox is handled first, so that the session's last words are queued.
            let _ = entry.actor.drain();
        }
        let all_written = async {
            for (_, entry) in &live {
                let _ = entry.actor.wait(None).await;
                // One that had just failed has told nobody.
                entry.desk.dismiss(EngineError::ShuttingDown);
            }
            shared.runner.close();
            ask(shared, Shared::persistence, |done| PersistenceMsg::Flush { done }).await
        };
        let durable = matches!(timeout_at(end, all_written).await, Ok(Ok(true)));
        shared.runner.close();
        let open_episodes = shared.stored.iter().filter(|stored| stored.has_episode()).count();
        self.root().stop(None);
        let ended = timeout_at(end, async {
            let _ = self.root().wait(None).await;
            self.close_store((limit / 10).min(VIEWS_LIMIT)).await;
        });
        if ended.await.is_err() {
            tracing::warn!("the recovery state was not closed within shutdown_timeout_ms");
        }
        // Whatever became of the root: nobody waits any longer.
        shared.stop();
        Shutdown { durable, open_episodes }
    }

    /// Brings the readable copies up to date, as many as there is time for, and lets go of the store.
    async fn close_store(&self, for_views: Duration) {
        let shared = Arc::clone(self.shared());
        let close = move || {
            shared.journal.close();
            let began = std::time::Instant::now();
            while shared.writer.refresh_views() && began.elapsed() < for_views {}
            shared.writer.with_store(|store| store.close())
        };
        let is_inline = self.shared().runner.is_inline();
        let closed = if is_inline { Ok(close()) } else { tokio::task::spawn_blocking(close).await };
        match closed {
            Ok(Ok(()) | Err(StateError::Closed)) => {}
            Ok(Err(error)) => tracing::warn!(%error, "the recovery state was not closed cleanly"),
            Err(error) => tracing::warn!(%error, "the recovery state was not closed"),
        }
    }
}
