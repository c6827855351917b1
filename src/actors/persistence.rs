//! One writer: batches form while the disk works, and only what is durable is acknowledged.

use std::sync::Arc;
use std::time::Duration;

use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::checkpoints::{CheckpointAnswer, CheckpointAsk};
use super::events::EngineEvent;
use super::messages::{MetricsMsg, PersistenceMsg, SaveAck, SessionMsg};
use super::outage::Outage;
use super::remembered::Draft;
use super::shared::Shared;
use super::writer::{Entry, Writer};
use crate::failure::{SessionId, Timestamp};
use crate::state::{Lease, StateError};

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
    /// When the last batch began.
    begun: Option<Instant>,
    /// A timer for the next batch runs.
    is_timed: bool,
    /// When readable copies were refreshed last.
    viewed: Option<Instant>,
    /// How many were just told that their record is durable: most will have another one at once.
    told: usize,
}

/// Trouble that lasts is said again this often.
const WARN_EVERY: Duration = Duration::from_secs(60);
/// How soon refused records are tried again when nothing else is written.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// A right to write that is good for no time at all is not asked for in a spin.
const SHORTEST_HOLD: Duration = Duration::from_millis(50);
/// How long a session's readable copy waits: most episodes are over sooner and need none.
const VIEWS_AFTER: Duration = Duration::from_secs(1);
/// Under load some readable copies are written this often: their syncs hold up the next batch.
const VIEWS_EVERY: Duration = Duration::from_millis(50);
/// How often others may go first before the next batch: enough for a batch of acknowledgements to be
/// answered on one thread, and far less time than a sync.
const GATHER: usize = 256;
/// How often in a row nothing may come of it: whoever was told goes on within a few turns of the scheduler.
const GATHER_IN_VAIN: usize = 8;
/// The shortest time from one batch to the next while nobody waits for what is queued: a sync
/// costs a busy processor more than the records do.
const LINGER: Duration = Duration::from_millis(25);

impl Actor for PersistenceActor {
    type Msg = PersistenceMsg;
    type State = PersistenceState;
    type Arguments = PersistenceArgs;

    async fn pre_start(
        &self,
        me: ActorRef<PersistenceMsg>,
        args: PersistenceArgs,
    ) -> Result<PersistenceState, ActorProcessingErr> {
        // First of all, so that a batch that ends now tells this actor.
        args.shared.set_persistence(me.clone());
        // What the one before left in the queue goes on.
        args.writer.unstick();
        let _ = me.send_message(PersistenceMsg::Hold);
        Ok(PersistenceState { args, failing: false, warned: None, begun: None, is_timed: false, viewed: None, told: 0 })
    }

    async fn handle(
        &self,
        me: ActorRef<PersistenceMsg>,
        message: PersistenceMsg,
        state: &mut PersistenceState,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            PersistenceMsg::Wake => {}
            PersistenceMsg::Lingered => state.is_timed = false,
            PersistenceMsg::Written => {
                state.settle(&me);
            }
            PersistenceMsg::ViewsAreDue => {
                let mut queue = state.args.writer.queue();
                (queue.views_are_due, queue.views_are_timed) = (true, false);
            }
            PersistenceMsg::Retry => {
                let mut queue = state.args.writer.queue();
                (queue.retry, queue.retry_is_due) = (true, false);
            }
            PersistenceMsg::Hold => {
                state.args.writer.queue().hold_is_due = true;
                state.settle(&me);
            }
            PersistenceMsg::Flush { done } => state.args.writer.queue().flush(done),
            PersistenceMsg::Checkpoint { ask, done } => state.checkpoint(*ask, done),
            #[cfg(any(test, feature = "test-util"))]
            PersistenceMsg::Panic => panic!("asked to panic"),
        }
        state.gather().await;
        state.write_next(&me);
        Ok(())
    }
}

impl PersistenceState {
    /// Lets those who were just told go first, so that their next records are one batch, not a small one
    /// at once and the rest behind it. It ends when nothing comes for some turns.
    async fn gather(&mut self) {
        let expected = std::mem::take(&mut self.told);
        let pending = || self.args.writer.queue().pending.len();
        let (mut seen, mut in_vain) = (pending(), 0);
        for _ in 0..GATHER {
            if expected < 2 || seen >= expected || in_vain == GATHER_IN_VAIN {
                return;
            }
            tokio::task::yield_now().await;
            let now = pending();
            in_vain = if now > seen { 0 } else { in_vain + 1 };
            seen = now;
        }
    }

    /// Asks the checkpoints' store beside the log's work: neither waits for the other.
    fn checkpoint(&self, ask: CheckpointAsk, done: oneshot::Sender<Result<CheckpointAnswer, StateError>>) {
        let shared = Arc::clone(&self.args.shared);
        let work = move || {
            // Whoever asked may have left.
            let _ = done.send(shared.checkpoints.answer(&ask));
        };
        if self.args.inline {
            work();
        } else {
            tokio::task::spawn_blocking(work);
        }
    }

