use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::super::file::OWN;
use super::file::JournalFile;
use super::line::{Entry, Known, add_gap};
use crate::failure::{SessionId, Timestamp};
use crate::policy::Verdict;
use crate::policy::machine::Note;

/// Where decisions are handed over for the journal. Nobody waits here: what its writer cannot keep up
/// with is counted, and the journal says how many lines are missing.
pub(crate) struct Journal {
    /// `None` without a state directory.
    inner: Option<Arc<Inner>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct Inner {
    /// Bytes of both files together; 0 switches the journal off.
    limit: AtomicU64,
    /// Lines that wait.
    waiting: AtomicUsize,
    /// Lines that were left out and that the journal does not tell of yet.
    gap: AtomicU64,
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    entries: Vec<Entry>,
    /// Taken by the thread once it starts.
    file: Option<JournalFile>,
    closed: bool,
}

/// Lines that may wait to be written; with [`GATHER`] it bounds what a storm costs: at most 80 000
/// lines a second are made, whatever happens.
const MOST_WAITING: usize = 8_192;
/// How long lines are gathered before they are written.
const GATHER: Duration = Duration::from_millis(100);
/// Trouble that lasts is said again this often.
const WARN_EVERY: Duration = Duration::from_secs(60);

impl Journal {
    /// No journal.
    pub fn off() -> Self {
        Self { inner: None, thread: Mutex::default() }
    }

    /// The journal of a state directory that is open; nothing is written before the first decision.
    pub fn of(state: &Path, limit: u64) -> Self {
        let queue = Queue { file: Some(JournalFile::new(state.join(OWN))), ..Queue::default() };
        let inner = Inner {
            limit: limit.into(),
            waiting: AtomicUsize::new(0),
            gap: AtomicU64::new(0),
            queue: Mutex::new(queue),
            changed: Condvar::new(),
        };
        Self { inner: Some(Arc::new(inner)), thread: Mutex::default() }
    }

    /// Another bound, from now on.
    pub fn set_limit(&self, limit: u64) {
        if let Some(inner) = &self.inner {
            inner.limit.store(limit, Ordering::Relaxed);
        }
    }

    /// Decisions of an episode.
    pub fn decided(&self, session: &SessionId, episode: u64, notes: &[Note]) {
        self.push(notes.len(), || Entry::Decided { session: session.clone(), episode, notes: notes.to_vec() });
    }

    /// A strategy that acts by itself begins.
    pub fn begun(&self, session: &SessionId, episode: u64, seq: u64, strategy: &Arc<str>, attempt: u32, at: Timestamp) {
        self.push(1, || {
            let (session, strategy) = (session.clone(), Arc::clone(strategy));
            Entry::Begun { session, episode, seq, strategy, attempt, at }
        });
    }

    /// A failure opened no episode.
    pub fn refused(&self, session: &SessionId, notes: &[Note], verdict: &Verdict, at: Timestamp) {
        self.push(notes.len() + 1, || {
            let (session, notes, verdict) = (session.clone(), notes.to_vec(), verdict.clone());
            Entry::Refused { session, notes, verdict, at }
        });
    }

    fn push(&self, lines: usize, entry: impl FnOnce() -> Entry) {
        let Some(inner) = &self.inner else { return };
        if inner.limit.load(Ordering::Relaxed) == 0 {
            return;
        }
        if inner.waiting.fetch_add(lines, Ordering::Relaxed) + lines > MOST_WAITING {
            inner.waiting.fetch_sub(lines, Ordering::Relaxed);
            inner.gap.fetch_add(lines as u64, Ordering::Relaxed);
            return;
        }
        let entry = entry();
        let mut queue = inner.lock();
        queue.entries.push(entry);
        if queue.entries.len() > 1 || queue.closed {
            return;
        }
        match queue.file.take() {
            None => inner.changed.notify_all(),
            Some(file) => {
                drop(queue);
                self.start(inner, file);
            }
        }
    }

    fn start(&self, inner: &Arc<Inner>, file: JournalFile) {
        let of_thread = Arc::clone(inner);
        // Held until its thread is known: whoever closes the journal waits for it.
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        let spawned =
            std::thread::Builder::new().name("backstop-journal".into()).spawn(move || of_thread.write_all(file));
        match spawned {
            Ok(spawned) => *thread = Some(spawned),
            Err(error) => {
                tracing::warn!(%error, "the journal's thread cannot be started; no decisions are written down");
                inner.limit.store(0, Ordering::Relaxed);
            }
        }
    }

