//! A session at rest in few bytes: most of a fleet's sessions rest most of the time.

use super::history::Fragile;
use super::{History, SessionMemory, Strikes};
use crate::failure::Timestamp;
use crate::policy::machine::Fence;
use crate::policy::{Proof, Verdict};

/// The memory of a session that rests with nothing but a few numbers to remember: a sixth of its JSON, and
/// nothing allocated.
///
/// It lives in this process only; nothing of the kind is ever written.
///
/// ```
/// use backstop::policy::session::SessionMemory;
///
/// let memory = SessionMemory::default();
/// let compact = memory.compact().expect("it holds no episode and no verdict");
/// assert_eq!(compact.memory(), memory);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compact {
    length: u8,
    bytes: [u8; ROOM],
}

/// Enough for two or three past recoveries; with the length it makes up four words beside another enum's mark.
const ROOM: usize = 30;

const CALLED_FOR_WINDOW: u64 = 1;
const HAS_FRAGILE: u64 = 2;
const HAS_STRIKES: u64 = 4;
const CALLED_FOR_STRIKES: u64 = 8;
/// The last verdict's code stands above the marks.
const VERDICT_AT: u32 = 4;

impl SessionMemory {
    /// The same in few bytes; `None` if there is an episode, a verdict with words of its own, or too much.
    pub fn compact(&self) -> Option<Compact> {
        if self.episode.is_some() || self.kept.is_some() {
            return None;
        }
        let History { recoveries, called_for_window, strikes, fragile } = &self.history;
        let mark = |set: bool, mark: u64| if set { mark } else { 0 };
        let marks = mark(*called_for_window, CALLED_FOR_WINDOW)
            | mark(fragile.is_some(), HAS_FRAGILE)
            | mark(strikes.is_some(), HAS_STRIKES)
            | mark(strikes.as_ref().is_some_and(|strikes| strikes.called), CALLED_FOR_STRIKES)
            | verdict_code(self.ended.as_ref())? << VERDICT_AT;
        let mut to = Writer::default();
        for number in [marks, self.episodes, self.fence.seq, self.fence.epoch.into()] {
            to.number(number);
        }
        to.times(recoveries.iter());
        if let Some(fragile) = fragile {
            to.number(fragile.fingerprint);
            to.time(fragile.until);
        }
        if let Some(strikes) = strikes {
            to.number(strikes.fingerprint);
            to.times(strikes.at.iter());
        }
        let mut bytes = [0; ROOM];
        bytes.get_mut(..to.bytes.len())?.copy_from_slice(&to.bytes);
        Some(Compact { length: u8::try_from(to.bytes.len()).ok()?, bytes })
    }
}

impl Compact {
    /// The memory itself.
    pub fn memory(&self) -> SessionMemory {
        let mut from = Reader { bytes: &self.bytes[..self.length.into()], last: 0 };
        let marks = from.number();
        let is_marked = |mark: u64| marks & mark != 0;
        let episodes = from.number();
        let (seq, epoch) = (from.number(), from.number());
        let recoveries = from.times();
        let fragile = is_marked(HAS_FRAGILE).then(|| Fragile { fingerprint: from.number(), until: from.time() });
        let strikes = is_marked(HAS_STRIKES).then(|| Strikes {
            fingerprint: from.number(),
            at: from.times(),
            called: is_marked(CALLED_FOR_STRIKES),
        });
        SessionMemory {
            episodes,
            fence: Fence { seq, epoch: u32::try_from(epoch).unwrap_or(u32::MAX) },
            history: History { recoveries, called_for_window: is_marked(CALLED_FOR_WINDOW), strikes, fragile },
            episode: None,
            kept: None,
            ended: verdict_of(marks >> VERDICT_AT),
        }
    }
}

/// Verdicts that say nothing but what they are; others have no code.
fn verdict_code(verdict: Option<&Verdict>) -> Option<u64> {
    match verdict {
        None => Some(0),
        Some(Verdict::Recovered(Proof::Verified)) => Some(1),
        Some(Verdict::Recovered(Proof::Assumed)) => Some(2),
        Some(Verdict::Cancelled) => Some(3),
        Some(
            Verdict::Aborted { .. } | Verdict::Exhausted { .. } | Verdict::Escalated { .. } | Verdict::Unhandled(_),
        ) => None,
    }
}

