//! State files of the original become kept history, once: when there is no log, or a damaged one.
//!
//! The original keeps a file for a session that has not recovered, and writes neither a verdict nor
//! the failure itself. So each file becomes the kept verdict of one past episode: its attempts as they
//! are, and as verdict what the last of them says: `abort` is Aborted, `next_strategy` Exhausted, `retry`
//! Cancelled (it was stopped between two attempts). A last `success` means that the session recovered
//! and a late write of the original brought its file back: it is skipped. Nothing imported counts
//! against a limit, for nobody knows which failures they were. Views of our own, whose log was lost,
//! are taken over in the same way.

use std::collections::HashSet;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use super::disk::{Disk, Name, set_aside};
use super::note::Notes;
use super::view::{clip, cut};
use super::views::view_name;
use super::{RecoveryState, StateNote, StateRecord};
use crate::failure::{
    Category, Details, Domain, ErrorSeverity, Kind, RecoveryAction, RecoveryError, SessionId, Timestamp,
};
use crate::policy::machine::Episode;
use crate::policy::session::{KeptVerdict, SessionMemory};
use crate::policy::{Cause, RecoveryAttempt, Verdict};

/// A file larger than this is none that either system wrote.
const LARGEST: u64 = 16 * 1024 * 1024;
/// Longer names of kinds and strategies are cut: they become labels.
const NAME_BYTES: usize = 100;

/// What a file of the name is, if it is one of a session's.
struct StateFile {
    name: String,
    record: StateRecord,
}

/// Sessions read from state files, and how to finish once they are in the log.
pub(super) struct Import {
    files: Vec<StateFile>,
}

impl Import {
    /// Reads every `recovery-*.json`; what does not read is set aside, what is something else stays.
    pub fn read(disk: &mut dyn Disk, notes: &mut Notes) -> std::io::Result<Self> {
        let mut files: Vec<StateFile> = vec![];
        let mut sessions = HashSet::new();
        for entry in disk.names()? {
            let Some(id) = entry.name.strip_prefix("recovery-").and_then(|name| name.strip_suffix(".json")) else {
                continue;
            };
            match read_file(disk, &entry, id) {
                // The same session under its own name and under its view's: the first one counts.
                Ok((session, _)) if !sessions.insert(session.clone()) => {
                    let why = "another file holds the same session";
                    notes.add(StateNote::Skipped { path: disk.path(&entry.name), why });
                }
                Ok((session, memory)) => {
                    files.push(StateFile { record: StateRecord::new(session, 1, &memory), name: entry.name });
                }
                Err(Refused::Damaged(why)) => match set_aside(disk, &entry.name) {
                    Ok(aside) => notes.add(StateNote::SetAside { path: disk.path(&entry.name), aside, why }),
                    Err(_) => notes.add(StateNote::Skipped { path: disk.path(&entry.name), why }),
                },
                Err(Refused::Foreign(why)) => {
                    notes.add(StateNote::Skipped { path: disk.path(&entry.name), why });
                }
            }
        }
        Ok(Self { files })
    }

    /// Leaves out sessions that are known otherwise.
    pub fn without(mut self, is_known: impl Fn(&SessionId) -> bool) -> Self {
        self.files.retain(|file| !is_known(&file.record.session));
        self
    }

    /// What was read.
    pub fn records(&self) -> impl Iterator<Item = &StateRecord> {
        self.files.iter().map(|file| &file.record)
    }

    /// Once the records are durable: each file takes the name that its session's view has.
    pub fn finish(self, disk: &mut dyn Disk, notes: &mut Notes) {
        for file in &self.files {
            let view = view_name(&file.record.session);
            if file.name != view {
                // It stays under its old name if it cannot be moved: untidy, and harmless.
                let _ = disk.rename(&file.name, &view);
            }
        }
        if !self.files.is_empty() {
            notes.add(StateNote::Imported { sessions: self.files.len() });
        }
    }
}

