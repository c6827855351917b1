use std::path::{Path, PathBuf};

use super::disk::{Directory, Disk};
use super::import::Import;
use super::index::Index;
use super::lock::Lock;
use super::log::Log;
use super::note::Notes;
use super::store::Lease;
use super::views::Views;
use super::{Inspection, RecoveryState, RecoveryStateStore, SessionSummary, StateError, StateNote, StateRecord, place};
use crate::failure::SessionId;

/// Our own directory inside the state directory.
pub(super) const OWN: &str = "backstop";

/// While nobody has time for the background, the log grows to this many times the usual length before those
/// who wait for an append wait for a new log, too: that costs some ten milliseconds.
const WHEN_BUSY: u64 = 8;

/// How a [`FileStore`] keeps its files.
#[derive(Debug, Clone)]
pub struct FileStoreOptions {
    /// Whether readable `recovery-*.json` files are kept beside the log. Default: yes.
    pub views: bool,
    /// Whether such files become kept history when there is no log, and those of sessions that a damaged
    /// one does not know. Default: yes.
    pub import: bool,
    /// A log larger than this many bytes, and than twice its live content, is written anew. Default:
    /// 8 MiB: rarer would read more at the next start, more often would write more than is gained.
    pub snapshot_above: u64,
    /// The largest `recovery-*.json`, in bytes; older attempts are left out of one that would be larger.
    /// Default: 256 KiB.
    pub view_bytes: usize,
}

impl Default for FileStoreOptions {
    fn default() -> Self {
        Self { views: true, import: true, snapshot_above: 8 * 1024 * 1024, view_bytes: RecoveryState::MAX_BYTES }
    }
}

/// Keeps state in files: an append-only log, the truth, in `backstop/`, and beside it readable views.
///
/// An append is one write and one `fdatasync`. All live records are in memory too. The state directory
/// may belong to other programs as well: only `recovery-*` and `backstop/` are touched.
///
/// ```
/// use backstop::policy::session::SessionMemory;
/// use backstop::state::{FileStore, FileStoreOptions, RecoveryStateStore, StateRecord};
///
/// let dir = tempfile::tempdir()?;
/// let record = StateRecord::new("s1".try_into()?, 1, &SessionMemory::default());
/// let (mut store, notes) = FileStore::open(dir.path(), FileStoreOptions::default())?;
/// assert!(notes.is_empty());
/// store.append(&[record.clone()])?;
/// drop(store);
///
/// let (mut store, _) = FileStore::open(dir.path(), FileStoreOptions::default())?;
/// assert_eq!(store.load(&record.session)?, Some(record));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct FileStore {
    /// `None` once closed.
    open: Option<Open>,
    options: FileStoreOptions,
    state: PathBuf,
}

struct Open {
    index: Index,
    log: Log,
    views: Views,
    lock: Lock,
}

impl FileStore {
    /// Where state is kept unless the host says otherwise, from its working directory.
    pub const DEFAULT_DIR: &str = ".rolebox/state";

    /// Opens the state directory, creating what is missing, for this process alone.
    ///
    /// What a crash can leave is mended, what is damaged is set aside, and the notes say so.
    ///
    /// # Errors
    ///
    /// [`StateError::Locked`] while another process has it; [`StateError::Newer`] and
    /// [`StateError::Unsafe`] leave everything as it is; [`StateError::Open`] and [`StateError::Save`]
    /// when the system refuses.
    pub fn open(dir: impl AsRef<Path>, options: FileStoreOptions) -> Result<(Self, Vec<StateNote>), StateError> {
        // Without a trailing slash, which would follow a link.
        let state: PathBuf = dir.as_ref().components().collect();
        let own = place::prepare(&state, OWN)?;
        let lock = Lock::take(&own)?;
        let disk = Directory::new(&own);
        if super::log::segments(&disk)?.is_empty() {
            place::sync_way(&own).map_err(|source| StateError::Open { path: state.clone(), source })?;
        }
        Self::on(Box::new(disk), Box::new(Directory::new(&state)), lock, state, options)
    }

    /// The same on any two disks.
    pub(super) fn on(
        own: Box<dyn Disk>,
        shared: Box<dyn Disk>,
        lock: Lock,
        state: PathBuf,
        options: FileStoreOptions,
    ) -> Result<(Self, Vec<StateNote>), StateError> {
        let mut notes = Notes::default();
        let (log, replay) = Log::open(own, &mut notes)?;
        // Of a damaged log's sessions some may be known by their readable copies only.
        let takes_over = log.is_new() || replay.is_damaged();
        let mut open =
            Open { index: replay.index, log, views: Views::new(shared, replay.stale, options.view_bytes), lock };
        open.views.tidy();
        let import = (takes_over && options.import).then(|| open.import(&state, &mut notes)).transpose()?;
        if open.log.is_broken() {
            open.snapshot(&options)?;
        }
        if let Some(import) = import {
            import.finish(open.views.disk(), &mut notes);
        }
        Ok((Self { open: Some(open), options, state }, notes.into_vec()))
    }

