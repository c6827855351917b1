//! What waits for the disk: kept outside the actor, so that no panic loses it.

use std::collections::{BTreeMap, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use super::messages::SaveAck;
use super::outage::Outage;
use super::remembered::Draft;
use crate::failure::SessionId;
use crate::state::{Lease, RecoveryStateStore, StateError};

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
    pub refused: BTreeMap<SessionId, Draft>,
    /// The last time in which records were refused, and whose.
    pub outage: Option<Outage>,
    /// Refused records are due again, although nothing new is to be written.
    pub retry: bool,
    /// A record is queued that somebody waits for.
    pub is_awaited: bool,
    /// Who waits for what was queued up to an entry to be written.
    flushes: Vec<(u64, oneshot::Sender<bool>)>,
    /// The last entry's number.
    pushed: u64,
    /// Readable copies may be out of date.
    pub views_pending: bool,
    /// They have been so for long enough: an episode that ends at once needs none.
    pub views_are_due: bool,
    /// A timer for them runs.
    pub views_are_timed: bool,
    /// A timer for the refused records runs.
    pub retry_is_due: bool,
    /// The right to write is to be prolonged before anything else is written.
    pub hold_is_due: bool,
    /// What came of it.
    pub held: Option<Result<Lease, StateError>>,
    /// Thin the queue out when it is this long.
    thin_at: usize,
}

pub(crate) struct Entry {
    pub draft: Draft,
    pub ack: Option<SaveAck>,
    /// The order in which entries came.
    number: u64,
}

impl Entry {
    pub fn new(draft: Draft, ack: Option<SaveAck>) -> Self {
        Self { draft, ack, number: 0 }
    }
}

impl Queue {
    /// Puts back what could not be written as part of its batch.
    pub fn put_back(&mut self, batch: Vec<Entry>) {
        self.is_awaited |= batch.iter().any(|entry| entry.ack.is_some());
        self.pending.splice(0..0, batch);
    }

    /// Tells when everything queued so far is written, or cannot be.
    pub fn flush(&mut self, done: oneshot::Sender<bool>) {
        self.retry = true;
        self.flushes.push((self.pushed, done));
    }

    /// Answers those whose entries are written, however many came after them.
    pub fn answer_flushes(&mut self) {
        if self.in_flight.is_some() || self.retry || self.flushes.is_empty() {
            return;
        }
        let oldest = self.pending.iter().map(|entry| entry.number).min().unwrap_or(u64::MAX);
        // What was refused for good counts until a newer record of its session is written.
        let is_durable = self.outage.as_ref().is_none_or(|outage| outage.not_durable.is_empty());
        for (_, done) in self.flushes.extract_if(.., |(last, _)| *last < oldest) {
            let _ = done.send(is_durable);
        }
    }

    /// Whether the next batch should not wait for more.
    pub fn is_urgent(&self) -> bool {
        self.is_awaited || self.retry || !self.flushes.is_empty()
    }

    /// Drops what a newer record of the same session makes needless: a disk that is too slow for
    /// everything gets the newest of each session, and the queue stays as long as there are sessions.
    fn thin_out(&mut self) {
        let (mut newest, mut first) = (HashMap::new(), HashMap::new());
        for entry in &self.pending {
            newest.insert(entry.draft.session.clone(), (entry.draft.revision, entry.draft.memory.clone()));
            first.entry(entry.draft.session.clone()).or_insert(entry.number);
        }
        self.pending.retain_mut(|entry| match newest.get(&entry.draft.session) {
            Some((revision, _)) if *revision == entry.draft.revision => {
                // It stands for all that it replaces.
                entry.number = first.get(&entry.draft.session).copied().unwrap_or(entry.number);
                true
            }
            // Somebody waits for it: the newest record holds more than what this one was to make durable.
            Some((revision, memory)) if entry.ack.is_some() => {
                (entry.draft.revision, entry.draft.memory) = (*revision, memory.clone());
                true
            }
            _ => false,
        });
        self.thin_at = 2 * self.pending.len();
    }
}

