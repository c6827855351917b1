use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use super::place;

/// What the store asks of one directory: the seam where tests put faults and power cuts.
///
/// Names are plain file names. Nothing follows a symbolic link, and nothing but regular files is
/// ever opened.
pub(super) trait Disk: Send {
    /// Everything in the directory.
    fn names(&self) -> io::Result<Vec<Name>>;
    /// A file's content, if it is not larger than this.
    fn read(&self, name: &str, at_most: u64) -> io::Result<Vec<u8>>;
    /// A new file; there must be none of the name.
    fn create(&mut self, name: &str) -> io::Result<Box<dyn DiskFile>>;
    /// An existing file, to append to.
    fn append(&mut self, name: &str) -> io::Result<Box<dyn DiskFile>>;
    /// Gives a file another name, in place of what had it.
    fn rename(&mut self, from: &str, to: &str) -> io::Result<()>;
    /// Gives a file a second name.
    fn link(&mut self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a name.
    fn remove(&mut self, name: &str) -> io::Result<()>;
    /// Makes creations, renames and removals durable.
    fn sync(&mut self) -> io::Result<()>;
    /// The name as people see it.
    fn path(&self, name: &str) -> PathBuf;
}

/// A file that grows at its end.
pub(super) trait DiskFile: Send {
    /// Adds bytes; after an error some of them may be there.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Makes the content durable. After an error nothing is known of what was written.
    fn sync(&mut self) -> io::Result<()>;
    /// Cuts the file.
    fn truncate(&mut self, to: u64) -> io::Result<()>;
    /// Fails when the file was removed or replaced: writing to it would go nowhere.
    fn check_named(&self) -> io::Result<()>;
}

/// An entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Name {
    pub name: String,
    /// A regular file: not a directory, link, pipe or device.
    pub regular: bool,
}

/// A directory of the machine.
#[derive(Debug)]
pub(super) struct Directory(PathBuf);

impl Directory {
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }
}

impl Disk for Directory {
    fn names(&self) -> io::Result<Vec<Name>> {
        let mut names = vec![];
        for entry in fs::read_dir(&self.0)? {
            let entry = entry?;
            // A name that is no text is none of ours.
            let Ok(name) = entry.file_name().into_string() else { continue };
            names.push(Name { name, regular: entry.file_type()?.is_file() });
        }
        names.sort();
        Ok(names)
    }

    fn read(&self, name: &str, at_most: u64) -> io::Result<Vec<u8>> {
        let file = place::open_to_read(&self.0.join(name))?;
        let mut bytes = Vec::with_capacity(file.metadata()?.len().min(at_most) as usize);
        file.take(at_most.saturating_add(1)).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > at_most { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(bytes) }
    }

    fn create(&mut self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let path = self.0.join(name);
        Ok(Box::new(Open { file: place::create_file(&path)?, path }))
    }

    fn append(&mut self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let path = self.0.join(name);
        Ok(Box::new(Open { file: place::open_to_append(&path)?, path }))
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.0.join(from), self.0.join(to))
    }

    fn link(&mut self, from: &str, to: &str) -> io::Result<()> {
        fs::hard_link(self.0.join(from), self.0.join(to))
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        fs::remove_file(self.0.join(name))
    }

    fn sync(&mut self) -> io::Result<()> {
        place::sync_dir(&self.0)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

struct Open {
    file: File,
    path: PathBuf,
}

impl DiskFile for Open {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn truncate(&mut self, to: u64) -> io::Result<()> {
        self.file.set_len(to)
    }

    fn check_named(&self) -> io::Result<()> {
        check_named(&self.file, &self.path)
    }
}

/// Fails when the path does not name the open file any more.
pub(super) fn check_named(file: &File, path: &Path) -> io::Result<()> {
    if place::is_named(file, path)? {
        Ok(())
    } else {
        Err(io::Error::new(io::ErrorKind::NotFound, "another file is in its place"))
    }
}

/// How many damaged files of one name are kept.
const ASIDE_KEPT: u32 = 3;

/// Moves a file out of the way, whole, to `NAME.damaged-N`; the oldest beyond three goes.
pub(super) fn set_aside(disk: &mut dyn Disk, name: &str) -> io::Result<PathBuf> {
    let aside = free_aside(disk, name)?;
    disk.rename(name, &aside)?;
    disk.sync()?;
    Ok(disk.path(&aside))
}

/// The same, but the file keeps its name too, until something whole has taken its place.
pub(super) fn keep_aside(disk: &mut dyn Disk, name: &str) -> io::Result<PathBuf> {
    let aside = free_aside(disk, name)?;
    if disk.link(name, &aside).is_err() {
        // No second names on this file system: a copy it is.
        let bytes = disk.read(name, u64::MAX)?;
        let mut copy = disk.create(&aside)?;
        copy.write(&bytes)?;
        copy.sync()?;
    }
    disk.sync()?;
    Ok(disk.path(&aside))
}

fn free_aside(disk: &mut dyn Disk, name: &str) -> io::Result<String> {
    let numbered = |number: u32| format!("{name}.damaged-{number}");
    let taken: Vec<_> = disk.names()?.into_iter().map(|entry| entry.name).collect();
    let is_free = |number: &u32| !taken.contains(&numbered(*number));
    if let Some(free) = (1..=ASIDE_KEPT).find(is_free) {
        return Ok(numbered(free));
    }
    for number in 1..ASIDE_KEPT {
        disk.rename(&numbered(number + 1), &numbered(number))?;
    }
    Ok(numbered(ASIDE_KEPT))
}
