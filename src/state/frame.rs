//! The log's bytes: a header, then framed entries. Pure.
//!
//! A frame is `MARK`, the payload's length and a CRC32 over length and payload (little-endian `u32`s),
//! then the payload: a tag, how much of the file was durable when the frame was written (`u64`), the
//! revision (`u64`), the id's length (`u32`), the id, the memory's JSON. Payloads are UTF-8 but for a few
//! numbers, and `MARK` begins and ends with bytes that UTF-8 never has: after a damaged place the next
//! frame is found again.
//!
//! What was durable and does not read any more is damage. Whatever follows it belongs to a last write
//! that a power cut left in pieces, in any order: nobody was told of it.

use std::cmp::Ordering;

use super::StateRecord;

/// The newest format that this version reads, and the one it writes.
pub(super) const FORMAT: u32 = 2;
/// The header's length: magic, format, a reserved `u32`, the segment's number, a CRC32 of these.
pub(super) const HEADER: usize = 28;

const MAGIC: &[u8; 8] = b"BACKSTOP";
const MARK: [u8; 4] = [0xff, b'B', b'S', 0xfe];
const FRAME: usize = 12;
/// Tag, durable length, revision, id length.
const ENTRY: usize = 21;
/// The same in format 1, which had no durable length.
const OLD_ENTRY: usize = 13;
const LONGEST: usize = ENTRY + StateRecord::MAX_BYTES;

const PUT: u8 = 4;
const FORGET: u8 = 5;
const VIEWS_FRESH: u8 = 6;
/// Format 1 had the same tags, counted from 1.
const OLD_TAGS: std::ops::RangeInclusive<u8> = 1..=3;

/// One entry of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Entry<'a> {
    /// The session's whole state.
    Put { session: &'a str, revision: u64, memory: &'a [u8] },
    /// The session is forgotten.
    Forget { session: &'a str, revision: u64 },
    /// Every view shows what the log says up to here.
    ViewsFresh,
}

impl<'a> Entry<'a> {
    pub fn of(record: &'a StateRecord) -> Self {
        let (session, revision) = (record.session.as_str(), record.revision);
        match &record.memory {
            Some(memory) => Self::Put { session, revision, memory },
            None => Self::Forget { session, revision },
        }
    }

    /// How long the entry's frame is.
    pub fn frame_length(self) -> usize {
        let (_, session, _, memory) = self.parts();
        FRAME + ENTRY + session.len() + memory.len()
    }

    fn parts(self) -> (u8, &'a str, u64, &'a [u8]) {
        match self {
            Self::Put { session, revision, memory } => (PUT, session, revision, memory),
            Self::Forget { session, revision } => (FORGET, session, revision, &[]),
            Self::ViewsFresh => (VIEWS_FRESH, "", 0, &[]),
        }
    }

    /// Adds the entry's frame to what is to be written behind this many durable bytes. In a segment that
    /// gets its name only when it is durable as a whole, that is its whole length.
    pub fn write(self, durable: u64, to: &mut Vec<u8>) {
        let (tag, session, revision, memory) = self.parts();
        // Both lengths are bounded by `StateRecord::MAX_BYTES`, checked before anything is written.
        let length = ((ENTRY + session.len() + memory.len()) as u32).to_le_bytes();
        to.extend_from_slice(&MARK);
        to.extend_from_slice(&length);
        let sum_at = to.len();
        to.extend_from_slice(&[0; 4]);
        to.push(tag);
        to.extend_from_slice(&durable.to_le_bytes());
        to.extend_from_slice(&revision.to_le_bytes());
        to.extend_from_slice(&(session.len() as u32).to_le_bytes());
        to.extend_from_slice(session.as_bytes());
        to.extend_from_slice(memory);
        let sum = checksum(&length, &to[sum_at + 4..]);
        to[sum_at..sum_at + 4].copy_from_slice(&sum.to_le_bytes());
    }

