use std::io;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use super::narrator::CommandEnd;
use crate::SessionId;
use crate::actors::Outcome;
use crate::cli::{Exit, human};
use crate::failure::{Kind, mask};

/// How a run ended: the last line of `--json`, and what `--report` writes.
#[derive(Debug, Serialize)]
pub(super) struct FinalReport<'a> {
    /// Always `report`.
    pub event: &'static str,
    /// The session.
    pub session: &'a SessionId,
    /// `worked` at once, a verdict's word, `suspended`, `not_started` or `failed`.
    pub verdict: &'static str,
    /// The verdict in words.
    pub reason: String,
    /// The last failure's kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<&'a Kind>,
    /// The last failure's own words, masked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<&'a str>,
    /// How often the command was started by this run.
    pub tries: u32,
    /// Attempts at recovery, those of earlier runs of the episode included.
    pub attempts: u32,
    /// How long this run took.
    pub elapsed_ms: u64,
    /// The exit code of this run.
    pub exit_code: u8,
    /// How the command itself ended last.
    pub command: CommandEnd,
    /// How to go on, where that is possible.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resume: Option<String>,
    /// Texts that no try delivered.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub injections: Vec<&'a str>,
}

impl<'a> FinalReport<'a> {
    pub fn new(session: &'a SessionId, verdict: &'static str, exit: &Exit) -> Self {
        Self {
            event: "report",
            session,
            verdict,
            reason: verdict.to_owned(),
            kind: None,
            message: None,
            tries: 0,
            attempts: 0,
            elapsed_ms: 0,
            exit_code: exit.code(),
            command: CommandEnd::of(None),
            resume: None,
            injections: vec![],
        }
    }

    /// Adds what an episode says.
    #[must_use]
    pub fn with_outcome(mut self, outcome: &'a Outcome) -> Self {
        let error = outcome.error.as_deref();
        self.verdict = outcome.verdict.name();
        self.reason = mask(&outcome.verdict.to_string()).into_owned();
        self.kind = error.map(|error| &error.kind);
        self.message = error.map(|error| &*error.message);
        self.attempts = outcome.executions;
        self.injections = outcome.injections.iter().map(|text| text.as_str()).collect();
        self
    }

    /// The line at the end: verdict, attempts, time.
    pub fn line(&self) -> String {
        let mut line = human::escaped(&self.reason);
        if let Some(kind) = self.kind.filter(|_| self.exit_code != 0) {
            line += &format!(" ({kind})");
        }
        line += &format!("; {}", count(self.tries, "try", "tries"));
        if self.attempts > 0 {
            line += &format!(", {} at recovery", count(self.attempts, "attempt", "attempts"));
        }
        line += &format!(", {}", human::span(rounded(self.elapsed_ms)));
        if let Some(resume) = &self.resume {
            line += &format!("; {resume}");
        }
        line
    }

    /// Writes it to a file, or to whatever the path names.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let mut text = serde_json::to_vec(self)?;
        text.push(b'\n');
        std::fs::write(path, text)
    }
}

fn count(number: u32, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// A duration of a run is no measurement: tenths of a second are enough.
fn rounded(millis: u64) -> Duration {
    Duration::from_millis(if millis < 1_000 { millis } else { millis / 100 * 100 })
}
