use std::io;
use std::path::Path;

use super::disk::{Directory, Disk};
use super::file::OWN;
use super::frame::{FORMAT, Header, read_header};
use super::index::Index;
use super::log::{name, read_segment, segments};
use super::replay::Replay;
use super::{SessionSummary, StateError, StateRecord, place};
use crate::failure::SessionId;

/// A state directory as it was at one moment, for reading.
#[derive(Debug)]
pub struct Inspection {
    index: Index,
    unreadable: usize,
}

/// How often a segment that vanishes under the look is looked for anew: its holder wrote a newer one.
const LOOKS: u32 = 5;

impl Inspection {
    pub(super) fn of(state: &Path) -> Result<Self, StateError> {
        let own = state.join(OWN);
        if own.symlink_metadata().is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            return Ok(Self { index: Index::default(), unreadable: 0 });
        }
        place::check(state)?;
        place::check(&own)?;
        let disk = Directory::new(&own);
        for look in 1.. {
            match Self::look(&disk) {
                Err(StateError::Open { source, .. }) if source.kind() == io::ErrorKind::NotFound && look < LOOKS => {}
                looked => return looked,
            }
        }
        Ok(Self { index: Index::default(), unreadable: 0 })
    }

    fn look(disk: &Directory) -> Result<Self, StateError> {
        let mut contents = vec![];
        for (number, regular) in segments(disk)? {
            let path = disk.path(&name(number));
            if !regular {
                continue;
            }
            let bytes = read_segment(disk, number).map_err(|source| StateError::Open { path: path.clone(), source })?;
            if let Header::Newer(found) = read_header(&bytes) {
                return Err(StateError::Newer { path, found, known: FORMAT });
            }
            contents.push(bytes);
        }
        let Some(newest) = contents.last() else { return Ok(Self { index: Index::default(), unreadable: 0 }) };
        let mut replay = Replay::newest(newest);
        if replay.is_damaged() {
            replay = Replay::every(contents.iter().map(Vec::as_slice));
        }
        Ok(Self { index: replay.index, unreadable: replay.lost })
    }

    /// Every session, in the order of their ids.
    pub fn list(&self) -> Vec<SessionSummary> {
        self.index.list()
    }

    /// The session's last record.
    pub fn load(&self, session: &SessionId) -> Option<StateRecord> {
        self.index.get(session)
    }

    /// Bytes of the log that do not read; an unfinished last write is not counted.
    pub fn unreadable_bytes(&self) -> usize {
        self.unreadable
    }
}
