//! One pass over a text that finds every word that anything built in looks for.

use std::collections::HashMap;
use std::ops::Range;

use aho_corasick::{AhoCorasick, AhoCorasickBuilder, AhoCorasickKind, MatchKind};

/// A word's number in the [`Lexicon`].
pub(crate) type WordId = u16;

/// The start of the word is the start of a run of letters and digits.
const START: u8 = 1;
/// Likewise its end.
const END: u8 = 2;
/// No letter, digit or underscore stands before it.
const EDGE: u8 = 4;

/// Gathers the words before the automaton is built.
#[derive(Debug, Default)]
pub(crate) struct Words {
    texts: Vec<String>,
    by_text: HashMap<String, usize>,
    /// Of each text: the words that it stands for, with what must hold around them.
    wanted: Vec<Vec<(WordId, u8)>>,
    count: WordId,
}

impl Words {
    /// A phrase of a rule: at word boundaries, unless an end is marked with `*`.
    pub(crate) fn phrase(&mut self, phrase: &str) -> WordId {
        let around = if phrase.starts_with('*') { 0 } else { START } | if phrase.ends_with('*') { 0 } else { END };
        self.word(phrase.trim_matches('*'), around)
    }

    /// A word that a regex needs.
    pub(crate) fn needed(&mut self, text: &str, edge: bool) -> WordId {
        self.word(text, if edge { EDGE } else { 0 })
    }

    fn word(&mut self, text: &str, around: u8) -> WordId {
        let text = text.to_ascii_lowercase();
        let at = *self.by_text.entry(text.clone()).or_insert_with(|| {
            self.texts.push(text);
            self.wanted.push(Vec::new());
            self.texts.len() - 1
        });
        if let Some((id, _)) = self.wanted[at].iter().find(|(_, own)| *own == around) {
            return *id;
        }
        let id = self.count;
        self.count += 1;
        self.wanted[at].push((id, around));
        id
    }

    pub(crate) fn finish(self) -> Lexicon {
        let all = self.texts.into_iter().zip(self.wanted);
        let (plain, other): (Vec<_>, Vec<_>) = all.partition(|(text, _)| text.is_ascii());
        Lexicon { plain: Automaton::new(plain), other: Automaton::new(other), count: self.count.into() }
    }
}

/// The automata over all words; those outside ASCII are looked for only in texts that can hold them.
#[derive(Debug)]
pub(crate) struct Lexicon {
    plain: Automaton,
    other: Automaton,
    count: usize,
}

#[derive(Debug)]
struct Automaton {
    words: AhoCorasick,
    /// Of each text of the automaton: where its words stand in `wanted`.
    ranges: Vec<(u32, u32)>,
    wanted: Vec<(WordId, u8)>,
    /// The longest of the texts in bytes.
    longest: usize,
}

impl Automaton {
    fn new(words: Vec<(String, Vec<(WordId, u8)>)>) -> Self {
        let (texts, each): (Vec<_>, Vec<_>) = words.into_iter().unzip();
        let (mut ranges, mut wanted) = (Vec::new(), Vec::new());
        for words in each {
            let start = wanted.len() as u32;
            wanted.extend(words);
            ranges.push((start, wanted.len() as u32));
        }
        let longest = texts.iter().map(String::len).max().unwrap_or(0);
        let words = AhoCorasickBuilder::new()
            .match_kind(MatchKind::Standard)
            .kind(Some(AhoCorasickKind::DFA))
            .build(texts)
            .expect("the built-in words are few and short");
        Self { words, ranges, wanted, longest }
    }

    /// Notes what stands in this piece of a lower-case text.
    fn scan(&self, text: &str, piece: Range<usize>, scan: &mut Scan) {
        let bytes = text.as_bytes();
        for hit in self.words.find_overlapping_iter(&bytes[piece.clone()]) {
            let (from, to) = (piece.start + hit.start(), piece.start + hit.end());
            let (start, end) = self.ranges[hit.pattern().as_usize()];
            for &(id, around) in &self.wanted[start as usize..end as usize] {
                if around == 0 || stands_free(bytes, from, to, around) {
                    scan.note(id, from);
                }
            }
        }
    }
}

/// From the first to the last byte outside ASCII.
fn outside_ascii(text: &str) -> Option<Range<usize>> {
    const BLOCK: usize = 64;
    let blocks = || text.as_bytes().chunks(BLOCK);
    let first = blocks().position(|block| !block.is_ascii())?;
    let last = blocks().rposition(|block| !block.is_ascii())?;
    Some(first * BLOCK..text.len().min((last + 1) * BLOCK))
}

