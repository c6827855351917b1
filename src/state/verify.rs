//! Everything in a state directory read and compared, nothing changed.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::disk::{Directory, Disk, Name};
use super::file::OWN;
use super::inspect::Segment;
use super::journal::unreadable_lines;
use super::views::{NEW_VIEW, view_name};
use super::{FileStore, Inspection, RecoveryState, StateError, StateRecord, place};
use crate::failure::SessionId;

/// What one look at a state directory found.
///
/// It can be had beside the process that has the directory: what that process is just changing may show as
/// a note, never as a problem.
#[derive(Debug, Default, Serialize)]
pub struct Verification {
    /// The directory.
    pub dir: PathBuf,
    /// Sessions in the log.
    pub sessions: usize,
    /// Those of them whose episode is open.
    pub open_episodes: usize,
    /// The log's length.
    pub log_bytes: u64,
    /// Readable copies that fit their session.
    pub copies: usize,
    /// How many findings are problems.
    pub problems: usize,
    /// What was found: the problems first, at most [`FINDINGS_KEPT`](Self::FINDINGS_KEPT).
    pub findings: Vec<Finding>,
    /// Further findings.
    pub more: usize,
    #[serde(skip)]
    pub(super) needs: Needs,
}

/// What a repair has to do.
#[derive(Debug, Default)]
pub(super) struct Needs {
    pub log: bool,
    /// Records that do not read.
    pub records: Vec<StateRecord>,
    /// Names of files in the state directory that are to be set aside.
    pub aside: Vec<String>,
    /// Something was left half done, which every opening cleans up.
    pub tidying: bool,
    /// Sessions whose copy is to be written or removed.
    pub copies: Vec<SessionId>,
    /// Ours, and open to others.
    pub modes: Vec<PathBuf>,
}

/// Something that a person should know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What it is.
    pub kind: FindingKind,
    /// Where it is.
    pub path: PathBuf,
    /// What exactly, in words.
    pub detail: String,
}

/// What a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FindingKind {
    /// The log, or a part of it, does not read: newer states of sessions may have been there.
    DamagedLog,
    /// Something that is no regular file has the name of one of ours.
    NotAFile,
    /// The log has a session's record whole, and this version cannot read what is in it.
    UnreadableRecord,
    /// A readable copy does not read.
    DamagedCopy,
    /// Others may read or write what is ours.
    OpenToOthers,
    /// A write that is under way, or that a crash cut short: nobody was told that it was durable.
    UnfinishedWrite,
    /// A readable copy shows something else than the log, or is missing.
    OutdatedCopy,
    /// A state file whose session the log does not know.
    UnknownCopy,
    /// Lines of the journal that do not read.
    TornJournal,
    /// What a crash left behind.
    Leftover,
    /// A damaged file that was set aside earlier, for a person to look at.
    SetAside,
    /// A file that a newer version, or something else, wrote: it is left alone.
    Foreign,
}

impl FindingKind {
    /// Whether something is wrong that does not mend itself.
    pub const fn is_problem(self) -> bool {
        match self {
            Self::DamagedLog | Self::NotAFile | Self::UnreadableRecord | Self::DamagedCopy | Self::OpenToOthers => true,
            Self::UnfinishedWrite
            | Self::OutdatedCopy
            | Self::UnknownCopy
            | Self::TornJournal
            | Self::Leftover
            | Self::SetAside
            | Self::Foreign => false,
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.detail)
    }
}

impl Verification {
    /// Findings that are kept one by one; further ones are only counted.
    pub const FINDINGS_KEPT: usize = 100;

    /// Whether nothing is wrong.
    pub fn is_whole(&self) -> bool {
        self.problems == 0
    }

    fn found(&mut self, kind: FindingKind, path: PathBuf, detail: impl Into<String>) {
        self.problems += usize::from(kind.is_problem());
        if self.findings.len() == Self::FINDINGS_KEPT {
            self.more += 1;
            // A problem never goes unseen for a note.
            let note = self.findings.iter().rposition(|kept| !kept.kind.is_problem());
            let Some(note) = note.filter(|_| kind.is_problem()) else { return };
            self.findings.remove(note);
        }
        self.findings.push(Finding { kind, path, detail: detail.into() });
    }
}

/// A state file larger than this is none.
const LARGEST_COPY: u64 = 16 * 1024 * 1024;

