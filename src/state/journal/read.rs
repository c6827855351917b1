use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::super::file::OWN;
use super::super::{StateError, place};
use super::{CURRENT, OLDER};
use crate::failure::SessionId;

/// Reads a state directory's journal, beside the process that writes it or without one.
#[derive(Debug)]
pub struct JournalReader {
    files: Vec<(PathBuf, BufReader<File>)>,
}

/// Longer lines are none of the journal's.
const LONGEST: u64 = 1024 * 1024;
/// How often files that change places under the look are opened anew.
const LOOKS: u32 = 5;

impl JournalReader {
    /// Opens the journal; one that is not there reads as empty.
    ///
    /// # Errors
    ///
    /// [`StateError::Open`] when a file is no regular file or the system refuses;
    /// [`StateError::Unsafe`] when others could change the directory.
    pub fn open(dir: impl AsRef<Path>) -> Result<Self, StateError> {
        let state: PathBuf = dir.as_ref().components().collect();
        let own = state.join(OWN);
        if own.symlink_metadata().is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            return Ok(Self { files: vec![] });
        }
        place::check(&state)?;
        place::check(&own)?;
        for _ in 1..LOOKS {
            let older = open(own.join(OLDER))?;
            let current = open(own.join(CURRENT))?;
            let is_still = |(path, file): &(PathBuf, File)| place::is_named(file, path).unwrap_or(false);
            // Its writer may have begun a new file between the two.
            if older.as_ref().is_some_and(|older| !is_still(older)) {
                continue;
            }
            let files = [older, current].into_iter().flatten();
            return Ok(Self { files: files.map(|(path, file)| (path, BufReader::new(file))).collect() });
        }
        Ok(Self { files: vec![] })
    }

    /// Hands over the session's lines, oldest first, each a JSON object. Where the journal misses lines,
    /// of this session or others, an object with their number as `gap` stands between. Lines that do not
    /// read are passed over: a crash can tear the last one. Tells how many lines were the session's.
    ///
    /// # Errors
    ///
    /// [`StateError::Open`] when a file cannot be read to its end.
    pub fn lines_of(self, session: &SessionId, mut each: impl FnMut(Value)) -> Result<usize, StateError> {
        let (mut found, mut gap) = (0, None);
        for (path, mut file) in self.files {
            let mut line = vec![];
            while next_line(&mut file, &mut line).map_err(|source| StateError::Open { path: path.clone(), source })? {
                let Ok(value) = serde_json::from_slice::<Value>(&line) else { continue };
                if let Some(missing) = value["gap"].as_u64() {
                    let before = gap.take().and_then(|gap: Value| gap["gap"].as_u64()).unwrap_or(0);
                    gap = Some(serde_json::json!({"at": value["at"], "gap": before.saturating_add(missing)}));
                } else if value["session"].as_str() == Some(session.as_str()) {
                    gap.take().into_iter().for_each(&mut each);
                    each(value);
                    found += 1;
                }
            }
        }
        if found > 0 {
            gap.into_iter().for_each(each);
        }
        Ok(found)
    }
}

/// How many lines of a journal's file do not read.
pub(in super::super) fn unreadable_lines(path: &Path) -> io::Result<usize> {
    let mut file = match place::open_to_read(path) {
        // Its writer has just begun a new one.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        opened => BufReader::new(opened?),
    };
    let (mut line, mut bad) = (vec![], 0);
    while next_line(&mut file, &mut line)? {
        bad += usize::from(serde_json::from_slice::<serde::de::IgnoredAny>(&line).is_err());
    }
    Ok(bad)
}

fn open(path: PathBuf) -> Result<Option<(PathBuf, File)>, StateError> {
    match place::open_to_read(&path) {
        Ok(file) => Ok(Some((path, file))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(StateError::Open { path, source }),
    }
}

/// The next line; one that is too long comes in pieces, none of which reads.
fn next_line(file: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    file.take(LONGEST).read_until(b'\n', line)?;
    Ok(!line.is_empty())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn lines(current: &[u8], older: &[u8]) -> Vec<String> {
        let dir = tempfile::tempdir().unwrap();
        let own = dir.path().join(OWN);
        std::fs::create_dir(&own).unwrap();
        std::fs::write(own.join(CURRENT), current).unwrap();
        std::fs::write(own.join(OLDER), older).unwrap();
        let mut lines = vec![];
        let reader = JournalReader::open(dir.path()).unwrap();
        reader.lines_of(&SessionId::new("s").unwrap(), |line| lines.push(line.to_string())).unwrap();
        lines
    }

    #[test]
    fn lines_of_other_sessions_and_torn_ones_are_passed_over() {
        let current = b"{\"seq\":2,\"session\":\"s\"}\n{\"session\":\"other\"}\n\xff\xfe\n{\"session\":\"s\",\"se";
        let older = b"{\"seq\":1,\"session\":\"s\"}\n";
        assert_eq!(lines(current, older), [r#"{"seq":1,"session":"s"}"#, r#"{"seq":2,"session":"s"}"#]);
    }

    #[test]
    fn gaps_are_told_where_they_are() {
        let current = b"{\"at\":1,\"gap\":2}\n{\"session\":\"other\"}\n{\"at\":3,\"gap\":4}\n{\"session\":\"s\"}\n";
        assert_eq!(lines(current, b""), [r#"{"at":3,"gap":6}"#, r#"{"session":"s"}"#]);
    }

    #[test]
    fn a_directory_without_a_journal_has_no_lines() {
        let dir = tempfile::tempdir().unwrap();
        let reader = JournalReader::open(dir.path().join("nowhere")).unwrap();
        assert_eq!(reader.lines_of(&SessionId::new("s").unwrap(), |_| ()).unwrap(), 0);
    }
}
