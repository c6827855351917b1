use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::checkpoint::{Checkpoint, CheckpointInfo, FORMAT, NotRead, decode, encode};
use super::disk::{Directory, Disk, set_aside};
use super::{StateError, file_stem, place};
use crate::failure::SessionId;

/// Where the checkpoints of self-healing loops are kept.
///
/// One caller owns a store and calls it from a thread that may block.
///
/// # Promises of an implementation
///
/// - What [`save`](Self::save) acknowledged is there after a crash, whole.
/// - A save that failed leaves an earlier checkpoint of the name as it was.
pub trait CheckpointStore: Send {
    /// Makes a checkpoint durable, in place of one of the same name.
    ///
    /// # Errors
    ///
    /// [`StateError::Save`] when the place cannot be written, [`StateError::TooLarge`] for a state over the
    /// store's bound, [`StateError::Unreadable`] for one that is no JSON text.
    fn save(&mut self, checkpoint: &Checkpoint) -> Result<(), StateError>;

    /// The checkpoint of this name; `None` if there is none.
    ///
    /// # Errors
    ///
    /// When the place cannot be read.
    fn load(&mut self, session: &SessionId, name: &str) -> Result<Option<Checkpoint>, StateError>;

    /// A loop's checkpoints, oldest first.
    ///
    /// # Errors
    ///
    /// When the place cannot be read.
    fn list(&mut self, session: &SessionId) -> Result<Vec<CheckpointInfo>, StateError>;

    /// Removes a checkpoint; tells whether there was one.
    ///
    /// # Errors
    ///
    /// When the place cannot be written.
    fn remove(&mut self, session: &SessionId, name: &str) -> Result<bool, StateError>;
}

/// The largest state of one checkpoint, in bytes.
pub const MAX_CHECKPOINT_BYTES: usize = 16 * 1024 * 1024;

fn too_large(checkpoint: &Checkpoint) -> Result<(), StateError> {
    let bytes = checkpoint.state.len();
    if bytes <= MAX_CHECKPOINT_BYTES {
        return Ok(());
    }
    Err(StateError::TooLarge { session: checkpoint.session.clone(), bytes, limit: MAX_CHECKPOINT_BYTES })
}

/// Checkpoints for the life of the process.
#[derive(Debug, Default)]
pub struct MemoryCheckpoints(BTreeMap<SessionId, BTreeMap<Arc<str>, Checkpoint>>);

impl CheckpointStore for MemoryCheckpoints {
    fn save(&mut self, checkpoint: &Checkpoint) -> Result<(), StateError> {
        too_large(checkpoint)?;
        let of_session = self.0.entry(checkpoint.session.clone()).or_default();
        of_session.insert(Arc::clone(&checkpoint.name), checkpoint.clone());
        Ok(())
    }

    fn load(&mut self, session: &SessionId, name: &str) -> Result<Option<Checkpoint>, StateError> {
        Ok(self.0.get(session).and_then(|of_session| of_session.get(name)).cloned())
    }

    fn list(&mut self, session: &SessionId) -> Result<Vec<CheckpointInfo>, StateError> {
        let all = self.0.get(session).into_iter().flat_map(BTreeMap::values);
        Ok(in_order(all.map(Checkpoint::info).collect()))
    }

    fn remove(&mut self, session: &SessionId, name: &str) -> Result<bool, StateError> {
        Ok(self.0.get_mut(session).is_some_and(|of_session| of_session.remove(name).is_some()))
    }
}

fn in_order(mut all: Vec<CheckpointInfo>) -> Vec<CheckpointInfo> {
    all.sort_by(|one, other| (one.order, &one.name).cmp(&(other.order, &other.name)));
    all
}

/// Checkpoints in files of our own directory, one directory for each loop: private, written new, synced and
/// renamed over the one before.
#[derive(Debug)]
pub struct FileCheckpoints {
    dir: PathBuf,
}

const SUFFIX: &str = ".json";
const NEW: &str = "checkpoint.new";

impl FileCheckpoints {
    /// The checkpoints of a state directory that this process has locked.
    pub(crate) fn of(state_dir: &Path) -> Self {
        Self { dir: state_dir.join("backstop").join("checkpoints") }
    }

    fn place_of(&self, session: &SessionId) -> PathBuf {
        self.dir.join(file_stem(session))
    }

    /// The loop's directory, if it has one.
    fn existing(&self, session: &SessionId) -> Result<Option<Directory>, StateError> {
        let dir = self.place_of(session);
        if dir.symlink_metadata().is_err() {
            return Ok(None);
        }
        place::check(&self.dir)?;
        place::check(&dir)?;
        Ok(Some(Directory::new(dir)))
    }

    fn file_of(name: &str) -> Option<String> {
        // Names are data like session ids, and get their files the same way.
        Some(format!("{}{SUFFIX}", file_stem(&SessionId::new(name).ok()?)))
    }
}

/// Reads one file; what is damaged is set aside, whole, and counts as absent.
fn read(disk: &mut Directory, file: &str, session: &SessionId) -> Result<Option<Checkpoint>, StateError> {
    /// Beside the state there is little in a file.
    const AT_MOST: u64 = MAX_CHECKPOINT_BYTES as u64 + 64 * 1024;
    let open = |disk: &Directory, source| StateError::Open { path: disk.path(file), source };
    let text = match disk.read(file, AT_MOST) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(open(disk, error)),
    };
    match decode(&text) {
        Ok(checkpoint) if checkpoint.session == *session => Ok(Some(checkpoint)),
        Err(NotRead::Newer(found)) => Err(StateError::Newer { path: disk.path(file), found, known: FORMAT }),
        Ok(_) | Err(NotRead::Damaged) => {
            let aside = set_aside(disk, file).map_err(|source| open(disk, source))?;
            tracing::error!(kept = %aside.display(), "a checkpoint is damaged; it was set aside");
            Ok(None)
        }
    }
}