fn verdict_of(code: u64) -> Option<Verdict> {
    match code {
        1 => Some(Verdict::Recovered(Proof::Verified)),
        2 => Some(Verdict::Recovered(Proof::Assumed)),
        3 => Some(Verdict::Cancelled),
        _ => None,
    }
}

/// Numbers as seven bits a byte, the lowest first; times as the way from the one before.
#[derive(Default)]
struct Writer {
    bytes: Vec<u8>,
    last: u64,
}

impl Writer {
    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    /// A clock may go back, so the way has a sign, which is its lowest bit.
    fn time(&mut self, time: Timestamp) {
        let way = time.as_millis().wrapping_sub(self.last).cast_signed();
        self.number((way << 1 ^ way >> 63).cast_unsigned());
        self.last = time.as_millis();
    }

    fn times<'a>(&mut self, times: impl ExactSizeIterator<Item = &'a Timestamp>) {
        self.number(times.len() as u64);
        times.for_each(|time| self.time(*time));
    }
}

/// Reads what [`Writer`] wrote; past its end everything is nought.
struct Reader<'a> {
    bytes: &'a [u8],
    last: u64,
}

impl Reader<'_> {
    fn number(&mut self) -> u64 {
        let (mut number, mut shift) = (0, 0);
        while let Some((byte, rest)) = self.bytes.split_first() {
            self.bytes = rest;
            number |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 || shift >= u64::BITS {
                break;
            }
        }
        number
    }

    fn time(&mut self) -> Timestamp {
        let way = self.number();
        let way = (way >> 1) ^ (way & 1).wrapping_neg();
        self.last = self.last.wrapping_add(way);
        Timestamp::from_millis(self.last)
    }

    fn times<T: FromIterator<Timestamp>>(&mut self) -> T {
        let count = self.number();
        (0..count).map(|_| self.time()).collect()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn time() -> impl Strategy<Value = Timestamp> {
        prop_oneof![any::<u64>(), 1_700_000_000_000..1_800_000_000_000_u64].prop_map(Timestamp::from_millis)
    }

    /// Mostly as small as such numbers are, so that most memories have room.
    fn number() -> impl Strategy<Value = u64> {
        prop_oneof![9 => 0..10_000_u64, 1 => any::<u64>()]
    }

    fn times() -> impl Strategy<Value = std::collections::VecDeque<Timestamp>> {
        proptest::collection::vec(time(), 0..3).prop_map(Into::into)
    }

    proptest! {
        #[test]
        fn every_resting_memory_comes_back_as_it_was(
            (episodes, seq, epoch) in (number(), number(), any::<u16>()),
            (recoveries, called_for_window) in (times(), any::<bool>()),
            fragile in proptest::option::of((any::<u64>(), time())),
            strikes in proptest::option::of((any::<u64>(), times(), any::<bool>())),
            ended in 0..4_u64,
        ) {
            let fragile = fragile.map(|(fingerprint, until)| Fragile { fingerprint, until });
            let strikes = strikes.map(|(fingerprint, at, called)| Strikes { fingerprint, at, called });
            let history = History { recoveries, called_for_window, strikes, fragile };
            let fence = Fence { seq, epoch: epoch.into() };
            let memory = SessionMemory {
                episodes, fence, history, ended: verdict_of(ended), ..SessionMemory::default()
            };
            if let Some(compact) = memory.compact() {
                prop_assert_eq!(compact.memory(), memory);
            }
        }
    }

    #[test]
    fn one_past_recovery_of_any_failure_has_room() {
        let at = Timestamp::from_millis(1_764_550_000_000);
        let until = at + std::time::Duration::from_secs(600);
        let history = History {
            recoveries: [at].into(),
            fragile: Some(Fragile { fingerprint: u64::MAX, until }),
            ..History::default()
        };
        let ended = Some(Verdict::Recovered(Proof::Assumed));
        let memory = SessionMemory { episodes: 1, history, ended, ..SessionMemory::default() };
        assert_eq!(memory.compact().unwrap().memory(), memory);
        assert_eq!(size_of::<Compact>(), 31);
    }

    #[test]
    fn what_has_words_or_a_long_past_is_not_compact() {
        let ended = Some(Verdict::Aborted { reason: "enough".into() });
        assert_eq!(SessionMemory { ended, ..SessionMemory::default() }.compact(), None);
        let recoveries = (0..30).map(|n| Timestamp::from_millis(n * 1_000_000)).collect();
        let history = History { recoveries, ..History::default() };
        assert_eq!(SessionMemory { history, ..SessionMemory::default() }.compact(), None);
    }
}
