//! A state directory made whole again: what is damaged is set aside, the log written anew.

use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::disk::{Directory, Disk, set_aside};
use super::file::OWN;
use super::lock::Lock;
use super::log::is_segment;
use super::verify::Needs;
use super::views::view_name;
use super::{
    FileStore, FileStoreOptions, RecoveryStateStore, StateError, StateNote, StateRecord, Verification, file_stem, place,
};

/// What a repair did.
#[derive(Debug, Serialize)]
pub struct Repaired {
    /// What was found before it.
    pub before: Verification,
    /// What is found after it: what it left alone.
    pub after: Verification,
    /// Where everything that it changed is kept as it was; none if there was nothing to do.
    pub backup: Option<PathBuf>,
    /// What was done on the way.
    #[serde(skip)]
    pub notes: Vec<StateNote>,
}

/// How many backups of a directory are kept; the oldest beyond goes.
const BACKUPS_KEPT: u32 = 3;
/// A backup that is not finished.
const UNFINISHED: &str = "backup.new";
/// Copies written between two words on the progress.
const AT_A_TIME: usize = 16;

impl FileStore {
    /// Makes a state directory whole again, with nobody else in it: sets aside what does not read, writes
    /// the log anew from what does, and the readable copies that do not fit it. Everything that is changed is
    /// first copied to `backstop/backup-N/`, of which three are kept. Nothing is changed where nothing
    /// is wrong, and nothing of other programs ever.
    ///
    /// A process that is stopped in the middle of it leaves the log as it was or repaired.
    ///
    /// ```
    /// use backstop::state::{FileStore, FileStoreOptions};
    ///
    /// let dir = tempfile::tempdir()?;
    /// let repaired = FileStore::repair(dir.path(), FileStoreOptions::default(), &mut |_, _| {})?;
    /// assert!(repaired.backup.is_none(), "there was nothing to do");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`FileStore::open`]; [`StateError::View`] when a copy could not be written, the log being whole.
    pub fn repair(
        dir: impl AsRef<Path>,
        options: FileStoreOptions,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<Repaired, StateError> {
        let state: PathBuf = dir.as_ref().components().collect();
        let own = state.join(OWN);
        if own.symlink_metadata().is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            let look = || Self::verify(&state, &mut |_, _| {});
            return Ok(Repaired { before: look()?, after: look()?, backup: None, notes: vec![] });
        }
        place::check(&state)?;
        place::check(&own)?;
        let lock = Lock::take(&own)?;
        let mut before = Self::verify(&state, progress)?;
        let needs = std::mem::take(&mut before.needs);
        if needs.is_nothing() {
            let after = Self::verify(&state, &mut |_, _| {})?;
            return Ok(Repaired { before, after, backup: None, notes: vec![] });
        }
        let backup =
            back_up(&own, &state, &needs).map_err(|source| StateError::Save { path: own.join(UNFINISHED), source })?;
        for path in &needs.modes {
            place::close_to_others(path).map_err(|source| StateError::Save { path: path.clone(), source })?;
        }
        let disks = (Directory::new(&own), Directory::new(&state));
        let (mut store, notes) = Self::on(Box::new(disks.0), Box::new(disks.1), lock, state.clone(), options)?;
        let forgotten = needs.set_aside(&own, &state)?;
        store.rewrite(&forgotten, needs.copies)?;
        let all = store.outdated();
        loop {
            progress(all - store.outdated().min(all), all);
            if store.refresh_views(AT_A_TIME)? == 0 {
                break;
            }
        }
        // Before the lock goes, so that nobody else's doings are reported as left over.
        let after = Self::verify(&state, &mut |_, _| {})?;
        store.close()?;
        Ok(Repaired { before, after, backup: Some(backup), notes })
    }
}

impl Needs {
    fn is_nothing(&self) -> bool {
        !self.log
            && !self.tidying
            && self.records.is_empty()
            && self.aside.is_empty()
            && self.copies.is_empty()
            && self.modes.is_empty()
    }

    /// Sets aside what does not read; the records that take the place of those that do not.
    fn set_aside(&self, own: &Path, state: &Path) -> Result<Vec<StateRecord>, StateError> {
        let mut disk = Directory::new(state);
        for name in &self.aside {
            match set_aside(&mut disk, name) {
                // The import saw to it.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                aside => drop(aside.map_err(|source| StateError::Save { path: state.join(name), source })?),
            }
        }
        let mut disk = Directory::new(own);
        let forget = |record: &StateRecord| {
            let name = format!("record-{}", file_stem(&record.session));
            let aside = keep_record(&mut disk, &name, record);
            aside.map_err(|source| StateError::Save { path: own.join(&name), source })?;
            Ok(StateRecord::forgotten(record.session.clone(), record.revision.saturating_add(1)))
        };
        self.records.iter().map(forget).collect()
    }
}

/// A record that does not read as a file, for a person to look at.
fn keep_record(disk: &mut Directory, name: &str, record: &StateRecord) -> io::Result<()> {
    match disk.remove(name) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = disk.create(name)?;
    file.write(record.memory.as_deref().unwrap_or_default())?;
    file.sync()?;
    set_aside(disk, name).map(drop)
}

/// Copies everything that will be changed, under a name that is there only once all of it is.
fn back_up(own: &Path, state: &Path, needs: &Needs) -> io::Result<PathBuf> {
    let unfinished = own.join(UNFINISHED);
    if unfinished.symlink_metadata().is_ok() {
        std::fs::remove_dir_all(&unfinished)?;
    }
    place::create_dir(&unfinished)?;
    for entry in Directory::new(own).names()? {
        if entry.regular && is_segment(&entry.name) {
            copy(&own.join(&entry.name), &unfinished.join(&entry.name))?;
        }
    }
    let copies = needs.copies.iter().map(view_name);
    for name in needs.aside.iter().cloned().chain(copies) {
        match copy(&state.join(&name), &unfinished.join(&name)) {
            // Missing, or no file: it will be set aside as it is.
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidInput) => {}
            // Named twice.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            copied => copied?,
        }
    }
    place::sync_dir(&unfinished)?;
    let backup = free_backup(own)?;
    std::fs::rename(&unfinished, &backup)?;
    place::sync_dir(own)?;
    Ok(backup)
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let mut from = place::open_to_read(from)?;
    let mut to = place::create_file(to)?;
    io::copy(&mut from, &mut to)?;
    to.sync_all()
}

/// The first free place; if there is none, the oldest backup makes room.
fn free_backup(own: &Path) -> io::Result<PathBuf> {
    let numbered = |number: u32| own.join(format!("backup-{number}"));
    if let Some(free) = (1..=BACKUPS_KEPT).map(numbered).find(|path| path.symlink_metadata().is_err()) {
        return Ok(free);
    }
    std::fs::remove_dir_all(numbered(1))?;
    for number in 1..BACKUPS_KEPT {
        std::fs::rename(numbered(number + 1), numbered(number))?;
    }
    Ok(numbered(BACKUPS_KEPT))
}
