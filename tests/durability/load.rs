//! What the children do: recoveries with effects that can be counted, and plain saving.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use backstop::state::{FileStore, FileStoreOptions, RecoveryStateStore, StateNote, StateRecord};
use backstop::{Answer, RecoveryConfig, RecoveryEngine, SessionId};

use super::child::say;

/// An own strategy, which may not run twice, then one that only computes.
const CHAINS: &str = "
known_strategies: [act]
session_error:
  - {strategy: act}
  - {strategy: retry, config: {max_retries: 3, backoff_ms: 1, backoff_factor: 1, jitter: false}}
  - abort
max_total_attempts: 7
max_recoveries: 1000000
max_same_failure: 1000000
journal_bytes: 0
";
pub const BUDGET: u32 = 7;
pub const SESSIONS: usize = 6;

/// Lines that were written are there, whatever becomes of the process: the outside world.
#[derive(Clone)]
pub struct Effects(Arc<File>);

impl Effects {
    pub fn of(dir: &Path) -> Self {
        Self(Arc::new(OpenOptions::new().append(true).create(true).open(dir.join("effects")).unwrap()))
    }

    fn note(&self, what: std::fmt::Arguments<'_>) {
        (&*self.0).write_all(format!("{what}\n").as_bytes()).unwrap();
    }
}

pub fn builder(dir: &Path, effects: &Effects) -> backstop::engine::EngineBuilder {
    let acts = effects.clone();
    let act = move |attempt: backstop::Attempt| {
        let (acts, number, session, seq) = (acts.clone(), attempt.number(), attempt.session().clone(), attempt.seq());
        async move {
            acts.note(format_args!("act {session} {seq}"));
            if number < 3 { Answer::retry(std::time::Duration::ZERO, "again") } else { Answer::success("acted") }
        }
    };
    let config = RecoveryConfig::parse("durability.yaml", CHAINS).unwrap().config;
    RecoveryEngine::builder().config(config).strategy_fn("act", act).state_dir(dir.join("state"))
}

/// Sessions that fail so often, then work, over and over, until the process is killed.
#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
pub async fn recover_for_ever(dir: &Path, seed: u64) {
    let effects = Effects::of(dir);
    let engine = builder(dir, &effects).seed(seed).spawn().await.unwrap();
    say(format_args!("ready {} {}", temporary_files(dir), engine.open_episodes().len()));
    for number in 0..SESSIONS {
        let (engine, effects) = (engine.clone(), effects.clone());
        tokio::spawn(async move {
            loop {
                run_once(&engine, &effects, number).await;
            }
        });
    }
    std::future::pending().await
}

fn temporary_files(dir: &Path) -> usize {
    let entries = ["state", "state/backstop"].map(|sub| std::fs::read_dir(dir.join(sub)).unwrap());
    let names = entries.into_iter().flatten().map(|entry| entry.unwrap().file_name());
    names.filter(|name| name.to_string_lossy().ends_with(".new")).count()
}

/// Batches of records, each its session's next, until the process is killed.
pub fn save_for_ever(dir: &Path) {
    let options = FileStoreOptions { snapshot_above: 4_096, ..FileStoreOptions::default() };
    let (mut store, notes) = FileStore::open(dir.join("state"), options).unwrap();
    let is_harmless = |note: &StateNote| matches!(note, StateNote::TornTail { .. });
    assert!(notes.iter().all(is_harmless), "{notes:?}");
    say(format_args!("ready {} 0", temporary_files(dir)));
    for round in 0.. {
        let names: Vec<_> = (0..=round % 4).map(|place| format!("s{}", (round + place) % SESSIONS)).collect();
        let next = |name: &String| {
            let known = store.load(&SessionId::new(name.as_str()).unwrap()).unwrap();
            record(name, known.map_or(0, |record| record.revision) + 1)
        };
        let batch: Vec<_> = names.iter().map(next).collect();
        store.append(&batch).unwrap();
        for record in &batch {
            say(format_args!("acked {} {}", record.session, record.revision));
        }
        if round % 5 == 0 {
            store.refresh_views(3).unwrap();
        }
    }
}

pub async fn run_once(engine: &RecoveryEngine, effects: &Effects, number: usize) -> bool {
    let id = SessionId::new(format!("s{number}")).unwrap();
    // Some recover soon, some late, some never.
    let works_at = [1, 2, 4, 6, 100, 3][number % SESSIONS];
    let (acts, session) = (effects.clone(), id.clone());
    let run = engine.session(id.clone()).run_with(move |turn: backstop::Turn| {
        if turn.redo > 0 {
            acts.note(format_args!("redo {session} {}", turn.seq));
        }
        let works = turn.redo >= works_at;
        async move { if works { Ok(()) } else { Err(std::io::Error::other("503 Service Unavailable")) } }
    });
    let outcome = match run.await {
        Ok(done) => done.recovery,
        Err(stopped) => stopped.outcome().cloned(),
    };
    let Some(outcome) = outcome else { return true };
    say(format_args!("told {id} {} {} {}", outcome.episode, outcome.executions, outcome.durable));
    outcome.durable
}

/// A small record that tells its revision.
pub fn record(id: &str, revision: u64) -> StateRecord {
    let memory = format!(r#"{{"episodes":{revision}}}"#).into_bytes();
    StateRecord { session: SessionId::new(id).unwrap(), revision, memory: Some(memory.into()) }
}

/// A few batches, each tried again once; new segments and readable copies in between.
pub fn save_a_little(dir: &Path) {
    let options = FileStoreOptions { snapshot_above: 300, ..FileStoreOptions::default() };
    let (mut store, notes) = match FileStore::open(dir.join("state"), options) {
        Ok(opened) => opened,
        Err(error) => return say(format_args!("refused {error}")),
    };
    say(format_args!("opened {}", notes.len()));
    for revision in 1..=5 {
        let batch = [record("a", revision), record(&format!("b{}", revision % 3), revision)];
        if let Err(error) = store.append(&batch) {
            say(format_args!("error {error}"));
            store.append(&batch).unwrap();
        }
        for record in &batch {
            say(format_args!("acked {} {}", record.session, record.revision));
        }
        if let Err(error) = store.refresh_views(10) {
            say(format_args!("error {error}"));
        }
    }
    say("done");
}
