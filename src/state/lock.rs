use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use super::disk::check_named;
use super::{StateError, place};

/// The right to write a state directory: the kernel's lock on a file, let go of when the process ends,
/// however it ends. The process id in the file is for people.
#[derive(Debug)]
pub(super) struct Lock {
    dir: PathBuf,
    file: File,
}

const NAME: &str = "lock";
/// Enough for any process id.
const HOLDER_BYTES: u64 = 32;

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
                return Err(StateError::Locked { dir: dir.to_owned(), holder: holder(&file) });
            }
            Err(TryLockError::Error(source)) => return Err(open(source)),
        }
        check_named(&file, &path).map_err(open)?;
        name_holder(&mut file).map_err(open)?;
        Ok(Self { dir: dir.to_owned(), file })
    }

    /// The same file a second time, for disks that are only played.
    #[cfg(test)]
    pub fn again(&self) -> io::Result<Self> {
        Ok(Self { dir: self.dir.clone(), file: self.file.try_clone()? })
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

fn name_holder(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{}", std::process::id())
}

fn holder(file: &File) -> Option<u32> {
    let mut text = String::new();
    file.take(HOLDER_BYTES).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}