fn holds(bytes: &[u8], letter: &[u8]) -> bool {
    bytes.windows(letter.len()).any(|window| window == letter)
}

fn stands_free(bytes: &[u8], start: usize, end: usize, around: u8) -> bool {
    let before = || start.checked_sub(1).map_or(b' ', |at| bytes[at]);
    (around & START == 0 || is_edge(bytes, start))
        && (around & END == 0 || is_edge(bytes, end))
        && (around & EDGE == 0 || !(before().is_ascii_alphanumeric() || before() == b'_'))
}

/// Whether the characters on both sides of this place do not belong to one word.
fn is_edge(bytes: &[u8], at: usize) -> bool {
    let word = |index: Option<usize>| index.and_then(|index| bytes.get(index)).is_some_and(u8::is_ascii_alphanumeric);
    !(word(at.checked_sub(1)) && word(Some(at)))
}

/// Which words stand in a text, and where.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scan {
    /// Of each word: 0, or one more than its place in `found`.
    slots: Vec<u16>,
    found: Vec<Found>,
    /// The text holds letters that a regex takes for `s` or `k` and a word does not.
    odd: bool,
}

/// The first and the last place of a word.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found {
    pub(crate) id: WordId,
    pub(crate) first: usize,
    pub(crate) last: usize,
}

impl Scan {
    fn note(&mut self, id: WordId, at: usize) {
        let slot = &mut self.slots[usize::from(id)];
        match self.found.get_mut(usize::from(slot.wrapping_sub(1))) {
            Some(found) if *slot > 0 => found.last = found.last.max(at),
            _ => {
                self.found.push(Found { id, first: at, last: at });
                // One per word at most, and words are counted in 16 bits.
                *slot = self.found.len() as u16;
            }
        }
    }

    pub(crate) fn get(&self, id: WordId) -> Option<Found> {
        let slot = self.slots.get(usize::from(id)).copied().unwrap_or(0);
        self.found.get(usize::from(slot.checked_sub(1)?)).copied()
    }

    pub(crate) fn has(&self, id: WordId) -> bool {
        self.slots.get(usize::from(id)).is_some_and(|slot| *slot > 0)
    }

    /// Every word that was found.
    pub(crate) fn found(&self) -> impl Iterator<Item = WordId> {
        self.found.iter().map(|found| found.id)
    }

    /// Whether words say nothing about regexes here; see [`super::need::Need::of`].
    pub(crate) fn is_odd(&self) -> bool {
        self.odd
    }
}

impl Lexicon {
    /// Finds every word.
    pub(crate) fn scan(&self, text: &str) -> Scan {
        let mut scan = Scan { slots: vec![0; self.count], found: Vec::with_capacity(16), odd: false };
        // One case in the text keeps the automaton small.
        let text = text.to_ascii_lowercase();
        self.plain.scan(&text, 0..text.len(), &mut scan);
        if let Some(piece) = outside_ascii(&text) {
            let reach = self.other.longest;
            let piece = piece.start.saturating_sub(reach)..text.len().min(piece.end + reach);
            scan.odd = ["ſ", "\u{212a}"].iter().any(|letter| holds(&text.as_bytes()[piece.clone()], letter.as_bytes()));
            self.other.scan(&text, piece, &mut scan);
        }
        scan
    }

    /// The pass alone, without noting anything; what a benchmark compares with.
    #[cfg(feature = "test-util")]
    pub(crate) fn pass(&self, text: &str) -> usize {
        self.plain.words.find_overlapping_iter(text).count()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_found_where_its_surroundings_allow() {
        let mut words = Words::default();
        let ids = [words.phrase("oom"), words.phrase("rate*"), words.needed("_x", false), words.needed("key", true)];
        let lexicon = words.finish();
        let has = |text: &str| ids.map(|id| lexicon.scan(text).has(id));
        assert_eq!(has("doom in the room, generated"), [false; 4]);
        assert_eq!(has("OOM; rates"), [true, true, false, false]);
        assert_eq!(has("_key a_x"), [false, false, true, false]);
        assert_eq!(has("-KEY"), [false, false, false, true]);
    }

    #[test]
    fn the_first_and_the_last_place_are_kept() {
        let mut words = Words::default();
        let id = words.phrase("a");
        let found = words.finish().scan("a b a é a.").get(id).unwrap();
        assert_eq!((found.first, found.last), (0, 9));
    }
}
