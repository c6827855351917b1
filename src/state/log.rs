use std::collections::BTreeSet;
use std::io;

use super::disk::{Disk, DiskFile, keep_aside, set_aside};
use super::frame::{Entry, HEADER, Header, header, read_header};
use super::index::Index;
use super::note::Notes;
use super::replay::Replay;
use super::{StateError, StateNote, StateRecord};
use crate::failure::SessionId;

/// The append-only log: one file, the segment, which begins with a snapshot of all that was live.
///
/// A new segment is written under another name, synced, renamed, and the directory synced, before the
/// one that it replaces goes.
pub(super) struct Log {
    disk: Box<dyn Disk>,
    /// The newest number that was used.
    segment: u64,
    /// Bytes of the segment that are good.
    length: u64,
    /// How many of them are known to be durable.
    durable: u64,
    writer: Writer,
    /// Whether a session changed since the last mark that all views are fresh.
    unmarked: bool,
    /// A snapshot that failed is not tried again before the log is this long.
    snapshot_from: u64,
}

enum Writer {
    /// The file ends with a good frame.
    Ready(Box<dyn DiskFile>),
    /// A write failed: what follows the good frames must be cut off first.
    Torn(Box<dyn DiskFile>),
    /// A sync failed, or the file is gone: nothing can be believed of it any more, so that all live
    /// records go to a new segment first.
    Broken,
}

const NEW: &str = "log.new";
/// How much of a snapshot is put together before it is written.
const CHUNK: usize = 1024 * 1024;
/// A log is never longer: it is read as a whole.
const LONGEST: u64 = 8 * 1024 * 1024 * 1024;

impl Log {
    /// Reads the directory's log, mends what a crash can do to it, and sets aside what it cannot.
    pub fn open(mut disk: Box<dyn Disk>, notes: &mut Notes) -> Result<(Self, Replay), StateError> {
        let segments = segments(&*disk)?;
        let (mut contents, mut is_newest_gone) = (vec![], false);
        for (number, regular) in &segments {
            let path = disk.path(&name(*number));
            if !regular {
                let aside = set_aside(&mut *disk, &name(*number)).map_err(|source| open_error(&path, source))?;
                notes.add(StateNote::SetAside { path, aside, why: "it is no regular file" });
                is_newest_gone = true;
                continue;
            }
            is_newest_gone = false;
            let bytes = disk.read(&name(*number), LONGEST).map_err(|source| open_error(&path, source))?;
            if let Header::Newer(found) = read_header(&bytes) {
                return Err(StateError::Newer { path, found, known: super::frame::FORMAT });
            }
            contents.push((*number, bytes));
        }
        let segment = segments.last().map_or(0, |(number, _)| *number);
        let mut this =
            Self { disk, segment, length: 0, durable: 0, writer: Writer::Broken, unmarked: true, snapshot_from: 0 };
        let Some((newest, bytes)) = contents.last() else {
            // What lay in its place was no file: that is a log lost, not one that never was.
            return Ok((this, Replay { headless: !segments.is_empty(), ..Replay::default() }));
        };
        let mut replay = Replay::newest(bytes);
        if replay.is_damaged() || is_newest_gone {
            replay = Replay::every(contents.iter().map(|(_, bytes)| bytes.as_slice()));
            replay.doubt();
            this.keep_damaged(*newest, &replay, notes)?;
        } else {
            this.mend(*newest, &replay, notes)?;
        }
        Ok((this, replay))
    }

    /// Cuts a torn tail off and goes on with the segment, unless it has to be written anew.
    fn mend(&mut self, segment: u64, replay: &Replay, notes: &mut Notes) -> Result<(), StateError> {
        let path = self.disk.path(&name(segment));
        let open = |source| open_error(&path, source);
        if replay.torn > 0 {
            notes.add(StateNote::TornTail { path: path.clone(), bytes: replay.torn });
        }
        if replay.is_gapped || replay.is_older {
            return Ok(());
        }
        let mut file = self.disk.append(&name(segment)).map_err(open)?;
        if replay.torn > 0 {
            file.truncate(replay.end as u64).map_err(open)?;
        }
        // What a killed process left may be known to the system and not to the disk, the name too: from
        // now on it counts, and the segments before it go.
        file.sync().map_err(open)?;
        self.disk.sync().map_err(open)?;
        (self.segment, self.length, self.durable) = (segment, replay.end as u64, replay.end as u64);
        self.writer = Writer::Ready(file);
        self.unmarked = !replay.stale.is_empty();
        self.drop_others(segment);
        Ok(())
    }