    /// Does what is next: a batch, or some readable copies, or nothing yet.
    fn write_next(&mut self, me: &ActorRef<PersistenceMsg>) {
        if self.args.writer.queue().job_runs {
            return;
        }
        let writer = Arc::clone(&self.args.writer);
        if std::mem::take(&mut writer.queue().hold_is_due) {
            if !self.args.inline {
                return self.in_background(me, Writer::hold);
            }
            writer.hold();
            self.on_held(me);
        }
        writer.queue().answer_flushes();
        if let Some(left) = self.lingers(&writer) {
            if !std::mem::replace(&mut self.is_timed, true) {
                self.later(me, left, || PersistenceMsg::Lingered);
            }
        } else if !self.is_turn_of_views(&writer) && self.write_batches(me, &writer) {
            return;
        }
        writer.queue().answer_flushes();
        self.see_to_views(me, &writer);
    }

    /// Writes what is queued; tells whether a batch is under way.
    fn write_batches(&mut self, me: &ActorRef<PersistenceMsg>, writer: &Arc<Writer>) -> bool {
        while let Some(drafts) = writer.next_batch() {
            self.begun = Some(Instant::now());
            if !self.args.inline {
                self.in_background(me, move |writer| writer.write(&drafts));
                return true;
            }
            #[cfg(feature = "test-util")]
            if !writer.latency().is_zero() {
                self.slowly(me, drafts);
                return true;
            }
            writer.write(&drafts);
            if self.settle(me) {
                break;
            }
        }
        writer.queue().in_flight.is_some()
    }

    /// Whether readable copies have waited for long enough to go before the next batch.
    fn is_turn_of_views(&self, writer: &Writer) -> bool {
        let queue = writer.queue();
        let is_due = queue.views_pending && queue.views_are_due && !self.args.inline;
        is_due && self.viewed.is_none_or(|viewed| viewed.elapsed() >= VIEWS_EVERY)
    }

    /// Refreshes some readable copies, if they are due.
    fn see_to_views(&mut self, me: &ActorRef<PersistenceMsg>, writer: &Arc<Writer>) {
        let mut queue = writer.queue();
        if !queue.views_pending {
            return;
        }
        if !queue.views_are_due {
            if !std::mem::replace(&mut queue.views_are_timed, true) {
                self.later(me, VIEWS_AFTER, || PersistenceMsg::ViewsAreDue);
            }
            return;
        }
        drop(queue);
        if self.args.inline {
            while writer.refresh_views() {}
            return;
        }
        self.viewed = Some(Instant::now());
        self.in_background(me, |writer| {
            writer.refresh_views();
        });
    }

    /// For how long yet the queue may grow, because nobody waits for what is in it.
    fn lingers(&self, writer: &Writer) -> Option<Duration> {
        let queue = writer.queue();
        let left = LINGER.checked_sub(self.begun?.elapsed())?;
        let is_small = (1..Writer::BATCH).contains(&queue.pending.len());
        (is_small && !queue.is_urgent() && !left.is_zero()).then_some(left)
    }

    /// Tells this actor, or the one that took its place, something after a while.
    fn later(&self, me: &ActorRef<PersistenceMsg>, delay: Duration, message: fn() -> PersistenceMsg) {
        let (shared, me) = (Arc::clone(&self.args.shared), me.clone());
        tokio::spawn(async move {
            tokio::time::sleep(delay).await;
            tell(&shared, &me, message);
        });
    }

    fn in_background(&self, me: &ActorRef<PersistenceMsg>, work: impl FnOnce(&Writer) + Send + 'static) {
        let (writer, shared, me) = (Arc::clone(&self.args.writer), Arc::clone(&self.args.shared), me.clone());
        writer.queue().job_runs = true;
        tokio::task::spawn_blocking(move || {
            work(&writer);
            writer.queue().job_runs = false;
            tell(&shared, &me, || PersistenceMsg::Written);
        });
    }

    /// Writes as a disk that takes its time, under paused time.
    #[cfg(feature = "test-util")]
    fn slowly(&self, me: &ActorRef<PersistenceMsg>, drafts: Vec<Draft>) {
        let (writer, shared, me) = (Arc::clone(&self.args.writer), Arc::clone(&self.args.shared), me.clone());
        writer.queue().job_runs = true;
        tokio::spawn(async move {
            let half = writer.latency() / 2;
            tokio::time::sleep(half).await;
            writer.write(&drafts);
            // Written, and nobody knows it yet.
            tokio::time::sleep(half).await;
            writer.queue().job_runs = false;
            tell(&shared, &me, || PersistenceMsg::Written);
        });
    }

    /// Sees to it that the right to write is prolonged in time; most stores' does not run out.
    fn on_held(&self, me: &ActorRef<PersistenceMsg>) {
        let held = self.args.writer.queue().held.take();
        let again = match held {
            None | Some(Ok(Lease { lasts: None, .. })) => return,
            Some(Ok(Lease { lasts: Some(lasts), .. })) => (lasts / 3).max(SHORTEST_HOLD),
            Some(Err(error)) => {
                // What is appended meanwhile is refused, and that is said aloud.
                tracing::debug!(%error, "the right to write the state was not prolonged");
                RETRY_AFTER
            }
        };
        self.later(me, again, || PersistenceMsg::Hold);
    }