    /// The frame that begins the bytes.
    fn read(bytes: &'a [u8]) -> Option<Frame<'a>> {
        let rest = bytes.strip_prefix(&MARK)?;
        let (length, rest) = rest.split_first_chunk::<4>()?;
        let (sum, rest) = rest.split_first_chunk::<4>()?;
        let size = u32::from_le_bytes(*length) as usize;
        if !(OLD_ENTRY..=LONGEST).contains(&size) {
            return None;
        }
        let payload = rest.get(..size)?;
        if checksum(length, payload) != u32::from_le_bytes(*sum) {
            return None;
        }
        let (&tag, rest) = payload.split_first()?;
        let (tag, durable, rest) = if OLD_TAGS.contains(&tag) {
            (tag + (PUT - OLD_TAGS.start()), None, rest)
        } else {
            let (durable, rest) = rest.split_first_chunk::<8>()?;
            (tag, Some(u64::from_le_bytes(*durable)), rest)
        };
        let (revision, rest) = rest.split_first_chunk::<8>()?;
        let (id, rest) = rest.split_first_chunk::<4>()?;
        let (session, memory) = rest.split_at_checked(u32::from_le_bytes(*id) as usize)?;
        let session = std::str::from_utf8(session).ok()?;
        let revision = u64::from_le_bytes(*revision);
        let entry = match tag {
            PUT if !session.is_empty() => Self::Put { session, revision, memory },
            FORGET if !session.is_empty() => Self::Forget { session, revision },
            VIEWS_FRESH => Self::ViewsFresh,
            _ => return None,
        };
        Some(Frame { entry, durable, length: FRAME + size })
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Frame<'a> {
    entry: Entry<'a>,
    /// Bytes of the file that were durable when it was written; format 1 did not tell.
    durable: Option<u64>,
    length: usize,
}

/// What a segment's bytes hold.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Scan<'a> {
    /// The entries, in their order.
    pub entries: Vec<Entry<'a>>,
    /// Where the last good frame ends.
    pub end: usize,
    /// Bytes that were durable and do not read any more, or are not there.
    pub lost: usize,
    /// How many entries they held, or more.
    pub lost_entries: usize,
    /// Unreadable bytes of a last write that was not finished.
    pub torn: usize,
    /// Some of them lie before the last good frame: cutting the end off is not enough.
    pub is_gapped: bool,
}

/// Bytes that do not read.
struct Hole {
    start: usize,
    length: usize,
    /// Beginnings of frames in it.
    marks: usize,
}

/// Reads every frame that is whole, whatever lies between.
pub(super) fn scan(bytes: &[u8], from: usize) -> Scan<'_> {
    let mut found = Scan { end: from.min(bytes.len()), ..Scan::default() };
    let (mut at, mut marks, mut durable) = (found.end, 0, 0);
    let mut holes: Vec<Hole> = vec![];
    while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
        if let Some(frame) = Entry::read(rest) {
            if at > found.end {
                holes.push(Hole { start: found.end, length: at - found.end, marks });
            }
            // Of format 1 every frame counts as written behind durable ones.
            durable = durable.max(frame.durable.map_or(at, |durable| usize::try_from(durable).unwrap_or(usize::MAX)));
            found.entries.push(frame.entry);
            at += frame.length;
            (found.end, marks) = (at, 0);
        } else {
            marks += usize::from(rest.starts_with(&MARK));
            match next_mark(&rest[1..]) {
                Some(step) => at += 1 + step,
                None => break,
            }
        }
    }
    let last = holes.len();
    if found.end < bytes.len() {
        holes.push(Hole { start: found.end, length: bytes.len() - found.end, marks });
    }
    for (number, hole) in holes.into_iter().enumerate() {
        if hole.start < durable {
            found.lost += hole.length;
            found.lost_entries += hole.marks.max(1);
        } else {
            found.torn += hole.length;
            found.is_gapped |= number < last;
        }
    }
    if bytes.len() < durable {
        found.lost += durable - bytes.len();
        found.lost_entries += 1;
    }
    found
}

fn next_mark(bytes: &[u8]) -> Option<usize> {
    bytes.windows(MARK.len()).position(|window| window == MARK)
}

/// What a segment's first bytes say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Header {
    /// This version wrote it.
    Known,
    /// An older version wrote it: it reads, and nothing is added to it.
    Older,
    /// A newer version wrote it.
    Newer(u32),
    /// It does not read.
    Damaged,
}

pub(super) fn header(segment: u64) -> [u8; HEADER] {
    let mut bytes = [0; HEADER];
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8..12].copy_from_slice(&FORMAT.to_le_bytes());
    bytes[16..24].copy_from_slice(&segment.to_le_bytes());
    let sum = checksum(&bytes[..24], &[]);
    bytes[24..].copy_from_slice(&sum.to_le_bytes());
    bytes
}

pub(super) fn read_header(bytes: &[u8]) -> Header {
    let Some((head, sum)) = bytes.get(..HEADER).and_then(|bytes| bytes.split_last_chunk::<4>()) else {
        return Header::Damaged;
    };
    if !head.starts_with(MAGIC) || checksum(head, &[]) != u32::from_le_bytes(*sum) {
        return Header::Damaged;
    }
    let format = head[8..].first_chunk::<4>().map_or(0, |bytes| u32::from_le_bytes(*bytes));
    match format.cmp(&FORMAT) {
        Ordering::Greater => Header::Newer(format),
        Ordering::Equal => Header::Known,
        Ordering::Less => Header::Older,
    }
}