impl Writer {
    /// New records in one batch at most, and refused ones: bounds how long one append takes.
    pub const BATCH: usize = 4_096;
    /// Readable copies written at a time, between two batches: each costs a sync.
    const VIEWS: usize = 4;

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
    pub fn push(&self, mut entry: Entry) -> bool {
        let mut queue = self.queue();
        queue.pushed += 1;
        entry.number = queue.pushed;
        let is_first_awaited = entry.ack.is_some() && !queue.is_awaited;
        queue.is_awaited |= is_first_awaited;
        queue.pending.push(entry);
        if queue.pending.len() >= queue.thin_at.max(2 * Self::BATCH) {
            queue.thin_out();
        }
        queue.pending.len() == 1 || is_first_awaited
    }

    /// For an actor that takes another's place: puts back a batch whose writing never began.
    pub fn unstick(&self) {
        let mut queue = self.queue();
        if queue.result.is_none()
            && !queue.job_runs
            && let Some(batch) = queue.in_flight.take()
        {
            queue.put_back(batch);
        }
        // Their timers told the one before, if anybody.
        (queue.retry_is_due, queue.views_are_timed) = (false, false);
        queue.retry = !queue.refused.is_empty();
    }

    /// Calls the store; may block.
    pub fn with_store<T>(&self, call: impl FnOnce(&mut dyn RecoveryStateStore) -> T) -> T {
        let mut store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        call(&mut **store)
    }

    /// Forms the next batch, if there is something to write and no batch under way: the newest of each
    /// session.
    pub fn next_batch(&self) -> Option<Vec<Draft>> {
        let mut queue = self.queue();
        let retries = std::mem::take(&mut queue.retry) && !queue.refused.is_empty();
        if queue.in_flight.is_some() || (queue.pending.is_empty() && !retries) {
            return None;
        }
        let count = queue.pending.len().min(Self::BATCH);
        let batch: Vec<Entry> = queue.pending.drain(..count).collect();
        for entry in &batch {
            // A newer record of the session makes the refused one needless.
            queue.refused.remove(&entry.draft.session);
        }
        let mut refused = std::mem::take(&mut queue.refused).into_iter();
        let again: Vec<Entry> = refused.by_ref().take(Self::BATCH).map(|(_, draft)| Entry::new(draft, None)).collect();
        queue.refused = refused.collect();
        // A flush waits for all of them.
        queue.retry = retries && !queue.refused.is_empty();
        let batch: Vec<Entry> = again.into_iter().chain(batch).collect();
        queue.is_awaited = queue.pending.iter().any(|entry| entry.ack.is_some());
        let drafts = newest(&batch);
        queue.in_flight = Some(batch);
        Some(drafts)
    }

    /// Writes a batch; may block. The result waits in the queue.
    pub fn write(&self, drafts: &[Draft]) {
        let append = || {
            let records: Vec<_> = drafts.iter().map(Draft::record).collect();
            self.with_store(|store| store.append(&records))
        };
        // A store of the host's that panics is a disk that fails.
        let result = catch_unwind(AssertUnwindSafe(append)).unwrap_or_else(|_| Err(panicked()));
        let mut queue = self.queue();
        queue.views_pending = true;
        queue.result = Some(result);
    }

    /// Prolongs the right to write; may block. The result waits in the queue.
    pub fn hold(&self) {
        let hold = || self.with_store(|store| store.hold());
        let held = catch_unwind(AssertUnwindSafe(hold)).unwrap_or_else(|_| Err(panicked()));
        self.queue().held = Some(held);
    }

    /// Refreshes some readable copies; may block. Tells whether some are left.
    pub fn refresh_views(&self) -> bool {
        let refresh = || self.with_store(|store| store.refresh_views(Self::VIEWS));
        let refreshed = catch_unwind(AssertUnwindSafe(refresh));
        if let Ok(Err(error)) = &refreshed {
            tracing::debug!(%error, "a readable copy could not be written");
        }
        let mut queue = self.queue();
        let Ok(Ok(left)) = refreshed else {
            // Tried again, like one that is newly out of date.
            (queue.views_pending, queue.views_are_due) = (true, false);
            return false;
        };
        queue.views_pending = left > 0;
        queue.views_are_due &= left > 0;
        left > 0
    }
}