    /// The damaged segment gets a second name before a new one takes its place: at no moment is there
    /// neither.
    fn keep_damaged(&mut self, segment: u64, replay: &Replay, notes: &mut Notes) -> Result<(), StateError> {
        let path = self.disk.path(&name(segment));
        let aside = keep_aside(&mut *self.disk, &name(segment)).map_err(|source| open_error(&path, source))?;
        let Replay { read, lost, lost_entries: unknown, doubted, .. } = *replay;
        notes.add(StateNote::Damaged { path, aside, read, lost, unknown, doubted });
        Ok(())
    }

    /// Whether there was no log at all.
    pub fn is_new(&self) -> bool {
        self.segment == 0
    }

    /// The segments in the directory now.
    pub fn segments(&self) -> Result<Vec<(u64, bool)>, StateError> {
        segments(&*self.disk)
    }

    /// Whether live records must go to a new segment before anything can be appended.
    pub fn is_broken(&self) -> bool {
        matches!(self.writer, Writer::Broken)
    }

    /// Trusts the segment no more: live records go to a new one before anything is appended.
    pub fn abandon(&mut self, why: &'static str) -> StateError {
        self.writer = Writer::Broken;
        self.save_error(io::Error::new(io::ErrorKind::NotFound, why))
    }

    /// Whether the log has grown well past its live content.
    pub fn wants_snapshot(&self, live: u64, above: u64) -> bool {
        self.length > above && self.length > 2 * live && self.length >= self.snapshot_from
    }

    /// Makes records durable: one write, one sync.
    pub fn append(&mut self, records: &[&StateRecord]) -> Result<(), StateError> {
        let mut bytes = vec![];
        for record in records {
            Entry::of(record).write(self.durable, &mut bytes);
        }
        self.unmarked = true;
        self.write(&bytes, true).map_err(|source| self.save_error(source))
    }

    /// Notes that every view is fresh. Not synced: a mark that is lost costs only work.
    pub fn mark_views_fresh(&mut self) {
        if !std::mem::take(&mut self.unmarked) {
            return;
        }
        let mut bytes = vec![];
        Entry::ViewsFresh.write(self.durable, &mut bytes);
        self.unmarked = self.write(&bytes, false).is_err();
    }

    fn write(&mut self, bytes: &[u8], sync: bool) -> io::Result<()> {
        let broken = || io::Error::other("the log was not repaired yet");
        let mut file = match std::mem::replace(&mut self.writer, Writer::Broken) {
            Writer::Ready(file) => file,
            Writer::Torn(mut file) => {
                file.truncate(self.length)?;
                file
            }
            Writer::Broken => return Err(broken()),
        };
        file.check_named()?;
        if let Err(error) = file.write(bytes) {
            self.writer = Writer::Torn(file);
            return Err(error);
        }
        let length = self.length + bytes.len() as u64;
        if sync {
            file.sync()?;
            self.durable = length;
        }
        self.length = length;
        self.writer = Writer::Ready(file);
        Ok(())
    }

    /// Writes all live records to a new segment and goes on with it. Sessions with stale views come
    /// last, behind the mark; without the set, all views count as stale.
    pub fn snapshot(&mut self, index: &Index, stale: Option<&BTreeSet<SessionId>>) -> Result<(), StateError> {
        let path = self.disk.path(&name(self.segment + 1));
        let fail = |source| StateError::Save { path: path.clone(), source };
        let (file, length) = self.write_new(index, stale).map_err(|error| {
            let _ = self.disk.remove(NEW);
            self.snapshot_from = self.length.saturating_mul(2);
            fail(error)
        })?;
        // From here on nobody knows which segment a crash would leave: the old one is not written to.
        self.segment += 1;
        self.writer = Writer::Broken;
        self.disk.rename(NEW, &name(self.segment)).map_err(fail)?;
        self.disk.sync().map_err(fail)?;
        // Opened by its name, so that the handle can tell when that changes.
        drop(file);
        self.writer = Writer::Ready(self.disk.append(&name(self.segment)).map_err(fail)?);
        (self.length, self.durable, self.snapshot_from) = (length, length, 0);
        self.unmarked = stale.is_none_or(|stale| !stale.is_empty());
        self.drop_others(self.segment);
        Ok(())
    }