enum Refused {
    /// It does not read.
    Damaged(&'static str),
    /// It reads, and is no state that can be taken over.
    Foreign(&'static str),
}

/// A state file, as far as it is believed.
#[derive(Deserialize)]
struct Theirs {
    version: Option<u64>,
    #[serde(rename = "sessionID")]
    session: Option<String>,
    attempts: Vec<Value>,
}

fn read_file(disk: &dyn Disk, entry: &Name, id: &str) -> Result<(SessionId, SessionMemory), Refused> {
    if !entry.regular {
        return Err(Refused::Foreign("it is no regular file"));
    }
    let bytes = disk.read(&entry.name, LARGEST).map_err(|error| match error.kind() {
        std::io::ErrorKind::FileTooLarge => Refused::Damaged("it is larger than any state file"),
        _ => Refused::Foreign("it cannot be read"),
    })?;
    let value: Value = serde_json::from_slice(&bytes).map_err(|_| Refused::Damaged("it is no JSON"))?;
    let theirs = Theirs::deserialize(value).map_err(|_| Refused::Foreign("it is no state file"))?;
    if theirs.version.is_some_and(|version| version > u64::from(RecoveryState::VERSION)) {
        return Err(Refused::Foreign("a newer version wrote it"));
    }
    let session = SessionId::new(theirs.session.unwrap_or_else(|| id.to_owned()))
        .map_err(|_| Refused::Foreign("it names no session"))?;
    if session.as_str() != id && view_name(&session) != entry.name {
        return Err(Refused::Foreign("it belongs to a session of another name"));
    }
    let attempts = attempts(theirs.attempts);
    let Some(last) = attempts.last() else { return Err(Refused::Foreign("it holds no attempts")) };
    let Some(verdict) = verdict(last) else { return Err(Refused::Foreign("the session had recovered")) };
    Ok((session, SessionMemory::imported(kept(verdict, attempts))))
}

/// The attempts that read, numbered in their order; of many, the last.
fn attempts(values: Vec<Value>) -> Vec<RecoveryAttempt> {
    let mut read: Vec<RecoveryAttempt> =
        values.into_iter().filter_map(|value| RecoveryAttempt::deserialize(value).ok()).collect();
    for (seq, attempt) in (1..).zip(&mut read) {
        (attempt.episode, attempt.seq) = (1, seq);
        attempt.error_type = Kind::parse(short(attempt.error_type.as_str()));
        attempt.strategy = short(&attempt.strategy).into();
        attempt.result = short(&attempt.result).into();
        attempt.message = attempt.message.as_deref().map(clip);
    }
    read.split_off(read.len().saturating_sub(Episode::ATTEMPTS_KEPT))
}

fn short(text: &str) -> &str {
    cut(text, NAME_BYTES)
}

fn verdict(last: &RecoveryAttempt) -> Option<Verdict> {
    let reason: Arc<str> = last.message.clone().unwrap_or_else(|| "no reason was given".into());
    match &*last.result {
        "success" => None,
        "abort" => Some(Verdict::Aborted { reason }),
        "escalate" => Some(Verdict::Escalated { reason }),
        "next_strategy" => Some(Verdict::Exhausted { cause: Cause::Chain }),
        _ => Some(Verdict::Cancelled),
    }
}

fn kept(verdict: Verdict, attempts: Vec<RecoveryAttempt>) -> KeptVerdict {
    let last = attempts.last();
    let at = last.map_or(Timestamp::default(), |attempt| attempt.timestamp);
    let error = RecoveryError {
        category: last.map_or(Category::SessionError, |attempt| attempt.category),
        kind: last.map_or(Kind::Other, |attempt| attempt.error_type.clone()),
        message: "not known: the state file held no message".into(),
        domain: Domain::Unknown,
        severity: ErrorSeverity::Medium,
        retryable: true,
        recoverable: true,
        suggested_action: RecoveryAction::None,
        diagnosis: "imported from a state file".into(),
        details: Details::default(),
        pattern: "imported".into(),
        fingerprint: 0,
        lane: None,
        model: None,
        tool: None,
        timestamp: at,
        raw: None,
    };
    KeptVerdict {
        episode: 1,
        verdict,
        error: Arc::new(error),
        at,
        executions: u32::try_from(attempts.len()).unwrap_or(u32::MAX),
        attempts,
        injections: vec![],
    }
}