    /// Acknowledges the batch that was written; tells whether the disk refused it.
    fn settle(&mut self, me: &ActorRef<PersistenceMsg>) -> bool {
        self.on_held(me);
        let (mut batch, result) = {
            let mut queue = self.args.writer.queue();
            let Some(result) = queue.result.take() else { return false };
            (queue.in_flight.take().unwrap_or_default(), result)
        };
        let mut is_durable = true;
        let failed = match result {
            Ok(()) => {
                self.recovered(&batch);
                false
            }
            // Nothing of the batch was written for the sake of one record: the others go on without it.
            Err(error @ (StateError::Stale { .. } | StateError::TooLarge { .. })) if is_of(&error, &batch) => {
                batch = self.without_the_hopeless(batch, &error);
                is_durable = false;
                false
            }
            Err(error) => {
                self.refused(me, &batch, &error);
                is_durable = false;
                true
            }
        };
        for Entry { draft, ack, .. } in batch {
            if let Some(ack) = ack {
                self.told += 1;
                self.acknowledge(&draft.session, ack, is_durable);
            }
        }
        failed
    }

    /// Puts a batch back but for the record that no trying helps, whose entries are returned.
    fn without_the_hopeless(&mut self, batch: Vec<Entry>, error: &StateError) -> Vec<Entry> {
        let (hopeless, others): (Vec<_>, Vec<_>) =
            batch.into_iter().partition(|entry| hopeless(error) == Some(&entry.draft.session));
        {
            let now = self.args.shared.now();
            let mut queue = self.args.writer.queue();
            for entry in &hopeless {
                Outage::refuse(&mut queue.outage, &entry.draft.session, now);
            }
            queue.put_back(others);
        }
        self.args.shared.events.publish(EngineEvent::NotDurable { reason: error.to_string().into() });
        self.say_aloud(error);
        hopeless
    }

    fn acknowledge(&self, session: &SessionId, ack: SaveAck, durable: bool) {
        self.args.shared.send_if_live(session, SessionMsg::Saved { ack, durable });
    }

    fn recovered(&mut self, batch: &[Entry]) {
        let mut queue = self.args.writer.queue();
        if queue.outage.as_ref().is_some_and(|outage| outage.until.is_none()) {
            let now = self.args.shared.now();
            batch.iter().for_each(|entry| Outage::written(&mut queue.outage, &entry.draft.session, now));
        }
        drop(queue);
        if std::mem::take(&mut self.failing) {
            tracing::warn!("recovery state reaches the disk again");
            self.args.shared.events.publish(EngineEvent::DurableAgain);
        }
    }

    /// The disk fails: memory counts, aloud (R10).
    fn refused(&mut self, me: &ActorRef<PersistenceMsg>, batch: &[Entry], error: &StateError) {
        let now = self.args.shared.now();
        let is_due = {
            let mut queue = self.args.writer.queue();
            for entry in batch {
                let newer = |known: &Draft| known.revision > entry.draft.revision;
                Outage::refuse(&mut queue.outage, &entry.draft.session, now);
                if !queue.refused.get(&entry.draft.session).is_some_and(newer) {
                    queue.refused.insert(entry.draft.session.clone(), entry.draft.clone());
                }
            }
            std::mem::replace(&mut queue.retry_is_due, true)
        };
        if !std::mem::replace(&mut self.failing, true) {
            self.args.shared.events.publish(EngineEvent::NotDurable { reason: error.to_string().into() });
        }
        self.say_aloud(error);
        if !is_due {
            self.later(me, RETRY_AFTER, || PersistenceMsg::Retry);
        }
    }

    /// Counts a refusal, and writes it to the log now and then.
    fn say_aloud(&mut self, error: &StateError) {
        let now = self.args.shared.now();
        if self.warned.is_none_or(|warned| now.since(warned) >= WARN_EVERY) {
            self.warned = Some(now);
            tracing::error!(%error, "recovery state cannot be saved; it is kept in memory");
        }
        if let Some(metrics) = self.args.shared.metrics() {
            let _ = metrics.send_message(MetricsMsg::NotDurable);
        }
    }
}

/// The session whose record no trying helps.
fn hopeless(error: &StateError) -> Option<&SessionId> {
    match error {
        StateError::Stale { session, .. } | StateError::TooLarge { session, .. } => Some(session),
        _ => None,
    }
}

/// Whether the error is about a record of this batch.
fn is_of(error: &StateError, batch: &[Entry]) -> bool {
    batch.iter().any(|entry| hopeless(error) == Some(&entry.draft.session))
}

/// Tells an actor, or the one that took its place.
fn tell(shared: &Shared, me: &ActorRef<PersistenceMsg>, message: fn() -> PersistenceMsg) {
    if me.send_message(message()).is_err() {
        let _ = shared.persistence().map(|now| now.send_message(message()));
    }
}
