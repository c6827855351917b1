//! What differs between two occurrences of one failure.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

/// The definition; [`read`] does the same for texts of ASCII, many times as fast.
static VARIES: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?i)https?://\S+",
        r"|[\w.~-]*(?:/|\\)[\w./\\~@%+-]+",
        r"|\b[\w-]*\d[\w.:-]*\b",
        r"|\b[0-9a-f]{8,}\b",
        r"|\b(?:mon|tue|wed|thu|fri|sat|sun|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\b",
    ))
    .expect("a constant")
});

const DATES: [&[u8; 3]; 19] = [
    b"mon", b"tue", b"wed", b"thu", b"fri", b"sat", b"sun", b"jan", b"feb", b"mar", b"apr", b"may", b"jun", b"jul",
    b"aug", b"sep", b"oct", b"nov", b"dec",
];

/// Ids, numbers, paths, hashes and times, in their order.
pub(crate) fn varying(text: &str) -> Vec<Range<usize>> {
    if text.is_ascii() { read(text.as_bytes()) } else { VARIES.find_iter(text).map(|found| found.range()).collect() }
}

fn read(text: &[u8]) -> Vec<Range<usize>> {
    let mut all = Vec::new();
    let mut at = 0;
    while at < text.len() {
        match end_of_varying(text, at) {
            Some(end) => {
                all.push(at..end);
                at = end;
            }
            None => at += 1,
        }
    }
    all
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// The end of the run that starts here.
fn run(text: &[u8], at: usize, belongs: impl Fn(u8) -> bool) -> usize {
    text[at..].iter().position(|byte| !belongs(*byte)).map_or(text.len(), |length| at + length)
}

fn is_boundary(text: &[u8], at: usize) -> bool {
    let word = |at: Option<usize>| at.and_then(|at| text.get(at)).is_some_and(|byte| is_word(*byte));
    word(at.checked_sub(1)) != word(Some(at))
}

/// Where a varying part ends that starts here; the branches in the order of the definition.
fn end_of_varying(text: &[u8], at: usize) -> Option<usize> {
    let url = || {
        let rest = &text[at..];
        let scheme: &[u8] =
            if rest.get(4).is_some_and(|byte| byte.eq_ignore_ascii_case(&b's')) { b"https://" } else { b"http://" };
        let named = rest.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
        let from = at + scheme.len();
        named.then(|| run(text, from, |byte| !matches!(byte, b'\t'..=b'\r' | b' '))).filter(|end| *end > from)
    };
    let path = || {
        let slash = run(text, at, |byte| is_word(byte) || matches!(byte, b'.' | b'~' | b'-'));
        let from = slash + 1;
        if !matches!(text.get(slash), Some(b'/' | b'\\')) {
            return None;
        }
        let end = run(text, from, |byte| {
            is_word(byte) || matches!(byte, b'.' | b'/' | b'\\' | b'~' | b'@' | b'%' | b'+' | b'-')
        });
        Some(end).filter(|end| *end > from)
    };
    url().or_else(path).or_else(|| if is_boundary(text, at) { number_or_word(text, at) } else { None })
}

fn number_or_word(text: &[u8], at: usize) -> Option<usize> {
    let numbered = run(text, at, |byte| is_word(byte) || byte == b'-');
    if let Some(digit) = text[at..numbered].iter().rposition(u8::is_ascii_digit) {
        let from = at + digit + 1;
        let end = run(text, from, |byte| is_word(byte) || matches!(byte, b'.' | b':' | b'-'));
        // The word that the digit stands in ends somewhere, so there is a boundary.
        return (from..=end).rev().find(|end| is_boundary(text, *end));
    }
    let word = run(text, at, is_word);
    let letters = &text[at..run(text, at, |byte| byte.is_ascii_alphabetic())];
    let whole = letters.len() == word - at && !letters.is_empty();
    let hash = letters.len() >= 8 && letters.iter().all(u8::is_ascii_hexdigit);
    let date = letters.get(..3).is_some_and(|start| DATES.iter().any(|date| start.eq_ignore_ascii_case(*date)));
    (whole && (hash || date)).then_some(word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn assert_same(text: &str) {
        let want: Vec<_> = VARIES.find_iter(text).map(|found| found.range()).collect();
        assert_eq!(varying(text), want, "{text:?}");
    }

    #[test]
    fn both_ways_to_read_agree_on_real_failures() {
        for line in include_str!("../../tests/data/corpus/dev.jsonl").lines() {
            line.split("\\n").for_each(assert_same);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn both_ways_to_read_agree_on_any_text(
            parts in prop::collection::vec("[a-fx-zA-F0-9_.:~@%+/\\\\ -]{0,6}|https?://|\\.\\./|[ -~]{0,4}|Monday|jan|deadbeef", 0..12)
        ) {
            assert_same(&parts.concat());
        }
    }
}
