use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::super::place;
use super::{CURRENT, OLDER};

/// The journal's two files, as their writer sees them.
pub(super) struct JournalFile {
    dir: PathBuf,
    open: Option<Open>,
    /// The bound that the files were fitted to.
    fitted: u64,
}

struct Open {
    file: File,
    bytes: u64,
}

impl JournalFile {
    /// The journal in this directory; nothing is opened yet.
    pub fn new(dir: PathBuf) -> Self {
        Self { dir, open: None, fitted: 0 }
    }

    pub fn path(&self) -> PathBuf {
        self.dir.join(CURRENT)
    }

    /// Adds whole lines, so that both files together stay within `limit` bytes; tells how many lines
    /// found no room at all.
    ///
    /// # Errors
    ///
    /// The system's; some of the lines may have been written.
    pub fn append(&mut self, lines: &[u8], limit: u64) -> io::Result<u64> {
        let half = limit / 2;
        let mut left_out = 0;
        let mut rest = lines;
        while !rest.is_empty() {
            let open = self.opened(limit)?;
            let room = usize::try_from(half.saturating_sub(open.bytes)).unwrap_or(usize::MAX);
            let fits = &rest[..rest.len().min(room)];
            if let Some(end) = fits.iter().rposition(|byte| *byte == b'\n') {
                let (now, later) = rest.split_at(end + 1);
                let written = open.file.write_all(now);
                open.bytes += now.len() as u64;
                if written.is_err() {
                    // What is there of it is ended by the next opening.
                    self.open = None;
                }
                written?;
                rest = later;
            } else if open.bytes > 0 {
                // One that a larger bound let grow has no place beside another.
                let is_too_large = open.bytes > half;
                self.open = None;
                match is_too_large {
                    true => fs::remove_file(self.dir.join(CURRENT))?,
                    false => fs::rename(self.dir.join(CURRENT), self.dir.join(OLDER))?,
                }
            } else {
                let end = rest.iter().position(|byte| *byte == b'\n').map_or(rest.len(), |end| end + 1);
                rest = &rest[end..];
                left_out += 1;
            }
        }
        Ok(left_out)
    }

    fn opened(&mut self, limit: u64) -> io::Result<&mut Open> {
        let path = self.path();
        let is_ours = |open: &Open| place::is_named(&open.file, &path).unwrap_or(false);
        let open = match self.open.take().filter(is_ours) {
            Some(open) if self.fitted == limit => open,
            _ => {
                self.fit(limit / 2)?;
                open_file(&path)?
            }
        };
        self.fitted = limit;
        Ok(self.open.insert(open))
    }

    /// An older file that a larger bound left behind goes.
    fn fit(&self, half: u64) -> io::Result<()> {
        let older = self.dir.join(OLDER);
        match older.symlink_metadata() {
            Ok(meta) if meta.len() > half && !meta.is_dir() => fs::remove_file(older),
            Ok(_) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }
}

fn open_file(path: &Path) -> io::Result<Open> {
    match place::open_to_append(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Open { file: place::create_file(path)?, bytes: 0 }),
        Err(error) => Err(error),
        Ok(mut file) => {
            let mut bytes = file.metadata()?.len();
            if bytes > 0 && !ends_with_a_line(path)? {
                // A crash cut the last line: what follows must not be joined to it.
                file.write_all(b"\n")?;
                bytes += 1;
            }
            Ok(Open { file, bytes })
        }
    }
}

fn ends_with_a_line(path: &Path) -> io::Result<bool> {
    let mut file = place::open_to_read(path)?;
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn sizes(dir: &Path) -> u64 {
        [CURRENT, OLDER].iter().map(|name| dir.join(name).metadata().map_or(0, |meta| meta.len())).sum()
    }

    fn text(dir: &Path, name: &str) -> String {
        fs::read_to_string(dir.join(name)).unwrap()
    }

    #[test]
    fn both_files_together_stay_within_the_bound_and_hold_the_newest_lines() {
        let dir = tempfile::tempdir().unwrap();
        let mut journal = JournalFile::new(dir.path().into());
        for number in 0..1_000 {
            assert_eq!(journal.append(format!("line {number}\nand {number}\n").as_bytes(), 1_000).unwrap(), 0);
            assert!(sizes(dir.path()) <= 1_000);
        }
        assert!(sizes(dir.path()) > 500);
        assert!(format!("{}{}", text(dir.path(), OLDER), text(dir.path(), CURRENT)).ends_with("line 999\nand 999\n"));
        assert_eq!(journal.append(&[b"x".repeat(600).as_slice(), b"\nfits\n"].concat(), 1_000).unwrap(), 1);
        assert!(text(dir.path(), CURRENT).ends_with("fits\n"));
        journal.append(b"smaller\n", 100).unwrap();
        assert!(sizes(dir.path()) <= 100, "what a larger bound left behind goes");
    }

    #[test]
    fn a_torn_line_is_ended_before_the_next() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(CURRENT), "whole\nto").unwrap();
        JournalFile::new(dir.path().into()).append(b"next\n", 1_000).unwrap();
        assert_eq!(text(dir.path(), CURRENT), "whole\nto\nnext\n");
    }

    #[test]
    fn a_file_that_was_removed_is_made_anew() {
        let dir = tempfile::tempdir().unwrap();
        let mut journal = JournalFile::new(dir.path().into());
        journal.append(b"one\n", 1_000).unwrap();
        fs::remove_file(dir.path().join(CURRENT)).unwrap();
        journal.append(b"two\n", 1_000).unwrap();
        assert_eq!(text(dir.path(), CURRENT), "two\n");
    }

    #[cfg(unix)]
    #[test]
    fn a_link_in_its_place_is_refused_and_files_are_private() {
        use std::os::unix::fs::{MetadataExt, symlink};
        let (dir, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let canary = outside.path().join("canary");
        fs::write(&canary, "as it was").unwrap();
        symlink(&canary, dir.path().join(CURRENT)).unwrap();
        let mut journal = JournalFile::new(dir.path().into());
        journal.append(b"one\n", 1_000).unwrap_err();
        assert_eq!(fs::read_to_string(&canary).unwrap(), "as it was");
        fs::remove_file(dir.path().join(CURRENT)).unwrap();
        symlink(&canary, dir.path().join(OLDER)).unwrap();
        for _ in 0..40 {
            journal.append(b"twenty bytes a line\n", 100).unwrap();
        }
        assert_eq!(fs::read_to_string(&canary).unwrap(), "as it was");
        assert_eq!(dir.path().join(CURRENT).metadata().unwrap().mode() & 0o777, 0o600);
        assert_eq!(dir.path().join(OLDER).symlink_metadata().unwrap().mode() & 0o777, 0o600);
    }
}
