//! The log's bytes: a header, then framed entries. Pure.
//!
//! A frame is `MARK`, the payload's length and a CRC32 over length and payload (little-endian `u32`s),
//! then the payload: a tag, the revision (`u64`), the id's length (`u32`), the id, the memory's JSON.
//! Payloads are UTF-8 but for a few small numbers, and `MARK` begins and ends with bytes that UTF-8
//! never has: after a damaged place the next frame is found again.

use super::StateRecord;

/// The newest format that this version reads, and the one it writes.
pub(super) const FORMAT: u32 = 1;
/// The header's length: magic, format, a reserved `u32`, the segment's number, a CRC32 of these.
pub(super) const HEADER: usize = 28;

const MAGIC: &[u8; 8] = b"BACKSTOP";
const MARK: [u8; 4] = [0xff, b'B', b'S', 0xfe];
const FRAME: usize = 12;
/// Tag, revision, id length.
const ENTRY: usize = 13;
const LONGEST: usize = ENTRY + StateRecord::MAX_BYTES;

const PUT: u8 = 1;
const FORGET: u8 = 2;
const VIEWS_FRESH: u8 = 3;

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

    /// Adds the entry's frame.
    pub fn write(self, to: &mut Vec<u8>) {
        let (tag, session, revision, memory) = match self {
            Self::Put { session, revision, memory } => (PUT, session, revision, memory),
            Self::Forget { session, revision } => (FORGET, session, revision, [].as_slice()),
            Self::ViewsFresh => (VIEWS_FRESH, "", 0, [].as_slice()),
        };
        // Both lengths are bounded by `StateRecord::MAX_BYTES`, checked before anything is written.
        let length = ((ENTRY + session.len() + memory.len()) as u32).to_le_bytes();
        to.extend_from_slice(&MARK);
        to.extend_from_slice(&length);
        let sum_at = to.len();
        to.extend_from_slice(&[0; 4]);
        to.push(tag);
        to.extend_from_slice(&revision.to_le_bytes());
        to.extend_from_slice(&(session.len() as u32).to_le_bytes());
        to.extend_from_slice(session.as_bytes());
        to.extend_from_slice(memory);
        let sum = checksum(&length, &to[sum_at + 4..]);
        to[sum_at..sum_at + 4].copy_from_slice(&sum.to_le_bytes());
    }

    /// The entry whose frame begins the bytes, and the frame's length.
    fn read(bytes: &'a [u8]) -> Option<(Self, usize)> {
        let rest = bytes.strip_prefix(&MARK)?;
        let (length, rest) = rest.split_first_chunk::<4>()?;
        let (sum, rest) = rest.split_first_chunk::<4>()?;
        let size = u32::from_le_bytes(*length) as usize;
        if !(ENTRY..=LONGEST).contains(&size) {
            return None;
        }
        let payload = rest.get(..size)?;
        if checksum(length, payload) != u32::from_le_bytes(*sum) {
            return None;
        }
        let (&tag, rest) = payload.split_first()?;
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
        Some((entry, FRAME + size))
    }
}

/// What a segment's bytes hold.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Scan<'a> {
    /// The entries, in their order.
    pub entries: Vec<Entry<'a>>,
    /// Where the last good frame ends.
    pub end: usize,
    /// Unreadable bytes before the last good frame.
    pub lost: usize,
    /// Unreadable bytes after it.
    pub torn: usize,
}

/// Reads every frame that is whole, whatever lies between.
pub(super) fn scan(bytes: &[u8], from: usize) -> Scan<'_> {
    let mut found = Scan { end: from.min(bytes.len()), ..Scan::default() };
    let mut at = found.end;
    while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
        if let Some((entry, length)) = Entry::read(rest) {
            found.lost += at - found.end;
            found.entries.push(entry);
            at += length;
            found.end = at;
        } else {
            match next_mark(&rest[1..]) {
                Some(step) => at += 1 + step,
                None => break,
            }
        }
    }
    found.torn = bytes.len() - found.end;
    found
}

fn next_mark(bytes: &[u8]) -> Option<usize> {
    bytes.windows(MARK.len()).position(|window| window == MARK)
}

/// What a segment's first bytes say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Header {
    /// This version reads it.
    Known,
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
    if format > FORMAT { Header::Newer(format) } else { Header::Known }
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

    fn three() -> (Vec<u8>, Vec<usize>) {
        let mut bytes = header(1).to_vec();
        let mut ends = vec![];
        for (session, revision) in [("a", 1), ("b", 1), ("a", 2)] {
            Entry::Put { session, revision, memory: br#"{"episodes":1}"# }.write(&mut bytes);
            ends.push(bytes.len());
        }
        (bytes, ends)
    }

    #[test]
    fn a_log_cut_at_any_byte_gives_every_whole_frame() {
        let (bytes, ends) = three();
        for cut in HEADER..=bytes.len() {
            let found = scan(&bytes[..cut], HEADER);
            let whole: Vec<_> = ends.iter().filter(|end| **end <= cut).collect();
            assert_eq!(found.entries.len(), whole.len(), "cut at {cut}");
            assert_eq!(found.end, whole.last().map_or(HEADER, |end| **end));
            assert_eq!((found.torn, found.lost), (cut - found.end, 0));
        }
    }

    #[test]
    fn a_flipped_bit_anywhere_costs_one_frame_and_no_more() {
        let (bytes, _) = three();
        let whole = scan(&bytes, HEADER).entries;
        for bit in HEADER * 8..bytes.len() * 8 {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let found = scan(&bytes, HEADER);
            assert_eq!(found.entries.len(), 2, "bit {bit}");
            assert!(found.entries.iter().all(|entry| whole.contains(entry)));
            assert!(found.lost + found.torn > 0);
        }
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
            proptest::prop_assert!(found.end + found.torn == bytes.len());
            read_header(&bytes);
        }

        #[test]
        fn what_is_written_is_read(session in ".{1,40}", revision: u64, memory: Vec<u8>) {
            let mut bytes = vec![];
            let entry = Entry::Put { session: &session, revision, memory: &memory };
            entry.write(&mut bytes);
            proptest::prop_assert_eq!(Entry::read(&bytes), Some((entry, bytes.len())));
        }
    }
}
