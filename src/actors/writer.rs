//! What waits for the disk: kept outside the actor, so that no panic loses it.

use std::collections::{BTreeMap, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use super::messages::SaveAck;
use crate::failure::SessionId;
use crate::state::{RecoveryStateStore, StateError, StateRecord};

/// A store and the records on their way to it.
pub(crate) struct Writer {
    store: Mutex<Box<dyn RecoveryStateStore>>,
    queue: Mutex<Queue>,
    #[cfg(feature = "test-util")]
    latency: std::sync::OnceLock<Latency>,
}

/// How long an append takes now, in the virtual time of a simulated disk.
#[cfg(feature = "test-util")]
pub(crate) type Latency = Arc<dyn Fn() -> std::time::Duration + Send + Sync>;

#[derive(Default)]
pub(crate) struct Queue {
    /// Records that no batch holds yet.
    pub pending: Vec<Entry>,
    /// The batch that is being written.
    pub in_flight: Option<Vec<Entry>>,
    /// A thread writes it, or refreshes readable copies.
    pub job_runs: bool,
    /// What came of it.
    pub result: Option<Result<(), StateError>>,
    /// The newest records that the disk refused; written again with the next batch.
    pub refused: BTreeMap<SessionId, StateRecord>,
    /// Refused records are due again, although nothing new is to be written.
    pub retry: bool,
    /// Who waits for everything to be written.
    pub flushes: Vec<oneshot::Sender<bool>>,
    /// Readable copies may be out of date.
    pub views_pending: bool,
    /// A timer for the refused records runs.
    pub retry_is_due: bool,
    /// Thin the queue out when it is this long.
    thin_at: usize,
}

pub(crate) struct Entry {
    pub record: StateRecord,
    pub ack: Option<SaveAck>,
}

impl Queue {
    /// Drops what a newer record of the same session makes needless: a disk that is too slow for
    /// everything gets the newest of each session, and the queue stays as long as there are sessions.
    fn thin_out(&mut self) {
        let mut newest = HashMap::new();
        for entry in &self.pending {
            newest.insert(entry.record.session.clone(), (entry.record.revision, entry.record.memory.clone()));
        }
        self.pending.retain_mut(|entry| match newest.get(&entry.record.session) {
            Some((revision, _)) if *revision == entry.record.revision => true,
            // Somebody waits for it: the newest record holds more than what this one was to make durable.
            Some((revision, memory)) if entry.ack.is_some() => {
                (entry.record.revision, entry.record.memory) = (*revision, memory.clone());
                true
            }
            _ => false,
        });
        self.thin_at = 2 * self.pending.len();
    }
}

impl Writer {
    /// Records in one batch at most: bounds how long one append takes.
    const BATCH: usize = 4_096;
    /// Readable copies refreshed at a time, between two batches.
    const VIEWS: usize = 32;

    pub fn new(store: Box<dyn RecoveryStateStore>) -> Arc<Self> {
        Arc::new(Self {
            store: Mutex::new(store),
            queue: Mutex::default(),
            #[cfg(feature = "test-util")]
            latency: std::sync::OnceLock::new(),
        })
    }

    /// Makes appends take time; the first call counts.
    #[cfg(feature = "test-util")]
    pub fn set_latency(&self, latency: Latency) {
        let _ = self.latency.set(latency);
    }

    /// How long an append takes that is written in the handler.
    #[cfg(feature = "test-util")]
    pub fn latency(&self) -> std::time::Duration {
        self.latency.get().map(|latency| latency()).unwrap_or_default()
    }

    pub fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a record; tells whether the writer has to be woken for it.
    pub fn push(&self, entry: Entry) -> bool {
        let mut queue = self.queue();
        queue.pending.push(entry);
        if queue.pending.len() >= queue.thin_at.max(2 * Self::BATCH) {
            queue.thin_out();
        }
        queue.pending.len() == 1
    }

    /// Puts back a batch whose writing never began.
    pub fn unstick(&self) {
        let mut queue = self.queue();
        if queue.result.is_none()
            && !queue.job_runs
            && let Some(batch) = queue.in_flight.take()
        {
            queue.pending.splice(0..0, batch);
        }
    }

    /// Calls the store; may block.
    pub fn with_store<T>(&self, call: impl FnOnce(&mut dyn RecoveryStateStore) -> T) -> T {
        let mut store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        call(&mut **store)
    }

    /// Forms the next batch, if there is something to write and no batch under way.
    pub fn next_batch(&self) -> Option<Vec<StateRecord>> {
        let mut queue = self.queue();
        let retries = std::mem::take(&mut queue.retry) && !queue.refused.is_empty();
        if queue.in_flight.is_some() || (queue.pending.is_empty() && !retries) {
            return None;
        }
        let count = queue.pending.len().min(Self::BATCH);
        let batch: Vec<Entry> = queue.pending.drain(..count).collect();
        for entry in &batch {
            // A newer record of the session makes the refused one needless.
            queue.refused.remove(&entry.record.session);
        }
        let again = std::mem::take(&mut queue.refused).into_values();
        let again: Vec<Entry> = again.map(|record| Entry { record, ack: None }).collect();
        let batch: Vec<Entry> = again.into_iter().chain(batch).collect();
        let records = batch.iter().map(|entry| entry.record.clone()).collect();
        queue.in_flight = Some(batch);
        Some(records)
    }

    /// Writes a batch; may block. The result waits in the queue.
    pub fn write(&self, records: &[StateRecord]) {
        let append = || self.with_store(|store| store.append(records));
        // A store of the host's that panics is a disk that fails.
        let result = catch_unwind(AssertUnwindSafe(append)).unwrap_or_else(|_| {
            let source = std::io::Error::other("the store panicked");
            Err(StateError::Save { path: PathBuf::new(), source })
        });
        let mut queue = self.queue();
        queue.views_pending = true;
        queue.result = Some(result);
    }

    /// Refreshes some readable copies; may block. Tells whether some are left.
    pub fn refresh_views(&self) -> bool {
        let refresh = || self.with_store(|store| store.refresh_views(Self::VIEWS));
        let left = match catch_unwind(AssertUnwindSafe(refresh)) {
            Ok(Ok(left)) => left,
            Ok(Err(error)) => {
                tracing::debug!(%error, "a readable copy could not be written");
                0
            }
            Err(_) => 0,
        };
        self.queue().views_pending = left > 0;
        left > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::machine::Record;
    use crate::state::MemoryStore;

    fn entry(session: &str, revision: u64, waits: bool) -> Entry {
        let session: SessionId = session.try_into().expect("not empty");
        let ack = waits.then_some(SaveAck::Record { episode: 1, seq: revision, record: Record::Attempt });
        Entry { record: StateRecord { session, revision, memory: None }, ack }
    }

    #[test]
    fn a_disk_that_stands_still_does_not_grow_the_queue_beyond_the_sessions_newest_records() {
        let writer = Writer::new(Box::new(MemoryStore::default()));
        let pushes = 20 * Writer::BATCH as u64;
        writer.push(entry("waits", 1, true));
        for revision in 2..=pushes {
            writer.push(entry(["a", "b", "waits"][revision as usize % 3], revision, false));
        }
        let queue = writer.queue();
        assert!(queue.pending.len() <= 2 * Writer::BATCH, "{}", queue.pending.len());
        let newest = |name: &str| {
            let of = queue.pending.iter().filter(|entry| entry.record.session.as_str() == name);
            of.map(|entry| entry.record.revision).max()
        };
        assert_eq!([newest("a"), newest("b"), newest("waits")].iter().flatten().max(), Some(&pushes));
        let waiting: Vec<_> = queue.pending.iter().filter(|entry| entry.ack.is_some()).collect();
        assert_eq!(waiting.len(), 1, "whoever waits is told");
        assert!(waiting[0].record.revision > 1, "of what came later, which holds more");
    }
}