    fn write_new(
        &mut self,
        index: &Index,
        stale: Option<&BTreeSet<SessionId>>,
    ) -> io::Result<(Box<dyn DiskFile>, u64)> {
        match self.disk.remove(NEW) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = self.disk.create(NEW)?;
        let mut bytes = header(self.segment + 1).to_vec();
        let length = snapshot_length(index, stale);
        let mut written = 0;
        let is_stale = |session: &SessionId| stale.is_none_or(|stale| stale.contains(session));
        for behind_mark in [false, true] {
            for record in index.iter().filter(|record| is_stale(&record.session) == behind_mark) {
                Entry::of(&record).write(length, &mut bytes);
                if bytes.len() >= CHUNK {
                    file.write(&bytes)?;
                    written += bytes.len() as u64;
                    bytes.clear();
                }
            }
            if !behind_mark && stale.is_some() {
                Entry::ViewsFresh.write(length, &mut bytes);
            }
        }
        for session in to_be_removed(index, stale) {
            forgotten(session).write(length, &mut bytes);
        }
        file.write(&bytes)?;
        file.sync()?;
        debug_assert_eq!(written + bytes.len() as u64, length);
        Ok((file, written + bytes.len() as u64))
    }

    /// Removes what a newer segment replaced. What cannot be removed now is at the next opening.
    fn drop_others(&mut self, newest: u64) {
        let _ = self.disk.remove(NEW);
        for (number, regular) in segments(&*self.disk).unwrap_or_default() {
            if regular && number < newest {
                let _ = self.disk.remove(&name(number));
            }
        }
    }

    fn save_error(&self, source: io::Error) -> StateError {
        StateError::Save { path: self.disk.path(&name(self.segment)), source }
    }
}

/// Sessions that are forgotten and whose views are still to be removed.
fn to_be_removed<'a>(index: &'a Index, stale: Option<&'a BTreeSet<SessionId>>) -> impl Iterator<Item = &'a SessionId> {
    stale.into_iter().flatten().filter(|session| index.get(session).is_none())
}

fn forgotten(session: &SessionId) -> Entry<'_> {
    Entry::Forget { session: session.as_str(), revision: 0 }
}

/// How long a segment is that holds this and nothing else.
fn snapshot_length(index: &Index, stale: Option<&BTreeSet<SessionId>>) -> u64 {
    let mark = stale.map_or(0, |_| Entry::ViewsFresh.frame_length());
    let removed = to_be_removed(index, stale).map(|session| forgotten(session).frame_length());
    index.bytes() + (HEADER + mark + removed.sum::<usize>()) as u64
}

/// A segment's file.
pub(super) fn name(segment: u64) -> String {
    format!("log-{segment:08}")
}

/// Whether a segment's file may have this name.
pub(super) fn is_segment(text: &str) -> bool {
    number(text).is_some()
}

fn number(text: &str) -> Option<u64> {
    let number = text.strip_prefix("log-")?.parse().ok()?;
    (name(number) == text).then_some(number)
}

/// The segments' numbers, the oldest first, and whether each is a regular file.
pub(super) fn segments(disk: &dyn Disk) -> Result<Vec<(u64, bool)>, StateError> {
    let names = disk.names().map_err(|source| open_error(&disk.path(""), source))?;
    let mut found: Vec<_> = names.into_iter().filter_map(|entry| Some((number(&entry.name)?, entry.regular))).collect();
    found.sort_unstable();
    Ok(found)
}

/// A segment's content, for a look from outside.
pub(super) fn read_segment(disk: &dyn Disk, segment: u64) -> io::Result<Vec<u8>> {
    disk.read(&name(segment), LONGEST)
}

fn open_error(path: &std::path::Path, source: io::Error) -> StateError {
    StateError::Open { path: path.to_owned(), source }
}
