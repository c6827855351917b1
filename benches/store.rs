//! What a durable update costs beside a bare log, a database and a synced file per update; what a restart
//! costs; and that neither a session's history nor the number of sessions makes an attempt dearer.
//!
//! Ratios are taken within one run. `benches/sqlite` runs the same with SQLite beside it.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use backstop::policy::Durability;
use backstop::state::{FileStore, FileStoreOptions, RecoveryStateStore, StateRecord};
use backstop::{RecoveryEngine, SessionId};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

mod common;

use common::{builder, recover, sessions, spread};

/// Something that makes batches of records durable.
pub trait Log: Send {
    /// Durable when it returns.
    fn append(&mut self, batch: &[StateRecord]);
}

/// A log's name, and how one is made in an empty directory.
pub type Contender = (&'static str, fn(&Path) -> Box<dyn Log>);

impl Log for FileStore {
    fn append(&mut self, batch: &[StateRecord]) {
        RecoveryStateStore::append(self, batch).expect("the disk works");
    }
}

/// Lengths, checksums and bytes, one write and one sync a batch: the least that a log can do.
struct Bare(File);

impl Log for Bare {
    fn append(&mut self, batch: &[StateRecord]) {
        let mut bytes = vec![];
        for record in batch {
            let memory = record.memory.as_deref().unwrap_or_default();
            bytes.extend_from_slice(&(memory.len() as u32).to_le_bytes());
            bytes.extend_from_slice(&crc32fast::hash(memory).to_le_bytes());
            bytes.extend_from_slice(record.session.as_str().as_bytes());
            bytes.extend_from_slice(memory);
        }
        self.0.write_all(&bytes).expect("the disk works");
        self.0.sync_data().expect("the disk works");
    }
}

fn backstop_log(dir: &Path) -> Box<dyn Log> {
    Box::new(FileStore::open(dir, FileStoreOptions::default()).expect("the store opens").0)
}

fn bare_log(dir: &Path) -> Box<dyn Log> {
    Box::new(Bare(File::create(dir.join("log")).expect("a file")))
}

/// As long as the memory of a session with an open episode.
const MEMORY: usize = 1_200;

/// One contender's run.
struct Run {
    name: String,
    writers: usize,
    updates: u64,
    took: Duration,
    each: Vec<Duration>,
    /// Bytes of records, and bytes that the process wrote.
    bytes: (u64, u64),
}

impl Run {
    fn rate(&self) -> f64 {
        self.updates as f64 / self.took.as_secs_f64()
    }

    fn at(&self, share: f64) -> Duration {
        self.each[((self.each.len() - 1) as f64 * share) as usize]
    }
}

/// Bytes that this process has handed to write calls.
fn written() -> u64 {
    let text = fs::read_to_string("/proc/self/io").unwrap_or_default();
    text.lines().find_map(|line| line.strip_prefix("wchar: ")?.trim().parse().ok()).unwrap_or(0)
}

/// Records queue while the disk works, and go out as one batch.
fn grouped(runtime: &Runtime, name: &str, log: Box<dyn Log>, ids: &Arc<Vec<SessionId>>, writers: usize, n: u64) -> Run {
    type Update = (StateRecord, oneshot::Sender<()>);
    let (send, receive) = std::sync::mpsc::channel::<Update>();
    let writer = std::thread::spawn(move || {
        // Above the one that the store may know already; in the order in which they come.
        let (mut log, mut revision) = (log, 1);
        while let Ok(first) = receive.recv() {
            let (mut records, done): (Vec<_>, Vec<_>) = std::iter::once(first).chain(receive.try_iter()).unzip();
            for record in &mut records {
                revision += 1;
                record.revision = revision;
            }
            log.append(&records);
            for done in done {
                let _ = done.send(());
            }
        }
    });
    let each = Arc::new(std::sync::Mutex::new(Vec::with_capacity(n as usize)));
    let before = written();
    let (heard, ids) = (Arc::clone(&each), Arc::clone(ids));
    let bytes = n * (MEMORY + ids[0].as_str().len()) as u64;
    let took = runtime.block_on(spread(writers, n, move |at| {
        // Neighbours in time are no neighbours in the list.
        let session = ids[(at as usize * 7_919) % ids.len()].clone();
        let (done, durable) = oneshot::channel();
        let (began, heard) = (Instant::now(), Arc::clone(&heard));
        // Different every time, as a database writes nothing of what stays as it was.
        let memory = vec![(at ^ (at >> 10)) as u8; MEMORY].into();
        let _ = send.send((StateRecord { session, revision: 0, memory: Some(memory) }, done));
        async move {
            let _ = durable.await;
            heard.lock().expect("nobody panics").push(began.elapsed());
        }
    }));
    let bytes = (bytes, written() - before);
    writer.join().expect("the writer does not panic");
    let mut each = std::mem::take(&mut *each.lock().expect("nobody panics"));
    each.sort_unstable();
    Run { name: name.to_owned(), writers, updates: n, took, each, bytes }
}

/// Each update written to a new file, synced, and renamed over the old one, by one writer.
fn file_per_update(dir: &Path, n: u64) -> Run {
    let memory = vec![b'x'; MEMORY];
    let ids = sessions(64);
    let before = written();
    let began = Instant::now();
    let mut each: Vec<Duration> = (0..n)
        .map(|at| {
            let began = Instant::now();
            let mut file = File::create(dir.join("new")).expect("a file");
            file.write_all(&memory).expect("the disk works");
            file.sync_data().expect("the disk works");
            let name = format!("{}.json", ids[at as usize % ids.len()]);
            fs::rename(dir.join("new"), dir.join(name)).expect("the disk works");
            began.elapsed()
        })
        .collect();
    let took = began.elapsed();
    each.sort_unstable();
    let bytes = (n * MEMORY as u64, written() - before);
    Run { name: "a synced file per update".to_owned(), writers: 1, updates: n, took, each, bytes }
}

fn print(runs: &[Run]) {
    let find = |name: &str, writers: usize| runs.iter().find(|run| run.name == name && run.writers == writers);
    let files = runs.iter().find(|run| run.writers == 1).map_or(f64::NAN, Run::rate);
    println!("\n| what | writers | updates/s | p50 | p99 | written ÷ records | × synced files | × bare log |");
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    for run in runs {
        let bare = find(BARE, run.writers).map_or(f64::NAN, Run::rate);
        println!(
            "| {} | {} | {:.0} | {:.2?} | {:.2?} | {:.2} | {:.1} | {:.2} |",
            run.name,
            run.writers,
            run.rate(),
            run.at(0.5),
            run.at(0.99),
            run.bytes.1 as f64 / run.bytes.0 as f64,
            run.rate() / files,
            run.rate() / bare,
        );
    }
}

const BARE: &str = "a bare group-commit log";

/// How often each contender runs.
const ROUNDS: usize = 7;

/// Every comparison, with further contenders in the first one.
pub fn compare(further: &[Contender]) {
    // `cargo test --benches` only asks whether it runs.
    let is_bench = std::env::args().any(|arg| arg == "--bench");
    let scale = |full: u64| if is_bench { full } else { full / 100 };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("threads");
    if let Some(dir) = std::env::var_os(MEASURE) {
        return println!("{}", resident_after_start(&runtime, Path::new(&dir)));
    }

    // Names of parts on the command line run these alone.
    let parts = ["updates", "sessions", "history", "restart"];
    let asked: Vec<String> = std::env::args().filter(|arg| parts.contains(&arg.as_str())).collect();
    let is_asked = |part: &str| asked.is_empty() || asked.iter().any(|asked| asked == part);
    if is_asked("updates") {
        updates(&runtime, further, &scale);
    }
    if is_asked("sessions") {
        by_sessions(&runtime, scale(100_000), scale(100_000) as usize);
    }
    if is_asked("history") {
        by_history(&runtime, scale(40_000));
    }
    if is_asked("restart") {
        restart(&runtime, scale(100_000) as usize);
    }
}

/// Durable updates by each contender.
fn updates(runtime: &Runtime, further: &[Contender], scale: &dyn Fn(u64) -> u64) {
    let contenders: Vec<Contender> =
        [(BARE, bare_log as fn(&Path) -> _), ("backstop's log", backstop_log)].iter().chain(further).copied().collect();
    // Each in turn and the median of its runs: what else the disk does meets them all.
    let mut rounds: Vec<Vec<Run>> = vec![];
    for _ in 0..ROUNDS {
        let dir = tempfile::tempdir().expect("a directory");
        let mut round = vec![file_per_update(dir.path(), scale(2_000))];
        for writers in [64, 1_024] {
            for (name, open) in &contenders {
                let dir = tempfile::tempdir().expect("a directory");
                let n = scale(if writers == 64 { 50_000 } else { 200_000 });
                round.push(grouped(runtime, name, open(dir.path()), &sessions(writers), writers, n));
            }
        }
        rounds.push(round);
    }
    let median_of = |at: usize| {
        let mut runs: Vec<Run> = rounds.iter_mut().map(|round| round.remove(at)).collect();
        runs.sort_by(|a, b| a.rate().total_cmp(&b.rate()));
        runs.swap_remove(ROUNDS / 2)
    };
    let runs: Vec<Run> = vec![0; 1 + 2 * contenders.len()].into_iter().map(median_of).collect();
    print(&runs);
}

/// The same update in a store that knows few or many sessions.
fn by_sessions(runtime: &Runtime, n: u64, most: usize) {
    println!("\n| sessions in the store | updates/s at 64 writers | p50 | p99 |\n| --- | --- | --- | --- |");
    for count in [10, 1_000, most] {
        let dir = tempfile::tempdir().expect("a directory");
        let ids = sessions(count);
        let (mut store, _) = FileStore::open(dir.path(), FileStoreOptions::default()).expect("the store opens");
        let memory: Arc<[u8]> = vec![b'x'; MEMORY].into();
        let all = ids.iter().map(|session| StateRecord {
            session: session.clone(),
            revision: 1,
            memory: Some(Arc::clone(&memory)),
        });
        RecoveryStateStore::append(&mut store, &all.collect::<Vec<_>>()).expect("the disk works");
        let run = grouped(runtime, "", Box::new(store), &ids, 64, n);
        println!("| {count} | {:.0} | {:.2?} | {:.2?} |", run.rate(), run.at(0.5), run.at(0.99));
    }
}

/// The same durable recovery in sessions with more and more past ones.
fn by_history(runtime: &Runtime, n: u64) {
    let dir = tempfile::tempdir().expect("a directory");
    let start = builder(Durability::Ahead).state_dir(dir.path()).seed(1);
    let engine = runtime.block_on(start.spawn()).expect("the engine starts");
    let ids = sessions(64);
    println!("\n| past episodes of each session | µs a durable recovery at 64 callers |\n| --- | --- |");
    for round in 0..4 {
        let (engine, ids) = (engine.clone(), Arc::clone(&ids));
        let took = runtime.block_on(spread(64, n, move |at| {
            let (engine, ids) = (engine.clone(), Arc::clone(&ids));
            async move { recover(&engine, &ids[at as usize % ids.len()]).await }
        }));
        println!("| {} on | {:.1} |", round * n / 64, took.as_secs_f64() * 1e6 / n as f64);
    }
    runtime.block_on(engine.shutdown());
}

/// How long it takes until an engine is ready that finds many sessions.
fn restart(runtime: &Runtime, count: usize) {
    let dir = tempfile::tempdir().expect("a directory");
    let ids = sessions(count);
    let run = |engine: &RecoveryEngine| {
        let (engine, ids) = (engine.clone(), Arc::clone(&ids));
        runtime.block_on(spread(1_024, count as u64, move |at| {
            let (engine, ids) = (engine.clone(), Arc::clone(&ids));
            // Every tenth is in the middle of an episode when the process ends.
            async move {
                let id = &ids[at as usize];
                if at % 10 == 0 {
                    let report = backstop::Report::text("429 Too Many Requests");
                    let told = engine.report(id, report).await;
                    assert!(told.is_ok_and(|directive| directive.is_redo()));
                } else {
                    recover(&engine, id).await;
                }
            }
        }))
    };
    let start = || {
        // Long enough for what is remembered to be needed still.
        let builder = common::remembering(Durability::Behind).state_dir(dir.path()).seed(1);
        runtime.block_on(builder.spawn()).expect("the engine starts")
    };
    let engine = start();
    run(&engine);
    let began = Instant::now();
    runtime.block_on(engine.shutdown());
    let shutdown = began.elapsed();
    let bytes: u64 = dir
        .path()
        .join("backstop")
        .read_dir()
        .expect("a directory")
        .flatten()
        .filter_map(|file| Some(file.metadata().ok()?.len()))
        .sum();
    let mut opened: Vec<Duration> = (0..5)
        .map(|_| {
            let began = Instant::now();
            let store = FileStore::open(dir.path(), FileStoreOptions::default()).expect("the store opens");
            let took = began.elapsed();
            drop(store);
            took
        })
        .collect();
    let mut ready: Vec<Duration> = (0..5)
        .map(|_| {
            let began = Instant::now();
            let engine = start();
            let took = began.elapsed();
            assert!(engine.open_episodes().len() == count.div_ceil(10), "{}", engine.open_episodes().len());
            runtime.block_on(engine.shutdown());
            took
        })
        .collect();
    let began = Instant::now();
    let listed = FileStore::inspect(dir.path()).expect("it can be read").list().len();
    let list = began.elapsed();
    opened.sort_unstable();
    ready.sort_unstable();
    println!(
        "\nrestart with {count} sessions, every tenth with an open episode, {bytes} bytes in the directory (medians of 5):"
    );
    println!("the store is open after {:.2?} · the engine is ready after {:.2?}", opened[2], ready[2]);
    println!("another process lists {listed} of them in {list:.2?} · the first shutdown took {shutdown:.2?}");
    // In a process of its own: memory that was given back here would be used again.
    let program = std::env::current_exe().expect("this program has a path");
    let measured = std::process::Command::new(program).env(MEASURE, dir.path()).output().expect("it runs");
    let bytes: f64 = String::from_utf8_lossy(&measured.stdout).trim().parse().expect("a number");
    println!("the engine, the store's index included, takes {:.0} bytes for each", bytes / count as f64);
}

/// The directory whose sessions are counted.
const MEASURE: &str = "BACKSTOP_MEASURE_STATE";

/// Resident bytes that an engine takes which finds the sessions of this directory.
fn resident_after_start(runtime: &Runtime, dir: &Path) -> u64 {
    let resident = || {
        let pages = fs::read_to_string("/proc/self/statm").unwrap_or_default();
        pages.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * 4_096
    };
    let start = |dir: &Path| {
        let builder = common::remembering(Durability::Behind).state_dir(dir).seed(1);
        runtime.block_on(builder.spawn()).expect("the engine starts")
    };
    let empty = tempfile::tempdir().expect("a directory");
    let first = start(empty.path());
    let before = resident();
    let engine = start(dir);
    let after = resident();
    runtime.block_on(engine.shutdown());
    runtime.block_on(first.shutdown());
    after - before
}

fn main() {
    compare(&[]);
}