    /// Has everything written that was handed over, and lets go of the files; may block.
    pub fn close(&self) {
        let Some(inner) = &self.inner else { return };
        inner.close();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // A panic there lost lines of the journal and nothing else.
            let _ = thread.join();
        }
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        if let Some(inner) = &self.inner {
            inner.close();
        }
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    /// The thread's life: gathers, makes lines, writes them.
    fn write_all(&self, mut file: JournalFile) {
        let (mut text, mut known, mut warned) = (vec![], Known::default(), None);
        let mut at = Timestamp::default();
        while let Some(batch) = self.next_batch() {
            text.clear();
            let lines = batch.iter().map(|entry| {
                entry.write(&mut text, &mut known);
                entry.lines()
            });
            let lines = lines.sum::<usize>();
            at = batch.last().map_or(at, Entry::at);
            drop(batch);
            self.waiting.fetch_sub(lines, Ordering::Relaxed);
            let limit = self.limit.load(Ordering::Relaxed);
            if limit == 0 {
                // Switched off meanwhile: what is there stays.
                continue;
            }
            let gap = self.gap.swap(0, Ordering::Relaxed);
            if gap > 0 {
                add_gap(at, gap, &mut text);
            }
            match file.append(&text, limit) {
                Ok(left_out) => drop(self.gap.fetch_add(left_out, Ordering::Relaxed)),
                Err(error) => {
                    self.gap.fetch_add(gap + lines as u64, Ordering::Relaxed);
                    if warned.is_none_or(|warned: Instant| warned.elapsed() >= WARN_EVERY) {
                        warned = Some(Instant::now());
                        let path = file.path();
                        tracing::warn!(%error, path = %path.display(), "decisions cannot be written down");
                    }
                }
            }
        }
        let gap = self.gap.swap(0, Ordering::Relaxed);
        let limit = self.limit.load(Ordering::Relaxed);
        if gap > 0 && limit > 0 {
            text.clear();
            add_gap(at, gap, &mut text);
            if file.append(&text, limit).is_err() {
                self.gap.fetch_add(gap, Ordering::Relaxed);
            }
        }
    }

    /// What has been handed over; `None` once it is closed and empty.
    fn next_batch(&self) -> Option<Vec<Entry>> {
        let is_idle = |queue: &mut Queue| queue.entries.is_empty() && !queue.closed;
        let queue = self.changed.wait_while(self.lock(), is_idle).unwrap_or_else(PoisonError::into_inner);
        let gathered = self.changed.wait_timeout_while(queue, GATHER, |queue| !queue.closed);
        let (mut queue, _) = gathered.unwrap_or_else(PoisonError::into_inner);
        (!queue.entries.is_empty()).then(|| std::mem::take(&mut queue.entries))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::policy::machine::NoteKind;

    fn note(number: u64) -> Note {
        Note { at: Timestamp::from_millis(number), seq: number, what: NoteKind::Remark { text: "noted".into() } }
    }

    fn written(dir: &Path) -> String {
        std::fs::read_to_string(dir.join(OWN).join(super::super::CURRENT)).unwrap_or_default()
    }

    fn dir() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join(OWN)).unwrap();
        dir
    }

    #[test]
    fn what_finds_no_room_is_counted_and_nobody_waits() {
        let dir = dir();
        let journal = Journal::of(dir.path(), 1 << 30);
        let session = SessionId::new("s").unwrap();
        let many: Vec<Note> = (0..MOST_WAITING as u64).map(note).collect();
        // As if its thread never came to it.
        let file = journal.inner.as_ref().unwrap().lock().file.take().unwrap();
        journal.decided(&session, 1, &many);
        journal.decided(&session, 1, &many[..7]);
        let inner = Arc::clone(journal.inner.as_ref().unwrap());
        inner.close();
        inner.write_all(file);
        let text = written(dir.path());
        assert_eq!(text.lines().count(), MOST_WAITING + 1);
        assert_eq!(text.lines().last().unwrap(), format!("{{\"at\":{},\"gap\":7}}", MOST_WAITING - 1));
        assert_eq!(inner.waiting.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_disk_that_fails_is_counted_too() {
        let dir = dir();
        let place = dir.path().join(OWN).join(super::super::CURRENT);
        std::fs::create_dir(&place).unwrap();
        let journal = Journal::of(dir.path(), 1 << 20);
        let session = SessionId::new("s").unwrap();
        let mut file = journal.inner.as_ref().unwrap().lock().file.take();
        let inner = Arc::clone(journal.inner.as_ref().unwrap());
        journal.decided(&session, 1, &[note(1), note(2)]);
        inner.close();
        inner.write_all(file.take().unwrap());
        std::fs::remove_dir(&place).unwrap();
        inner.lock().entries.push(Entry::Decided { session, episode: 1, notes: vec![note(3)] });
        inner.write_all(JournalFile::new(dir.path().join(OWN)));
        let text = written(dir.path());
        assert!(text.starts_with("{\"at\":3,") && text.ends_with("{\"at\":3,\"gap\":2}\n"), "{text}");
    }

    #[test]
    fn a_bound_of_nothing_switches_it_off_and_on_again() {
        let dir = dir();
        let journal = Journal::of(dir.path(), 0);
        let session = SessionId::new("s").unwrap();
        journal.decided(&session, 1, &[note(1)]);
        journal.set_limit(1 << 20);
        journal.decided(&session, 1, &[note(2)]);
        journal.close();
        assert_eq!(written(dir.path()).lines().count(), 1);
        journal.decided(&session, 1, &[note(3)]);
    }
}