impl CheckpointStore for FileCheckpoints {
    fn save(&mut self, checkpoint: &Checkpoint) -> Result<(), StateError> {
        too_large(checkpoint)?;
        let Checkpoint { session, name, .. } = checkpoint;
        let dir = self.place_of(session);
        place::prepare(&self.dir, &file_stem(session))?;
        let mut disk = Directory::new(&dir);
        let save = |source: io::Error| StateError::Save { path: dir.clone(), source };
        let file = Self::file_of(name).ok_or_else(|| save(io::ErrorKind::InvalidInput.into()))?;
        let text = encode(checkpoint).ok_or_else(|| save(io::ErrorKind::InvalidData.into()))?;
        // What a crash left half written.
        let _ = disk.remove(NEW);
        let mut write = || {
            let mut new = disk.create(NEW)?;
            new.write(&text)?;
            new.sync()?;
            disk.rename(NEW, &file)?;
            disk.sync()
        };
        write().map_err(save)
    }

    fn load(&mut self, session: &SessionId, name: &str) -> Result<Option<Checkpoint>, StateError> {
        let (Some(mut disk), Some(file)) = (self.existing(session)?, Self::file_of(name)) else { return Ok(None) };
        read(&mut disk, &file, session)
    }

    fn list(&mut self, session: &SessionId) -> Result<Vec<CheckpointInfo>, StateError> {
        let Some(mut disk) = self.existing(session)? else { return Ok(vec![]) };
        let path = self.place_of(session);
        let names = disk.names().map_err(|source| StateError::Open { path, source })?;
        let mut all = vec![];
        for entry in names.into_iter().filter(|entry| entry.regular && entry.name.ends_with(SUFFIX)) {
            all.extend(read(&mut disk, &entry.name, session)?.map(|checkpoint| checkpoint.info()));
        }
        Ok(in_order(all))
    }

    fn remove(&mut self, session: &SessionId, name: &str) -> Result<bool, StateError> {
        let (Some(mut disk), Some(file)) = (self.existing(session)?, Self::file_of(name)) else { return Ok(false) };
        match disk.remove(&file).and_then(|()| disk.sync()) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(source) => Err(StateError::Save { path: disk.path(&file), source }),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::checkpoint::tests::checkpoint;
    use super::*;

    fn session() -> SessionId {
        "s".try_into().unwrap()
    }

    fn keeps_its_promises(store: &mut dyn CheckpointStore) {
        for (name, order) in [("../b", 2), ("a", 1), ("../b", 3)] {
            store.save(&checkpoint("s", name, order)).unwrap();
        }
        store.save(&checkpoint("other", "a", 9)).unwrap();
        let listed: Vec<_> = store.list(&session()).unwrap().into_iter().map(|info| (info.name, info.order)).collect();
        assert_eq!(listed, [("a".into(), 1), ("../b".into(), 3)]);
        let loaded = store.load(&session(), "../b").unwrap().unwrap();
        assert_eq!(loaded.state, checkpoint("s", "../b", 3).state);
        assert!(store.remove(&session(), "a").unwrap() && !store.remove(&session(), "a").unwrap());
        assert!(store.load(&session(), "a").unwrap().is_none());
        let huge = Checkpoint { state: "1".repeat(MAX_CHECKPOINT_BYTES + 1).into(), ..checkpoint("s", "../b", 4) };
        assert!(matches!(store.save(&huge), Err(StateError::TooLarge { .. })));
        assert_eq!(store.load(&session(), "../b").unwrap().unwrap().order, 3);
    }

    #[test]
    fn memory_keeps_its_promises() {
        keeps_its_promises(&mut MemoryCheckpoints::default());
    }

    #[test]
    fn files_keep_theirs_in_private_places_of_our_own() {
        let dir = tempfile::tempdir().unwrap();
        keeps_its_promises(&mut FileCheckpoints::of(dir.path()));
        let of_session = dir.path().join("backstop/checkpoints/s");
        let files: Vec<_> = std::fs::read_dir(&of_session).unwrap().map(|entry| entry.unwrap()).collect();
        assert_eq!(files.len(), 1, "nothing half written is left");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!((mode(&files[0].path()), mode(&of_session)), (0o600, 0o700));
        }
    }

    #[test]
    fn a_damaged_checkpoint_is_set_aside_and_half_a_write_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = FileCheckpoints::of(dir.path());
        store.save(&checkpoint("s", "a", 1)).unwrap();
        store.save(&checkpoint("s", "b", 2)).unwrap();
        let of_session = dir.path().join("backstop/checkpoints/s");
        std::fs::write(of_session.join(NEW), "half").unwrap();
        std::fs::write(of_session.join("b.json"), "{\"format\":1,").unwrap();
        assert_eq!(store.list(&session()).unwrap().len(), 1);
        assert!(
            of_session
                .read_dir()
                .unwrap()
                .any(|entry| { entry.unwrap().file_name().to_string_lossy().starts_with("b.json.") })
        );
        store.save(&checkpoint("s", "b", 3)).unwrap();
        assert_eq!(store.list(&session()).unwrap().len(), 2);
    }
}
