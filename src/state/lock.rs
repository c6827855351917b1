use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use super::disk::check_named;
use super::{StateError, place};

/// The right to write a state directory: the kernel's lock on a file, let go of when the process ends,
/// however it ends. The process id in the file is for people, the number below it tells holders apart.
#[derive(Debug)]
pub(super) struct Lock {
    dir: PathBuf,
    file: File,
    token: u64,
}

const NAME: &str = "lock";
/// Enough for any process id and token.
const HOLDER_BYTES: u64 = 64;

impl Lock {
    /// Takes the lock at once or not at all.
    pub fn take(dir: &Path) -> Result<Self, StateError> {
        let path = dir.join(NAME);
        let open = |source| StateError::Open { path: path.clone(), source };
        if path.symlink_metadata().is_ok_and(|meta| !meta.is_file()) {
            return Err(StateError::Unsafe { path, why: "it is no regular file" });
        }
        let mut file = place::open_or_create(&path).map_err(open)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(StateError::Locked { dir: dir.to_owned(), holder: read(&file).process });
            }
            Err(TryLockError::Error(source)) => return Err(open(source)),
        }
        check_named(&file, &path).map_err(open)?;
        let token = read(&file).token.saturating_add(1);
        name_holder(&mut file, token).map_err(open)?;
        Ok(Self { dir: dir.to_owned(), file, token })
    }

    /// Rises with every holder of the directory, as long as nobody removes the lock's file.
    pub fn token(&self) -> u64 {
        self.token
    }

    /// The same file a second time, for disks that are only played.
    #[cfg(test)]
    pub fn again(&self) -> io::Result<Self> {
        Ok(Self { dir: self.dir.clone(), file: self.file.try_clone()?, token: self.token })
    }

    /// Whether the lock still guards the directory: it and the lock's file are those that were locked.
    pub fn holds(&self) -> bool {
        check_named(&self.file, &self.dir.join(NAME)).is_ok()
    }
}

impl Drop for Lock {
    /// Closing is not enough: a process that is just being started holds a copy of the open file.
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}

fn name_holder(file: &mut File, token: u64) -> io::Result<()> {
    let text = format!("{}\n{token}\n", std::process::id());
    file.rewind()?;
    // Over the old text and then cut: at no moment is there no token.
    file.write_all(text.as_bytes())?;
    file.set_len(text.len() as u64)
}

/// What the file says of its last holder.
#[derive(Default)]
struct Holder {
    process: Option<u32>,
    token: u64,
}

fn read(file: &File) -> Holder {
    let mut text = String::new();
    if file.take(HOLDER_BYTES).read_to_string(&mut text).is_err() {
        return Holder::default();
    }
    let mut lines = text.lines();
    let process = lines.next().and_then(|line| line.trim().parse().ok());
    Holder { process, token: lines.next().and_then(|line| line.trim().parse().ok()).unwrap_or(0) }
}
