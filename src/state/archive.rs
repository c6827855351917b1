//! All sessions as one JSON document: for moving, for looking, for keeping.

use std::collections::BTreeSet;
use std::io::{self, Write};

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use super::{Inspection, StateError};
use crate::failure::{SessionId, Timestamp};
use crate::policy::session::SessionMemory;

/// The sessions of one or several state directories, as `backstop state export` writes them.
///
/// ```
/// use backstop::policy::session::SessionMemory;
/// use backstop::state::{Archive, Archived, Keeper};
/// use backstop::{SessionId, Timestamp};
///
/// let session = SessionId::new("s1")?;
/// let memory = SessionMemory::default();
/// let sessions = vec![Archived { session, of: Keeper::Host, revision: 1, memory }];
/// let archive = Archive { exported_at: Timestamp::from_millis(1_000), sessions };
/// let mut text = vec![];
/// archive.write(&mut text)?;
/// assert_eq!(Archive::read(&text)?, archive);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Archive {
    /// When it was made.
    pub exported_at: Timestamp,
    /// The sessions.
    pub sessions: Vec<Archived>,
}

/// One session of an archive: a line of its text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Archived {
    /// The session.
    pub session: SessionId,
    /// Who keeps it.
    #[serde(default)]
    pub of: Keeper,
    /// Its record's revision.
    pub revision: u64,
    /// All that is remembered of it.
    pub memory: SessionMemory,
}

/// Who keeps a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Keeper {
    /// A host, or `pipe`: in the state directory itself.
    #[default]
    Host,
    /// `exec`: in a directory of the session's own, inside it.
    Exec,
}

/// Why a document is no archive that can be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// It is something else.
    #[error("it is no export of backstop's state: its `format` is not `{}`", Archive::FORMAT)]
    Foreign,
    /// A newer version wrote it.
    #[error("it has version {found}, this version of backstop reads up to {known}")]
    Newer {
        /// Its version.
        found: u64,
        /// The newest that this version reads.
        known: u64,
    },
    /// It does not read.
    #[error("it does not read")]
    Damaged(#[source] serde_json::Error),
    /// It names a session twice.
    #[error("it holds session {0:?} twice")]
    Twice(SessionId),
}

#[derive(Deserialize)]
struct Head {
    format: Option<String>,
    version: Option<u64>,
}

#[derive(Deserialize)]
struct Document {
    #[serde(default)]
    exported_at: Timestamp,
    sessions: Vec<Archived>,
}

impl Archive {
    /// What every document's `format` says.
    pub const FORMAT: &str = "backstop-state";
    /// The version that is written.
    pub const VERSION: u64 = 1;

    /// Adds every session of a look at a state directory; returns those that this version cannot read.
    pub fn add(&mut self, look: &Inspection, of: Keeper) -> Vec<(SessionId, StateError)> {
        let mut left_out = vec![];
        let mut records: Vec<_> = look.records().collect();
        records.sort_by(|a, b| a.session.cmp(&b.session));
        for record in records {
            match record.read() {
                Ok(Some(memory)) => {
                    let (session, revision) = (record.session, record.revision);
                    self.sessions.push(Archived { session, of, revision, memory });
                }
                Ok(None) => {}
                Err(error) => left_out.push((record.session, error)),
            }
        }
        left_out
    }

    /// Writes it, a session a line.
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let (format, version, at) = (Self::FORMAT, Self::VERSION, self.exported_at.as_millis());
        write!(to, r#"{{"format":"{format}","version":{version},"exported_at":{at},"sessions":["#)?;
        for (place, session) in self.sessions.iter().enumerate() {
            to.write_all(if place == 0 { b"\n" } else { b",\n" })?;
            serde_json::to_writer(&mut *to, session)?;
        }
        to.write_all(b"\n]}\n")
    }

    /// Reads one that any version up to this one wrote.
    ///
    /// # Errors
    ///
    /// [`ArchiveError`]; nothing of it is to be used then.
    pub fn read(text: &[u8]) -> Result<Self, ArchiveError> {
        // What a newer version wrote need not read further than its head.
        let Ok(head) = serde_json::from_slice::<Head>(text) else {
            let json = serde_json::from_slice::<IgnoredAny>(text);
            return Err(json.map_or_else(ArchiveError::Damaged, |_| ArchiveError::Foreign));
        };
        match head {
            Head { format: Some(format), version: Some(found) } if format == Self::FORMAT => {
                let known = Self::VERSION;
                if found > known {
                    return Err(ArchiveError::Newer { found, known });
                }
            }
            _ => return Err(ArchiveError::Foreign),
        }
        let Document { exported_at, sessions } = serde_json::from_slice(text).map_err(ArchiveError::Damaged)?;
        let mut seen = BTreeSet::new();
        if let Some(twice) = sessions.iter().find(|one| !seen.insert((one.of, &one.session))) {
            return Err(ArchiveError::Twice(twice.session.clone()));
        }
        Ok(Self { exported_at, sessions })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn read(text: &str) -> ArchiveError {
        Archive::read(text.as_bytes()).unwrap_err()
    }

    #[test]
    fn what_is_no_export_says_so() {
        for text in ["{}", "[1]", "null", r#"{"format":"other","version":1,"sessions":[]}"#] {
            assert!(matches!(read(text), ArchiveError::Foreign), "{text}");
        }
        for text in ["", "{", "\u{feff}{}", r#"{"format":"backstop-state","version":1,"sessions":[{"session":""}]}"#] {
            assert!(matches!(read(text), ArchiveError::Damaged(_)), "{text}");
        }
    }

    #[test]
    fn a_newer_version_is_refused_whatever_else_it_holds() {
        let newer = read(r#"{"format":"backstop-state","version":7,"sessions":"in another form"}"#);
        assert!(matches!(newer, ArchiveError::Newer { found: 7, known: 1 }), "{newer}");
    }

    #[test]
    fn a_session_may_be_a_hosts_and_execs_and_not_twice_of_one() {
        let line = |of: &str| format!(r#"{{"session":"s","of":"{of}","revision":1,"memory":{{}}}}"#);
        let document =
            |lines: &[String]| format!(r#"{{"format":"backstop-state","version":1,"sessions":[{}]}}"#, lines.join(","));
        let both = Archive::read(document(&[line("host"), line("exec")]).as_bytes()).unwrap();
        assert_eq!(both.sessions.len(), 2);
        assert!(matches!(read(&document(&[line("host"), line("host")])), ArchiveError::Twice(_)));
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(bytes: Vec<u8>) {
            let _ = Archive::read(&bytes);
        }
    }
}