fn checksum(first: &[u8], second: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(first);
    hasher.update(second);
    hasher.finalize()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Three batches of one entry each.
    fn three() -> (Vec<u8>, Vec<usize>) {
        let mut bytes = header(1).to_vec();
        let mut ends = vec![];
        for (session, revision) in [("a", 1), ("b", 1), ("a", 2)] {
            put(session, revision, bytes.len(), &mut bytes);
            ends.push(bytes.len());
        }
        (bytes, ends)
    }

    fn put(session: &str, revision: u64, durable: usize, to: &mut Vec<u8>) {
        Entry::Put { session, revision, memory: br#"{"episodes":1}"# }.write(durable as u64, to);
    }

    #[test]
    fn a_log_cut_at_any_byte_gives_every_whole_frame() {
        let (bytes, ends) = three();
        for cut in HEADER..=bytes.len() {
            let found = scan(&bytes[..cut], HEADER);
            let whole: Vec<_> = ends.iter().filter(|end| **end <= cut).collect();
            assert_eq!(found.entries.len(), whole.len(), "cut at {cut}");
            assert_eq!(found.end, whole.last().map_or(HEADER, |end| **end));
            assert_eq!((found.torn, found.lost, found.is_gapped), (cut - found.end, 0, false));
        }
    }

    #[test]
    fn a_flipped_bit_anywhere_costs_one_frame_and_no_more() {
        let (bytes, ends) = three();
        let whole = scan(&bytes, HEADER).entries;
        for bit in HEADER * 8..bytes.len() * 8 {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let found = scan(&bytes, HEADER);
            assert_eq!(found.entries.len(), 2, "bit {bit}");
            assert!(found.entries.iter().all(|entry| whole.contains(entry)));
            let is_last = bit / 8 >= ends[1];
            assert_eq!((found.lost > 0, found.torn > 0), (!is_last, is_last), "bit {bit}");
            assert_eq!(found.lost_entries, usize::from(!is_last));
        }
    }

    #[test]
    fn a_gap_in_the_last_write_is_no_damage() {
        let (mut bytes, ends) = three();
        let durable = ends[2];
        for session in ["c", "d", "e"] {
            put(session, 1, durable, &mut bytes);
        }
        let frame = (bytes.len() - durable) / 3;
        bytes[durable + frame..durable + 2 * frame].fill(0);
        let found = scan(&bytes, HEADER);
        assert_eq!((found.entries.len(), found.lost, found.torn, found.is_gapped), (5, 0, frame, true));
        // The same place once something was written behind it.
        put("f", 1, bytes.len(), &mut bytes);
        let found = scan(&bytes, HEADER);
        assert_eq!((found.entries.len(), found.lost, found.torn), (6, frame, 0));
    }

    #[test]
    fn in_a_segment_that_was_durable_as_a_whole_everything_unreadable_is_damage() {
        let mut bytes = header(1).to_vec();
        let length = 3 * Entry::Put { session: "a", revision: 1, memory: br#"{"episodes":1}"# }.frame_length() + HEADER;
        for session in ["a", "b", "c"] {
            put(session, 1, length, &mut bytes);
        }
        assert_eq!(bytes.len(), length);
        let found = scan(&bytes[..length - 1], HEADER);
        assert_eq!((found.entries.len(), found.torn), (2, 0));
        assert!(found.lost > 0, "cut off");
        bytes[length - 1] ^= 1;
        let found = scan(&bytes, HEADER);
        assert!(found.lost > 0 && found.torn == 0, "flipped: {found:?}");
    }

    #[test]
    fn an_older_formats_frames_are_read() {
        // `a` at revision 3, as format 1 wrote it.
        let mut payload = vec![1];
        payload.extend(3_u64.to_le_bytes());
        payload.extend(1_u32.to_le_bytes());
        payload.extend(b"a{}");
        let length = (payload.len() as u32).to_le_bytes();
        let sum = checksum(&length, &payload).to_le_bytes();
        let frame = [&MARK[..], &length, &sum, &payload].concat();
        let entry = Entry::Put { session: "a", revision: 3, memory: b"{}" };
        assert_eq!(scan(&frame, 0).entries, [entry]);
        let gap = [&frame[..], b"lost", &frame[..]].concat();
        assert_eq!(scan(&gap, 0).lost, 4);
        let mut head = header(1);
        head[8..12].copy_from_slice(&1_u32.to_le_bytes());
        let sum = checksum(&head[..24], &[]);
        head[24..].copy_from_slice(&sum.to_le_bytes());
        assert_eq!(read_header(&head), Header::Older);
    }

    #[test]
    fn a_flipped_bit_in_the_header_is_damage_and_never_a_newer_format() {
        for bit in 0..HEADER * 8 {
            let mut bytes = header(7);
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(read_header(&bytes), Header::Damaged, "bit {bit}");
        }
        assert_eq!(read_header(&header(7)), Header::Known);
    }

    #[test]
    fn nul_bytes_hold_nothing() {
        let found = scan(&[0; 10_000], 0);
        assert_eq!((found.entries.len(), found.end, found.torn), (0, 0, 10_000));
        assert_eq!(read_header(&[0; 100]), Header::Damaged);
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_scanned_without_a_panic(bytes: Vec<u8>) {
            let found = scan(&bytes, 0);
            proptest::prop_assert!(found.end <= bytes.len());
            read_header(&bytes);
        }

        #[test]
        fn what_is_written_is_read(session in ".{1,40}", revision: u64, memory: Vec<u8>) {
            let mut bytes = vec![];
            let entry = Entry::Put { session: &session, revision, memory: &memory };
            entry.write(revision, &mut bytes);
            proptest::prop_assert_eq!(bytes.len(), entry.frame_length());
            let frame = Frame { entry, durable: Some(revision), length: bytes.len() };
            proptest::prop_assert_eq!(Entry::read(&bytes), Some(frame));
        }
    }
}