fn panicked() -> StateError {
    StateError::Save { path: PathBuf::new(), source: std::io::Error::other("the store panicked") }
}

/// The newest draft of each session, in the order of their first.
fn newest(batch: &[Entry]) -> Vec<Draft> {
    let mut places = HashMap::with_capacity(batch.len());
    let mut newest: Vec<&Draft> = Vec::with_capacity(batch.len());
    for Entry { draft, .. } in batch {
        let place = *places.entry(&draft.session).or_insert(newest.len());
        match newest.get_mut(place) {
            None => newest.push(draft),
            Some(known) if known.revision <= draft.revision => *known = draft,
            Some(_) => {}
        }
    }
    newest.into_iter().cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::machine::Record;
    use crate::state::MemoryStore;

    fn entry(session: &str, revision: u64, waits: bool) -> Entry {
        let session: SessionId = session.try_into().expect("not empty");
        let ack = waits.then_some(SaveAck::Record { episode: 1, seq: revision, record: Record::Attempt });
        Entry::new(Draft { session, revision, memory: None }, ack)
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
            let of = queue.pending.iter().filter(|entry| entry.draft.session.as_str() == name);
            of.map(|entry| entry.draft.revision).max()
        };
        let mut found = [newest("a"), newest("b"), newest("waits")];
        found.sort_unstable();
        assert_eq!(found, [Some(pushes - 2), Some(pushes - 1), Some(pushes)], "the newest of each");
        let waiting: Vec<_> = queue.pending.iter().filter(|entry| entry.ack.is_some()).collect();
        assert_eq!(waiting.len(), 1, "whoever waits is told");
        assert!(waiting[0].draft.revision > 1, "of what came later, which holds more");
    }

    #[test]
    fn a_flush_waits_for_what_came_before_it_and_for_nothing_after() {
        let writer = Writer::new(Box::new(MemoryStore::default()));
        writer.push(entry("a", 1, false));
        let (done, mut flushed) = oneshot::channel();
        writer.queue().flush(done);
        assert!(writer.queue().is_urgent());
        let batch = writer.next_batch().expect("there is something to write");
        writer.push(entry("b", 1, false));
        writer.write(&batch);
        writer.queue().answer_flushes();
        assert!(flushed.try_recv().is_err(), "the batch is not settled");
        let mut queue = writer.queue();
        (queue.in_flight, queue.result) = (None, None);
        queue.answer_flushes();
        assert_eq!(flushed.try_recv(), Ok(true));
        assert_eq!(queue.pending.len(), 1);
    }

    #[test]
    fn one_that_takes_over_trusts_no_timer_of_the_one_before() {
        let writer = Writer::new(Box::new(MemoryStore::default()));
        {
            let mut queue = writer.queue();
            (queue.retry_is_due, queue.views_are_timed) = (true, true);
            let Entry { draft, .. } = entry("a", 1, false);
            queue.refused.insert(draft.session.clone(), draft);
        }
        writer.unstick();
        assert_eq!(writer.next_batch().map(|batch| batch.len()), Some(1), "what was refused is tried again");
        assert!(!writer.queue().retry_is_due && !writer.queue().views_are_timed);
    }

    #[test]
    fn of_a_sessions_records_in_a_batch_only_the_newest_is_made() {
        let writer = Writer::new(Box::new(MemoryStore::default()));
        for (session, revision) in [("a", 1), ("b", 1), ("a", 3), ("a", 2)] {
            writer.push(entry(session, revision, false));
        }
        let batch = writer.next_batch().expect("there is something to write");
        let made: Vec<_> = batch.iter().map(|draft| (draft.session.as_str(), draft.revision)).collect();
        assert_eq!(made, [("a", 3), ("b", 1)]);
    }
}
