//! A disk played in memory: every call that changes it is a moment for a power cut, and may fail.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::disk::{Disk, DiskFile, Name};
use super::platter::{Change, Content, Naming};
use super::power::Shared;

pub(super) struct Model {
    pub machine: Shared,
    pub dir: usize,
}

struct Opened {
    machine: Shared,
    file: usize,
    dir: usize,
    name: String,
}

fn missing() -> io::Error {
    io::ErrorKind::NotFound.into()
}

impl Model {
    fn change(&self, change: impl FnOnce(&BTreeMap<String, usize>) -> io::Result<Naming>) -> io::Result<()> {
        let mut machine = self.machine.lock().unwrap();
        machine.call()?;
        let change = change(&machine.platter.dirs[self.dir].seen())?;
        machine.platter.dirs[self.dir].pending.push(change);
        machine.look();
        Ok(())
    }

    fn find(&self, name: &str) -> io::Result<usize> {
        let machine = self.machine.lock().unwrap();
        machine.platter.dirs[self.dir].seen().get(name).copied().ok_or_else(missing)
    }

    fn opened(&self, name: &str, file: usize) -> Box<dyn DiskFile> {
        Box::new(Opened { machine: Arc::clone(&self.machine), file, dir: self.dir, name: name.to_owned() })
    }
}

impl Disk for Model {
    fn names(&self) -> io::Result<Vec<Name>> {
        let names = self.machine.lock().unwrap().platter.dirs[self.dir].seen();
        Ok(names.into_keys().map(|name| Name { name, regular: true }).collect())
    }

    fn read(&self, name: &str, _: u64) -> io::Result<Vec<u8>> {
        let file = self.find(name)?;
        Ok(self.machine.lock().unwrap().platter.files[file].seen())
    }

    fn create(&mut self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let file = {
            let mut machine = self.machine.lock().unwrap();
            machine.platter.files.push(Content::default());
            machine.platter.files.len() - 1
        };
        self.change(|_| Ok(Naming::Put { name: name.to_owned(), file }))?;
        Ok(self.opened(name, file))
    }

    fn append(&mut self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        self.machine.lock().unwrap().call()?;
        Ok(self.opened(name, self.find(name)?))
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        self.change(|names| {
            let file = *names.get(from).ok_or_else(missing)?;
            Ok(Naming::Moved { from: from.to_owned(), to: to.to_owned(), file })
        })
    }

    fn link(&mut self, from: &str, to: &str) -> io::Result<()> {
        self.change(|names| Ok(Naming::Put { name: to.to_owned(), file: *names.get(from).ok_or_else(missing)? }))
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        self.change(|names| {
            names.get(name).ok_or_else(missing)?;
            Ok(Naming::Gone { name: name.to_owned() })
        })
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut machine = self.machine.lock().unwrap();
        machine.call()?;
        if !machine.platter.lies.names {
            let names = &mut machine.platter.dirs[self.dir];
            names.durable = names.seen();
            names.pending.clear();
        }
        machine.look();
        Ok(())
    }

    fn path(&self, name: &str) -> PathBuf {
        Path::new("/model").join(name)
    }
}

impl Opened {
    fn with(&self, change: impl FnOnce(&mut Content)) {
        let mut machine = self.machine.lock().unwrap();
        change(&mut machine.platter.files[self.file]);
        machine.look();
    }

    fn call(&self) -> io::Result<()> {
        self.machine.lock().unwrap().call()
    }
}

impl DiskFile for Opened {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let called = self.call();
        // A write that fails has written half.
        let written = if called.is_ok() { bytes } else { &bytes[..bytes.len() / 2] };
        self.with(|file| {
            let at = file.seen().len();
            file.pending.push(Change::Write { at, bytes: written.to_vec() });
        });
        called
    }

    fn sync(&mut self) -> io::Result<()> {
        if let Err(error) = self.call() {
            // What was not synced is given up, and reads as if it had been: so Linux does it.
            self.with(|file| {
                let length = file.seen().len();
                file.durable.resize(length, 0);
                file.pending.clear();
            });
            return Err(error);
        }
        let lies = self.machine.lock().unwrap().platter.lies.files;
        self.with(|file| {
            if !lies {
                file.durable = file.seen();
                file.pending.clear();
            }
        });
        Ok(())
    }

    fn truncate(&mut self, to: u64) -> io::Result<()> {
        self.call()?;
        self.with(|file| file.pending.push(Change::Cut { to: to as usize }));
        Ok(())
    }

    fn check_named(&self) -> io::Result<()> {
        let machine = self.machine.lock().unwrap();
        let named = machine.platter.dirs[self.dir].seen().get(&self.name).copied();
        if named == Some(self.file) { Ok(()) } else { Err(missing()) }
    }
}
