use std::io;
use std::path::Path;

use super::disk::{Directory, Disk};
use super::file::OWN;
use super::frame::{FORMAT, Header, read_header};
use super::log::{name, read_segment, segments};
use super::replay::Replay;
use super::{SessionSummary, StateError, StateRecord, place};
use crate::failure::SessionId;

/// A state directory as it was at one moment, for reading.
#[derive(Debug, Default)]
pub struct Inspection {
    pub(super) replay: Replay,
    /// What lies in the places of segments.
    pub(super) segments: Vec<Segment>,
}

/// One segment of the log, or what lies in its place.
#[derive(Debug)]
pub(super) struct Segment {
    pub name: String,
    /// A regular file.
    pub regular: bool,
    pub bytes: u64,
}

/// How often a segment that vanishes under the look is looked for anew: its holder wrote a newer one.
const LOOKS: u32 = 5;

impl Inspection {
    pub(super) fn of(state: &Path) -> Result<Self, StateError> {
        let own = state.join(OWN);
        if own.symlink_metadata().is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            return Ok(Self::default());
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
        Ok(Self::default())
    }

    fn look(disk: &Directory) -> Result<Self, StateError> {
        let (mut contents, mut found) = (vec![], vec![]);
        for (number, regular) in segments(disk)? {
            let name = name(number);
            if !regular {
                found.push(Segment { name, regular, bytes: 0 });
                continue;
            }
            let path = disk.path(&name);
            let bytes = read_segment(disk, number).map_err(|source| StateError::Open { path: path.clone(), source })?;
            if let Header::Newer(found) = read_header(&bytes) {
                return Err(StateError::Newer { path, found, known: FORMAT });
            }
            found.push(Segment { name, regular, bytes: bytes.len() as u64 });
            contents.push(bytes);
        }
        let mut replay = contents.last().map(|bytes| Replay::newest(bytes)).unwrap_or_default();
        if replay.is_damaged() {
            replay = Replay::every(contents.iter().map(Vec::as_slice));
        }
        Ok(Self { replay, segments: found })
    }

    /// Every session, in the order of their ids.
    pub fn list(&self) -> Vec<SessionSummary> {
        self.replay.index.list()
    }

    /// The session's last record.
    pub fn load(&self, session: &SessionId) -> Option<StateRecord> {
        self.replay.index.get(session)
    }

    /// Hands over every session's last record, in any order.
    pub fn records(&self) -> impl Iterator<Item = StateRecord> {
        self.replay.index.iter()
    }

    /// Bytes of the log that do not read; an unfinished last write is not counted.
    pub fn unreadable_bytes(&self) -> usize {
        self.replay.lost + if self.replay.headless { self.replay.torn } else { 0 }
    }
}