impl FileStore {
    /// Reads everything in a state directory and says what is wrong with it, beside the process that has
    /// it or without one; nothing is changed. `progress` is told how many state files were read, and of
    /// how many.
    ///
    /// ```
    /// use backstop::state::FileStore;
    ///
    /// let dir = tempfile::tempdir()?;
    /// let found = FileStore::verify(dir.path(), &mut |_, _| {})?;
    /// assert!(found.is_whole() && found.sessions == 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`FileStore::inspect`].
    pub fn verify(dir: impl AsRef<Path>, progress: &mut dyn FnMut(usize, usize)) -> Result<Verification, StateError> {
        let state: PathBuf = dir.as_ref().components().collect();
        let mut found = Verification { dir: state.clone(), ..Verification::default() };
        let unreadable = |source| StateError::Open { path: state.clone(), source };
        match state.symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(found),
            Err(error) => return Err(unreadable(error)),
            Ok(_) => place::check(&state)?,
        }
        let look = Inspection::of(&state)?;
        let own = state.join(OWN);
        if own.symlink_metadata().is_ok() {
            found.look_at_own(&own, &look).map_err(|source| StateError::Open { path: own.clone(), source })?;
        }
        let sessions = found.look_at_records(&look);
        let disk = Directory::new(&state);
        found.look_at_copies(&disk, &look, sessions, progress).map_err(unreadable)?;
        found.findings.sort_by_key(|finding| !finding.kind.is_problem());
        Ok(found)
    }
}

