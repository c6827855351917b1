//! Every I/O call fails once, in every way it can; what was acknowledged must be there all the same.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use super::disk::{Directory, Disk, DiskFile, Name};
use super::file::OWN;
use super::lock::Lock;
use super::{FileStore, FileStoreOptions, RecoveryStateStore, StateError, StateNote, StateRecord, place};
use crate::failure::SessionId;

/// Counts calls; one of them fails.
#[derive(Debug, Default, Clone)]
struct Fault(Arc<Mutex<Countdown>>);

#[derive(Debug, Default)]
struct Countdown {
    calls: usize,
    fail_at: usize,
    failed: Option<&'static str>,
}

impl Fault {
    fn at(fail_at: usize) -> Self {
        Self(Arc::new(Mutex::new(Countdown { fail_at, ..Countdown::default() })))
    }

    fn call(&self, name: &'static str) -> io::Result<()> {
        let mut state = self.0.lock().unwrap();
        state.calls += 1;
        if state.calls != state.fail_at {
            return Ok(());
        }
        state.failed = Some(name);
        Err(io::Error::other(format!("injected into {name}")))
    }

    fn failed(&self) -> Option<&'static str> {
        self.0.lock().unwrap().failed
    }
}

struct FaultyDisk(Directory, Fault);

struct FaultyFile {
    file: Box<dyn DiskFile>,
    path: PathBuf,
    length: u64,
    synced: u64,
    fault: Fault,
}

impl FaultyDisk {
    fn file(&self, name: &str, file: Box<dyn DiskFile>) -> Box<dyn DiskFile> {
        let path = self.0.path(name);
        let length = path.metadata().unwrap().len();
        Box::new(FaultyFile { file, path, length, synced: length, fault: self.1.clone() })
    }
}

impl Disk for FaultyDisk {
    fn names(&self) -> io::Result<Vec<Name>> {
        self.1.call("names")?;
        self.0.names()
    }

    fn read(&self, name: &str, at_most: u64) -> io::Result<Vec<u8>> {
        self.1.call("read")?;
        self.0.read(name, at_most)
    }

    fn create(&mut self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        self.1.call("create")?;
        let file = self.0.create(name)?;
        Ok(self.file(name, file))
    }

    fn append(&mut self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        self.1.call("append")?;
        let file = self.0.append(name)?;
        Ok(self.file(name, file))
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        self.1.call("rename")?;
        self.0.rename(from, to)
    }

    fn link(&mut self, from: &str, to: &str) -> io::Result<()> {
        self.1.call("link")?;
        self.0.link(from, to)
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        self.1.call("remove")?;
        self.0.remove(name)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.1.call("sync of the directory")?;
        self.0.sync()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path(name)
    }
}

impl DiskFile for FaultyFile {
    /// A write that fails has written half.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Err(error) = self.fault.call("write") {
            self.file.write(&bytes[..bytes.len() / 2])?;
            return Err(error);
        }
        self.length += bytes.len() as u64;
        self.file.write(bytes)
    }

    /// A sync that fails leaves what was written since the last one as zeros, and the next sync works:
    /// so Linux does it.
    fn sync(&mut self) -> io::Result<()> {
        if let Err(error) = self.fault.call("sync") {
            let mut bytes = std::fs::read(&self.path)?;
            bytes[self.synced as usize..].fill(0);
            std::fs::write(&self.path, bytes)?;
            return Err(error);
        }
        self.synced = self.length;
        self.file.sync()
    }

    fn truncate(&mut self, to: u64) -> io::Result<()> {
        self.fault.call("truncate")?;
        self.length = to;
        self.file.truncate(to)
    }

    fn check_named(&self) -> io::Result<()> {
        self.fault.call("check of the name")?;
        self.file.check_named()
    }
}

fn open(dir: &Path, fault: &Fault) -> Result<(FileStore, Vec<StateNote>), StateError> {
    let own = place::prepare(dir, OWN).unwrap();
    let lock = Lock::take(&own).unwrap();
    let disk = |dir: &Path| Box::new(FaultyDisk(Directory::new(dir), fault.clone()));
    let options = FileStoreOptions { snapshot_above: 256, ..FileStoreOptions::default() };
    FileStore::on(disk(&own), disk(dir), lock, dir.to_owned(), options)
}

fn record(session: &str, revision: u64) -> StateRecord {
    let memory = format!(r#"{{"episodes":{revision}}}"#).into_bytes();
    StateRecord { session: SessionId::new(session).unwrap(), revision, memory: Some(memory.into()) }
}

/// Twelve batches of two sessions each, with work in the background between; a batch that fails is
/// tried again. Tells what was acknowledged and how many errors there were.
fn run(store: &mut FileStore, acked: &mut BTreeMap<String, u64>) -> usize {
    let mut errors = 0;
    for revision in 1..=12 {
        let batch = [record("a", revision), record(&format!("b{}", revision % 3), revision)];
        while let Err(error) = store.append(&batch) {
            let StateError::Save { path, .. } = &error else { panic!("{error}") };
            assert!(path.starts_with(path.parent().unwrap()) && error.to_string().contains("log-"), "{error}");
            errors += 1;
            assert!(errors < 3, "one fault, and more than two errors");
        }
        for record in &batch {
            acked.insert(record.session.as_str().to_owned(), record.revision);
        }
        errors += usize::from(store.refresh_views(10).is_err());
    }
    errors
}

fn stored(dir: &Path) -> BTreeMap<String, u64> {
    let (mut store, notes) = open(dir, &Fault::default()).unwrap();
    let damaged = |note: &StateNote| !matches!(note, StateNote::TornTail { .. });
    assert!(!notes.iter().any(damaged), "{notes:?}");
    store.list().unwrap().into_iter().map(|line| (line.session.as_str().to_owned(), line.revision)).collect()
}

#[test]
fn an_error_at_any_call_loses_nothing_that_was_acknowledged() {
    let mut kinds = std::collections::BTreeSet::new();
    for fail_at in 1.. {
        let dir = tempfile::tempdir().unwrap();
        let fault = Fault::at(fail_at);
        let mut acked = BTreeMap::new();
        match open(dir.path(), &fault) {
            Ok((mut store, _)) => {
                run(&mut store, &mut acked);
            }
            Err(_) => assert!(fault.failed().is_some()),
        }
        assert_eq!(stored(dir.path()), acked, "failed at call {fail_at}: {:?}", fault.failed());
        match fault.failed() {
            Some(kind) => kinds.insert(kind),
            None => break,
        };
    }
    for kind in ["write", "sync", "rename", "create", "sync of the directory", "check of the name", "append"] {
        assert!(kinds.contains(kind), "no {kind} failed: {kinds:?}");
    }
}

#[test]
fn a_crash_right_after_any_failed_call_loses_nothing_that_was_acknowledged() {
    for fail_at in 1.. {
        let dir = tempfile::tempdir().unwrap();
        let fault = Fault::at(fail_at);
        let mut acked = BTreeMap::new();
        if let Ok((mut store, _)) = open(dir.path(), &fault) {
            for revision in 1..=12 {
                let batch = [record("a", revision), record("b", revision)];
                if store.append(&batch).is_err() {
                    break;
                }
                acked.extend(batch.map(|record| (record.session.as_str().to_owned(), record.revision)));
                if store.refresh_views(10).is_err() {
                    break;
                }
            }
        }
        for (session, revision) in stored(dir.path()) {
            let acked = acked.get(&session).copied().unwrap_or(0);
            assert!(revision == acked || revision == acked + 1, "{session}: {revision} after {acked} at {fail_at}");
        }
        if fault.failed().is_none() {
            break;
        }
    }
}