    /// Looks at a state directory, beside the process that holds it or without one, and changes nothing.
    ///
    /// # Errors
    ///
    /// As [`FileStore::open`], but never [`StateError::Locked`].
    pub fn inspect(dir: impl AsRef<Path>) -> Result<Inspection, StateError> {
        Inspection::of(&dir.as_ref().components().collect::<PathBuf>())
    }

    /// Puts records in their predecessors' place by writing the log anew: after a crash all of them are
    /// there or none. The copies of these sessions count as out of date from then on, and those of `others`.
    /// After an error the store is closed.
    pub(super) fn rewrite(
        &mut self,
        records: &[StateRecord],
        others: impl IntoIterator<Item = SessionId>,
    ) -> Result<(), StateError> {
        let mut open = self.open.take().ok_or(StateError::Closed)?;
        for record in open.index.changes(records)? {
            open.index.apply(&record.session, record.revision, record.memory.clone());
            open.views.outdate(&record.session);
        }
        others.into_iter().for_each(|session| open.views.outdate(&session));
        open.snapshot(&self.options)?;
        self.open = Some(open);
        Ok(())
    }

    /// Readable copies that are out of date.
    pub(super) fn outdated(&self) -> usize {
        self.open.as_ref().map_or(0, |open| open.views.stale().len())
    }

    fn opened(&mut self) -> Result<&mut Open, StateError> {
        self.open.as_mut().ok_or(StateError::Closed)
    }
}

impl Open {
    fn import(&mut self, state: &Path, notes: &mut Notes) -> Result<Import, StateError> {
        let import = Import::read(self.views.disk(), notes)
            .map_err(|source| StateError::Open { path: state.to_owned(), source })?
            .without(|session| self.index.get(session).is_some());
        for record in import.records() {
            self.index.apply(&record.session, record.revision, record.memory.clone());
            self.views.outdate(&record.session);
        }
        Ok(import)
    }

    fn snapshot(&mut self, options: &FileStoreOptions) -> Result<(), StateError> {
        self.log.snapshot(&self.index, options.views.then_some(self.views.stale()))
    }

    /// Makes the log fit to be written again after a failure, from the live records.
    fn repair(&mut self, state: &Path, options: &FileStoreOptions) -> Result<(), StateError> {
        if !self.lock.holds() {
            // The directory was removed or replaced: it is taken anew, unless somebody else uses it.
            let own = place::prepare(state, OWN)?;
            let lock = Lock::take(&own)?;
            if let Some((number, _)) = self.log.segments()?.last() {
                let path = own.join(super::log::name(*number));
                return Err(StateError::Unsafe { path, why: "another log took the place of the one that was open" });
            }
            self.lock = lock;
        }
        self.snapshot(options)
    }
}

impl RecoveryStateStore for FileStore {
    fn append(&mut self, batch: &[StateRecord]) -> Result<(), StateError> {
        let open = self.open.as_mut().ok_or(StateError::Closed)?;
        let changes = open.index.changes(batch)?;
        if changes.is_empty() {
            return Ok(());
        }
        // In the background it happens much earlier, in `refresh_views`.
        if open.log.wants_snapshot(open.index.bytes() * 2, self.options.snapshot_above.saturating_mul(WHEN_BUSY)) {
            let _ = open.snapshot(&self.options);
        }
        if open.log.is_broken() {
            open.repair(&self.state, &self.options)?;
        } else if !open.lock.holds() {
            // Somebody else may have taken the directory: the repair finds out.
            return Err(open.log.abandon("its lock was removed or replaced"));
        }
        open.log.append(&changes)?;
        for record in changes {
            open.index.apply(&record.session, record.revision, record.memory.clone());
            if self.options.views {
                open.views.outdate(&record.session);
            }
        }
        Ok(())
    }

    fn load(&mut self, session: &SessionId) -> Result<Option<StateRecord>, StateError> {
        Ok(self.opened()?.index.get(session))
    }

    fn list(&mut self) -> Result<Vec<SessionSummary>, StateError> {
        Ok(self.opened()?.index.list())
    }

    fn visit(&mut self, each: &mut dyn FnMut(StateRecord)) -> Result<(), StateError> {
        self.opened()?.index.iter().for_each(each);
        Ok(())
    }

    /// The lock lasts until the store is closed, unless its file is taken away.
    fn hold(&mut self) -> Result<Lease, StateError> {
        Ok(Lease { token: self.opened()?.lock.token(), lasts: None })
    }

    /// Brings up to this many `recovery-*.json` files up to date, and writes the log anew if it is due.
    fn refresh_views(&mut self, at_most: usize) -> Result<usize, StateError> {
        let open = self.open.as_mut().ok_or(StateError::Closed)?;
        let snapshot = match open.log.wants_snapshot(open.index.bytes(), self.options.snapshot_above) {
            true => open.snapshot(&self.options),
            false => Ok(()),
        };
        if !self.options.views {
            return snapshot.map(|()| 0);
        }
        if !open.views.stale().is_empty() {
            open.views.refresh(&open.index, at_most)?;
        }
        snapshot?;
        if open.views.stale().is_empty() {
            open.log.mark_views_fresh();
        }
        Ok(open.views.stale().len())
    }

    fn close(&mut self) -> Result<(), StateError> {
        // Everything acknowledged is durable, stale views are known to the log, and the lock goes with
        // its file.
        self.open = None;
        Ok(())
    }
}