impl Verification {
    fn look_at_own(&mut self, own: &Path, look: &Inspection) -> io::Result<()> {
        self.look_at_mode(own)?;
        for Segment { name, regular, bytes } in &look.segments {
            self.log_bytes = *bytes;
            if !regular {
                self.needs.log = true;
                self.found(FindingKind::NotAFile, own.join(name), "it is no regular file, and has the log's name");
            }
        }
        if let Some(newest) = look.segments.iter().rfind(|segment| segment.regular) {
            self.look_at_log(own.join(&newest.name), look);
        }
        for Name { name, regular } in Directory::new(own).names()? {
            let path = own.join(&name);
            match name.as_str() {
                "lock" if !regular => {
                    self.found(FindingKind::NotAFile, path, "it is no regular file, and has the lock's name");
                }
                "log.new" => {
                    self.needs.tidying = true;
                    self.found(FindingKind::Leftover, path, "a log that was not finished");
                }
                "journal.jsonl" | "journal.1.jsonl" if regular => {
                    let torn = unreadable_lines(&path)?;
                    if torn > 0 {
                        let detail = format!("{torn} lines of the journal do not read");
                        self.found(FindingKind::TornJournal, path.clone(), detail);
                    }
                    self.look_at_mode(&path)?;
                }
                name if name.contains(".damaged-") => self.set_aside(path),
                name if regular && (name == "lock" || name.starts_with("log-")) => self.look_at_mode(&path)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn look_at_log(&mut self, path: PathBuf, look: &Inspection) {
        let replay = &look.replay;
        let unreadable = look.unreadable_bytes();
        if replay.is_damaged() {
            self.needs.log = true;
            let what = if replay.headless { "its head does not read, " } else { "" };
            let detail =
                format!("it is damaged: {what}{} records were read, {unreadable} bytes could not be", replay.read);
            self.found(FindingKind::DamagedLog, path, detail);
        } else if replay.torn > 0 {
            self.needs.log = true;
            let detail = format!("its last {} bytes are a write that was not finished", replay.torn);
            self.found(FindingKind::UnfinishedWrite, path, detail);
        }
    }

    fn set_aside(&mut self, path: PathBuf) {
        self.found(FindingKind::SetAside, path, "damaged, and set aside earlier; remove it when it was looked at");
    }

    /// Every record read; the copies that there should be, by name.
    fn look_at_records(&mut self, look: &Inspection) -> BTreeMap<String, Expected> {
        let mut expected = BTreeMap::new();
        let log = self.dir.join(OWN);
        for record in look.records() {
            self.sessions += 1;
            let session = record.session.clone();
            let state = match record.read() {
                Ok(memory) => {
                    self.open_episodes +=
                        usize::from(memory.as_ref().is_some_and(|memory| memory.open_episode().is_some()));
                    memory.and_then(|memory| RecoveryState::of(&session, &memory))
                }
                Err(error) => {
                    let detail = error.to_string();
                    self.needs.records.push(record);
                    self.found(FindingKind::UnreadableRecord, log.clone(), detail);
                    None
                }
            };
            let is_stale = look.replay.stale.contains(&session);
            expected.insert(view_name(&session), Expected { session, state, is_stale });
        }
        expected
    }

    fn look_at_copies(
        &mut self,
        disk: &Directory,
        look: &Inspection,
        mut expected: BTreeMap<String, Expected>,
        progress: &mut dyn FnMut(usize, usize),
    ) -> io::Result<()> {
        let names = disk.names()?;
        let names: Vec<&Name> = names.iter().filter(|entry| entry.name.starts_with("recovery-")).collect();
        let has_copies = names.iter().any(|entry| expected.contains_key(&entry.name));
        for (at, entry) in names.iter().enumerate() {
            progress(at, names.len());
            let path = disk.path(&entry.name);
            if entry.name == NEW_VIEW {
                self.needs.tidying = true;
                self.found(FindingKind::Leftover, path, "a copy that was not finished");
            } else if entry.name.contains(".damaged-") {
                self.set_aside(path);
            } else if entry.name.ends_with(".json") {
                let known = expected.remove(&entry.name);
                self.look_at_copy(disk, entry, known, look.segments.is_empty())?;
            }
        }
        progress(names.len(), names.len());
        let missing = expected.into_iter().filter(|(_, of)| of.state.is_some() && !of.is_stale && has_copies);
        for (name, of) in missing {
            self.needs.copies.push(of.session);
            self.found(FindingKind::OutdatedCopy, disk.path(&name), "there is no such file, and there should be");
        }
        Ok(())
    }

    fn look_at_copy(
        &mut self,
        disk: &Directory,
        entry: &Name,
        known: Option<Expected>,
        no_log: bool,
    ) -> io::Result<()> {
        let path = disk.path(&entry.name);
        if !entry.regular {
            if let Some(Expected { session, .. }) = known {
                self.needs.aside.push(entry.name.clone());
                self.needs.copies.push(session);
                self.found(FindingKind::NotAFile, path, "it is no regular file, and has the name of a session's copy");
            } else {
                self.found(FindingKind::Foreign, path, "it is no regular file");
            }
            return Ok(());
        }
        let read = match disk.read(&entry.name, LARGEST_COPY) {
            // Its session has just recovered.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            read => read,
        };
        if known.is_some() {
            self.look_at_mode(&path)?;
        }
        let value = read.and_then(|bytes| Ok(serde_json::from_slice::<serde_json::Value>(&bytes)?));
        let Ok(value) = value else {
            self.needs.aside.push(entry.name.clone());
            self.needs.copies.extend(known.map(|known| known.session));
            self.found(FindingKind::DamagedCopy, path, "it is no JSON, or larger than any state file");
            return Ok(());
        };
        let version = value["version"].as_u64().unwrap_or(0);
        let state = serde_json::from_value::<RecoveryState>(value);
        match (known, state) {
            (_, _) if version > u64::from(RecoveryState::VERSION) => {
                self.found(FindingKind::Foreign, path, "a newer version wrote it");
            }
            (Some(known), Ok(state)) if known.is_shown_by(&state) => self.copies += 1,
            (Some(known), _) if known.is_stale => {
                self.found(FindingKind::OutdatedCopy, path, "older than the log; brought up to date in the background");
            }
            (Some(known), _) => {
                self.needs.copies.push(known.session);
                self.found(FindingKind::OutdatedCopy, path, "it shows something else than the log");
            }
            (None, _) if no_log => {
                self.found(FindingKind::UnknownCopy, path, "there is no log: the next start imports it");
            }
            (None, Ok(state)) if view_name(&state.session) == entry.name => {
                self.found(FindingKind::UnknownCopy, path, "the log knows nothing of its session");
            }
            (None, _) => self.found(FindingKind::Foreign, path, "it is no state file of ours"),
        }
        Ok(())
    }

    fn look_at_mode(&mut self, path: &Path) -> io::Result<()> {
        if place::is_open_to_others(path)? {
            self.needs.modes.push(path.to_owned());
            self.found(FindingKind::OpenToOthers, path.to_owned(), "other users may read or change it");
        }
        Ok(())
    }
}

/// What the log says of a session's copy.
struct Expected {
    session: SessionId,
    /// What the copy should show; none: there should be no copy.
    state: Option<RecoveryState>,
    /// The log itself counts the copy as out of date.
    is_stale: bool,
}

impl Expected {
    /// Old attempts may have been left out, and long words cut: the place and the verdict tell.
    fn is_shown_by(&self, shown: &RecoveryState) -> bool {
        self.state.as_ref().is_some_and(|state| {
            let verdict = |state: &RecoveryState| state.verdict.as_ref().map(|verdict| (verdict.episode, verdict.at));
            shown.session == self.session && shown.episode == state.episode && verdict(shown) == verdict(state)
        })
    }
}
