use std::fmt;
use std::path::PathBuf;

/// Something that a person should know of a state directory that was opened all the same.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StateNote {
    /// The last write before a crash was not finished; nobody was told that it was durable.
    TornTail {
        /// The log's file.
        path: PathBuf,
        /// Bytes cut off.
        bytes: usize,
    },
    /// The log was damaged. What could be read goes on in a new one.
    Damaged {
        /// The log's file.
        path: PathBuf,
        /// Where it is kept, whole, for a person to look at.
        aside: PathBuf,
        /// Records that were read.
        read: usize,
        /// Bytes that could not be read: newer records of any session may have been there.
        lost: usize,
        /// How many records they held, or more. Of which sessions is not known.
        unknown: usize,
        /// Open episodes that go on with half their budget spent, because newer records of theirs may be
        /// among the unknown.
        doubted: usize,
    },
    /// A file does not read and was set aside, whole.
    SetAside {
        /// The file.
        path: PathBuf,
        /// Where it is now.
        aside: PathBuf,
        /// Why.
        why: &'static str,
    },
    /// A file was not imported and was left as it is.
    Skipped {
        /// The file.
        path: PathBuf,
        /// Why.
        why: &'static str,
    },
    /// State files were taken over.
    Imported {
        /// How many sessions.
        sessions: usize,
    },
    /// There were more notes than are kept.
    More {
        /// How many.
        notes: usize,
    },
}

/// More notes than this of one opening are only counted.
const NOTES_KEPT: usize = 100;

/// Notes of one opening, bounded.
#[derive(Debug, Default)]
pub(super) struct Notes {
    kept: Vec<StateNote>,
    more: usize,
}

impl Notes {
    pub fn add(&mut self, note: StateNote) {
        if self.kept.len() < NOTES_KEPT {
            self.kept.push(note);
        } else {
            self.more += 1;
        }
    }

    pub fn into_vec(mut self) -> Vec<StateNote> {
        if self.more > 0 {
            self.kept.push(StateNote::More { notes: self.more });
        }
        self.kept
    }
}

impl fmt::Display for StateNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TornTail { path, bytes } => {
                write!(f, "{}: an unfinished write of {bytes} bytes was cut off", path.display())
            }
            Self::Damaged { path, aside, read, lost, unknown, doubted } => write!(
                f,
                "{} is damaged, kept as {}; {read} records were read, {unknown} or more in {lost} bytes could not \
                 be: {doubted} open episodes go on with half their budget spent",
                path.display(),
                aside.display()
            ),
            Self::SetAside { path, aside, why } => {
                write!(f, "{} was set aside as {}: {why}", path.display(), aside.display())
            }
            Self::Skipped { path, why } => write!(f, "{} was not imported: {why}", path.display()),
            Self::Imported { sessions } => write!(f, "{sessions} sessions were imported from state files"),
            Self::More { notes } => write!(f, "and {notes} more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_million_bad_files_make_a_hundred_notes_and_a_count() {
        let mut notes = Notes::default();
        for _ in 0..1_000 {
            notes.add(StateNote::Skipped { path: "x".into(), why: "it is no state file" });
        }
        let notes = notes.into_vec();
        assert_eq!((notes.len(), notes.last()), (101, Some(&StateNote::More { notes: 900 })));
    }
}
