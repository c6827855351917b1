//! What a state directory promises: nothing acknowledged is lost, nothing of others is touched, and
//! whatever lies there, the rest goes on.
#![allow(clippy::unwrap_used)]

mod conformance;
mod crash;
mod damage;
mod hostile;
mod import;
mod promises;
mod recovered;
mod refusal;
mod safety;
mod views;

use std::path::Path;
use std::sync::Arc;

use backstop::failure::{
    Category, Details, Domain, ErrorSeverity, Kind, RecoveryAction, RecoveryError, SessionId, Timestamp,
};
use backstop::policy::session::{KeptVerdict, SessionMemory};
use backstop::policy::{RecoveryAttempt, Verdict};
use backstop::state::{FileStore, FileStoreOptions, RecoveryStateStore, StateNote, StateRecord};

fn session(id: &str) -> SessionId {
    SessionId::new(id).unwrap()
}

/// A small record whose content tells its revision.
fn record(id: &str, revision: u64) -> StateRecord {
    let memory = format!(r#"{{"episodes":{revision}}}"#).into_bytes();
    StateRecord { session: session(id), revision, memory: Some(memory.into()) }
}

fn open(dir: impl AsRef<Path>) -> (FileStore, Vec<StateNote>) {
    FileStore::open(dir, FileStoreOptions::default()).unwrap()
}

/// Every session and its revision.
fn revisions(store: &mut impl RecoveryStateStore) -> Vec<(String, u64)> {
    store.list().unwrap().into_iter().map(|line| (line.session.as_str().to_owned(), line.revision)).collect()
}

fn error() -> RecoveryError {
    RecoveryError {
        category: Category::SessionError,
        kind: Kind::Timeout,
        message: "timed out".into(),
        domain: Domain::Environment,
        severity: ErrorSeverity::Medium,
        retryable: true,
        recoverable: true,
        suggested_action: RecoveryAction::Retry,
        diagnosis: "it took too long".into(),
        details: Details::default(),
        pattern: "timeout".into(),
        fingerprint: 7,
        lane: None,
        model: None,
        tool: None,
        timestamp: Timestamp::from_millis(900),
        raw: None,
    }
}

/// A session whose last episode ended.
fn ended(verdict: Verdict, attempts: Vec<RecoveryAttempt>) -> SessionMemory {
    SessionMemory::imported(KeptVerdict {
        episode: 1,
        verdict,
        error: Arc::new(error()),
        at: Timestamp::from_millis(5_000),
        executions: attempts.len() as u32,
        attempts,
        injections: vec![],
    })
}

/// The newest segment of the log.
fn log_file(dir: &Path) -> std::path::PathBuf {
    let mut logs: Vec<_> = names(&dir.join("backstop"))
        .into_iter()
        .filter(|name| name.starts_with("log-") && !name.contains("damaged"))
        .collect();
    logs.sort();
    dir.join("backstop").join(logs.last().unwrap())
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        dir.read_dir().unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
