//! One writer: batches form while the disk works, and only what is durable is acknowledged.

use std::sync::Arc;
use std::time::Duration;

use ractor::{Actor, ActorProcessingErr, ActorRef};

use super::events::EngineEvent;
use super::messages::{MetricsMsg, PersistenceMsg, SaveAck, SessionMsg};
use super::shared::Shared;
use super::writer::{Entry, Writer};
use crate::failure::{SessionId, Timestamp};
use crate::state::StateError;

pub(crate) struct PersistenceActor;

pub(crate) struct PersistenceArgs {
    pub shared: Arc<Shared>,
    pub writer: Arc<Writer>,
    /// Writes in the handler: for stores that never block, under paused time.
    pub inline: bool,
}

pub(crate) struct PersistenceState {
    args: PersistenceArgs,
    failing: bool,
    warned: Option<Timestamp>,
}

/// Trouble that lasts is said again this often.
const WARN_EVERY: Duration = Duration::from_secs(60);
/// How soon refused records are tried again when nothing else is written.
const RETRY_AFTER: Duration = Duration::from_secs(1);

impl Actor for PersistenceActor {
    type Msg = PersistenceMsg;
    type State = PersistenceState;
    type Arguments = PersistenceArgs;

    async fn pre_start(
        &self,
        me: ActorRef<PersistenceMsg>,
        args: PersistenceArgs,
    ) -> Result<PersistenceState, ActorProcessingErr> {
        // What the one before left in the queue goes on.
        args.writer.unstick();
        let _ = me.send_message(PersistenceMsg::Written);
        Ok(PersistenceState { args, failing: false, warned: None })
    }

    async fn handle(
        &self,
        me: ActorRef<PersistenceMsg>,
        message: PersistenceMsg,
        state: &mut PersistenceState,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            PersistenceMsg::Wake => {}
            PersistenceMsg::Written => {
                state.settle(&me);
            }
            PersistenceMsg::Retry => state.args.writer.queue().retry = true,
            PersistenceMsg::Flush { done } => {
                let mut queue = state.args.writer.queue();
                queue.retry = true;
                queue.flushes.push(done);
            }
            #[cfg(any(test, feature = "test-util"))]
            PersistenceMsg::Panic => panic!("asked to panic"),
        }
        state.write_next(&me);
        Ok(())
    }
}

impl PersistenceState {
    /// Starts the next batch; when nothing is left, answers flushes and refreshes readable copies.
    fn write_next(&mut self, me: &ActorRef<PersistenceMsg>) {
        if self.args.writer.queue().job_runs {
            return;
        }
        let writer = Arc::clone(&self.args.writer);
        while let Some(records) = writer.next_batch() {
            if !self.args.inline {
                return self.in_background(me, move |writer| writer.write(&records));
            }
            #[cfg(feature = "test-util")]
            if !writer.latency().is_zero() {
                return self.slowly(me, records);
            }
            writer.write(&records);
            if self.settle(me) {
                break;
            }
        }
        let mut queue = writer.queue();
        if queue.in_flight.is_some() {
            return;
        }
        for flush in std::mem::take(&mut queue.flushes) {
            let _ = flush.send(queue.refused.is_empty());
        }
        let views = std::mem::take(&mut queue.views_pending);
        drop(queue);
        if views && self.args.inline {
            while writer.refresh_views() {}
        } else if views {
            self.in_background(me, |writer| {
                writer.refresh_views();
            });
        }
    }

    fn in_background(&self, me: &ActorRef<PersistenceMsg>, work: impl FnOnce(&Writer) + Send + 'static) {
        let (writer, shared, me) = (Arc::clone(&self.args.writer), Arc::clone(&self.args.shared), me.clone());
        writer.queue().job_runs = true;
        tokio::task::spawn_blocking(move || {
            work(&writer);
            writer.queue().job_runs = false;
            if me.send_message(PersistenceMsg::Written).is_err() {
                // The actor was replaced meanwhile.
                let _ = shared.persistence().map(|now| now.send_message(PersistenceMsg::Written));
            }
        });
    }

    /// Writes as a disk that takes its time, under paused time.
    #[cfg(feature = "test-util")]
    fn slowly(&self, me: &ActorRef<PersistenceMsg>, records: Vec<crate::state::StateRecord>) {
        let (writer, shared, me) = (Arc::clone(&self.args.writer), Arc::clone(&self.args.shared), me.clone());
        writer.queue().job_runs = true;
        tokio::spawn(async move {
            let half = writer.latency() / 2;
            tokio::time::sleep(half).await;
            writer.write(&records);
            // Written, and nobody knows it yet.
            tokio::time::sleep(half).await;
            writer.queue().job_runs = false;
            if me.send_message(PersistenceMsg::Written).is_err() {
                let _ = shared.persistence().map(|now| now.send_message(PersistenceMsg::Written));
            }
        });
    }

    /// Acknowledges the batch that was written; tells whether the disk refused it.
    fn settle(&mut self, me: &ActorRef<PersistenceMsg>) -> bool {
        let (batch, result) = {
            let mut queue = self.args.writer.queue();
            let Some(result) = queue.result.take() else { return false };
            (queue.in_flight.take().unwrap_or_default(), result)
        };
        let durable = result.is_ok();
        match result {
            Ok(()) => self.recovered(),
            Err(error) => self.refused(me, &batch, &error),
        }
        for Entry { record, ack } in batch {
            if let Some(ack) = ack {
                self.acknowledge(&record.session, ack, durable);
            }
        }
        !durable
    }

    fn acknowledge(&self, session: &SessionId, ack: SaveAck, durable: bool) {
        if let Some(entry) = self.args.shared.entry(session) {
            let _ = entry.actor.send_message(SessionMsg::Saved { ack, durable });
        }
    }

    fn recovered(&mut self) {
        if std::mem::take(&mut self.failing) {
            tracing::warn!("recovery state reaches the disk again");
            self.args.shared.events.publish(EngineEvent::DurableAgain);
        }
    }

    /// The disk fails: memory counts, aloud (R10).
    fn refused(&mut self, me: &ActorRef<PersistenceMsg>, batch: &[Entry], error: &StateError) {
        let now = self.args.shared.now();
        {
            let mut queue = self.args.writer.queue();
            let hopeless = match error {
                StateError::Stale { session, .. } | StateError::TooLarge { session, .. } => Some(session),
                _ => None,
            };
            let again = batch.iter().filter(|entry| Some(&entry.record.session) != hopeless);
            queue.refused.extend(again.map(|entry| (entry.record.session.clone(), entry.record.clone())));
            // The rest of the batch need not wait for the one that no trying helps.
            queue.retry |= hopeless.is_some();
        }
        if self.warned.is_none_or(|warned| now.since(warned) >= WARN_EVERY) {
            self.warned = Some(now);
            tracing::error!(%error, "recovery state cannot be saved; it is kept in memory and tried again");
        }
        if !std::mem::replace(&mut self.failing, true) {
            self.args.shared.events.publish(EngineEvent::NotDurable { reason: error.to_string().into() });
        }
        if let Some(metrics) = self.args.shared.metrics() {
            let _ = metrics.send_message(MetricsMsg::NotDurable);
        }
        let me = me.clone();
        tokio::spawn(async move {
            tokio::time::sleep(RETRY_AFTER).await;
            let _ = me.send_message(PersistenceMsg::Retry);
        });
    }
}
