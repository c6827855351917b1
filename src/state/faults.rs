//! Every I/O call fails once, in every way it can; what was acknowledged must be there all the same.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
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

/// What the system says of a disk that fails, is full, forbidden or read-only, of too many open files, and
/// of a call that a signal broke.
const SAYS: [io::ErrorKind; 6] = [
    io::ErrorKind::Other,
    io::ErrorKind::StorageFull,
    io::ErrorKind::PermissionDenied,
    io::ErrorKind::ReadOnlyFilesystem,
    io::ErrorKind::QuotaExceeded,
    io::ErrorKind::Interrupted,
];

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
        Err(io::Error::new(SAYS[state.fail_at % SAYS.len()], format!("injected into {name}")))
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

/// Often written anew, so that this is hit by faults too; and never, so that the same file goes on.
const SNAPSHOT_ABOVE: [u64; 2] = [200, 1 << 20];

fn open(dir: &Path, fault: &Fault, snapshot_above: u64) -> Result<(FileStore, Vec<StateNote>), StateError> {
    let own = place::prepare(dir, OWN).unwrap();
    let lock = Lock::take(&own).unwrap();
    let disk = |dir: &Path| Box::new(FaultyDisk(Directory::new(dir), fault.clone()));
    let options = FileStoreOptions { snapshot_above, ..FileStoreOptions::default() };
    FileStore::on(disk(&own), disk(dir), lock, dir.to_owned(), options)
}

fn record(session: &str, revision: u64) -> StateRecord {
    let memory = format!(r#"{{"episodes":{revision}}}"#).into_bytes();
    StateRecord { session: SessionId::new(session).unwrap(), revision, memory: Some(memory.into()) }
}

/// Five batches of two sessions each, with work in the background between; a batch that fails is
/// tried again. Tells what was acknowledged and how many errors there were.
fn run(store: &mut FileStore, acked: &mut BTreeMap<String, u64>) -> usize {
    let mut errors = 0;
    for revision in 1..=5 {
        let batch = [record("a", revision), record(&format!("b{}", revision % 3), revision)];
        while let Err(error) = store.append(&batch) {
            let StateError::Save { path, .. } = &error else { panic!("{error}") };
            assert!(path.parent().unwrap().ends_with(OWN) && error.to_string().contains("log-"), "{error}");
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
    let (mut store, notes) = open(dir, &Fault::default(), 1 << 20).unwrap();
    let damaged = |note: &StateNote| !matches!(note, StateNote::TornTail { .. });
    assert!(!notes.iter().any(damaged), "{notes:?}");
    store.list().unwrap().into_iter().map(|line| (line.session.as_str().to_owned(), line.revision)).collect()
}

/// Runs it with the first call failing, then with the second, until none is left to fail; gives the
/// names of the calls that failed.
fn with_each_call_failing(mut check: impl FnMut(&Fault, &Path, u64)) -> BTreeSet<&'static str> {
    let mut kinds = BTreeSet::new();
    for snapshot_above in SNAPSHOT_ABOVE {
        for fail_at in 1.. {
            let dir = tempfile::tempdir().unwrap();
            let fault = Fault::at(fail_at);
            check(&fault, dir.path(), snapshot_above);
            match fault.failed() {
                Some(kind) => kinds.insert(kind),
                None => break,
            };
        }
    }
    kinds
}

#[test]
fn an_error_at_any_call_loses_nothing_that_was_acknowledged() {
    let kinds = with_each_call_failing(|fault, dir, snapshot_above| {
        let mut acked = BTreeMap::new();
        match open(dir, fault, snapshot_above) {
            Ok((mut store, _)) => {
                let errors = run(&mut store, &mut acked);
                assert!(errors <= 2, "one fault made {errors} errors");
            }
            Err(error) => assert!(fault.failed().is_some(), "{error}"),
        }
        assert_eq!(stored(dir), acked, "{fault:?}");
    });
    for kind in ["write", "sync", "rename", "create", "sync of the directory", "check of the name", "append"] {
        assert!(kinds.contains(kind), "no {kind} failed: {kinds:?}");
    }
}

#[test]
fn a_crash_right_after_any_failed_call_loses_nothing_that_was_acknowledged() {
    with_each_call_failing(|fault, dir, snapshot_above| {
        let mut acked = 0;
        if let Ok((mut store, _)) = open(dir, fault, snapshot_above) {
            for revision in 1..=5 {
                if store.append(&[record("a", revision), record("b", revision)]).is_err() {
                    break;
                }
                acked = revision;
                if store.refresh_views(10).is_err() {
                    break;
                }
            }
        }
        let stored = stored(dir);
        for session in ["a", "b"] {
            let revision = stored.get(session).copied().unwrap_or(0);
            assert!(revision == acked || revision == acked + 1, "{session}: {revision} after {acked}, {fault:?}");
        }
    });
}

#[test]
fn a_copy_whose_name_may_not_be_durable_stays_out_of_date() {
    let mut seen = 0;
    for fail_at in 1.. {
        let (dir, fault) = (tempfile::tempdir().unwrap(), Fault::at(fail_at));
        std::fs::write(dir.path().join("recovery-a.json"), "{}").unwrap();
        let Ok((mut store, _)) = open(dir.path(), &fault, 1 << 20) else { continue };
        if store.append(&[record("a", 1)]).is_err() {
            continue;
        }
        let refreshed = store.refresh_views(10);
        match fault.failed() {
            None => break,
            Some("sync of the directory") if refreshed.is_err() => {
                seen += 1;
                assert!(store.refresh_views(0).unwrap() > 0, "it counts as shown");
            }
            Some(_) => {}
        }
    }
    assert_eq!(seen, 1);
}
