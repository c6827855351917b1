use std::ops::Range;
use std::sync::OnceLock;

use regex::{Captures, Regex};
use regex_syntax::hir::{Class, Hir, HirKind, Look};

use super::lexicon::{Scan, WordId, Words};
use super::need::Need;

/// A built-in regex that is searched no further than it can match.
///
/// Two compiled forms agree on every text: word boundaries and classes of Unicode defeat the fast
/// automata, and where no letter, digit or blank stands outside ASCII, those of ASCII mean the same.
/// The words that every match must hold (see [`Need`]), found in one pass for all regexes, tell
/// whether there can be a match, and where.
#[derive(Debug)]
pub(crate) struct Search {
    source: String,
    ascii: OnceLock<Regex>,
    full: OnceLock<Regex>,
    need: Option<Needed>,
}

#[derive(Debug)]
struct Needed {
    words: Vec<WordId>,
    before: Option<usize>,
    after: Option<usize>,
    /// No match holds a line feed or knows the ends of the text.
    in_one_line: bool,
}

impl Search {
    /// A constant that is searched by itself.
    pub(crate) fn bare(source: &str) -> Self {
        Self { source: source.to_owned(), ascii: OnceLock::new(), full: OnceLock::new(), need: None }
    }

    /// A constant whose words are looked for together with all others.
    pub(crate) fn new(source: &str, words: &mut Words) -> Self {
        let hir = regex_syntax::parse(source).unwrap_or_else(|error| panic!("a built-in regex must parse: {error}"));
        let need = Need::of(&hir).map(|need| Needed {
            words: need.words.iter().map(|word| words.needed(&word.text, word.edge)).collect(),
            before: need.before,
            after: need.after,
            in_one_line: stays_in_line(&hir),
        });
        Self { need, ..Self::bare(source) }
    }

    /// Where in this text, over which the scan went, a match can stand; `None` if there can be none.
    fn window(&self, text: &str, scan: &Scan) -> Option<Range<usize>> {
        let whole = 0..text.len();
        let Some(need) = self.need.as_ref().filter(|_| !scan.is_odd()) else { return Some(whole) };
        let mut places: Option<(usize, usize)> = None;
        for found in need.words.iter().filter_map(|word| scan.get(*word)) {
            let (first, last) = places.unwrap_or((found.first, found.last));
            places = Some((first.min(found.first), last.max(found.last)));
        }
        let (first, last) = places.filter(|(first, _)| *first < text.len())?;
        let last = last.min(text.len());
        let start = match need.before {
            Some(before) => floor(text, first.saturating_sub(before)),
            None if need.in_one_line => text[..floor(text, first)].rfind('\n').map_or(0, |at| at + 1),
            None => 0,
        };
        let end = match need.after {
            // What stands right after a match decides about boundaries.
            Some(after) => ceil(text, last.saturating_add(after).saturating_add(8)),
            None if need.in_one_line => {
                let last = ceil(text, last);
                text[last..].find('\n').map_or(text.len(), |at| last + at)
            }
            None => text.len(),
        };
        Some(start..end)
    }

    /// The form for this piece of a text.
    fn form(&self, text: &str, range: &Range<usize>) -> &Regex {
        let seen = text[..range.start].chars().next_back().map_or(0, char::len_utf8);
        if is_plain(&text[range.start - seen..range.end]) {
            self.ascii.get_or_init(|| constant(&in_ascii(&self.source)))
        } else {
            self.full.get_or_init(|| constant(&self.source))
        }
    }

    /// Whether a text matches that has not been scanned.
    pub(crate) fn is_match(&self, text: &str) -> bool {
        self.form(text, &(0..text.len())).is_match(text)
    }

    /// The matches in a text that has not been scanned.
    pub(crate) fn captures_iter<'t>(&self, text: &'t str) -> impl Iterator<Item = Captures<'t>> {
        self.form(text, &(0..text.len())).captures_iter(text)
    }

    /// Replaces every match in a text that has not been scanned.
    pub(crate) fn replace_all<'t>(&self, text: &'t str, by: impl regex::Replacer) -> std::borrow::Cow<'t, str> {
        self.form(text, &(0..text.len())).replace_all(text, by)
    }

    /// The words of which a match holds one; `None`: it can do without any.
    pub(crate) fn words(&self) -> Option<&[WordId]> {
        self.need.as_ref().map(|need| &*need.words)
    }

    /// The first match's start in a scanned text.
    pub(crate) fn find(&self, text: &str, scan: &Scan) -> Option<usize> {
        let window = self.window(text, scan)?;
        Some(self.form(text, &window).find_at(&text[..window.end], window.start)?.start())
    }

    /// The first match's start by the definition alone.
    #[cfg(test)]
    pub(crate) fn find_in_full(&self, text: &str) -> Option<usize> {
        self.full.get_or_init(|| constant(&self.source)).find(text).map(|found| found.start())
    }

    /// Whether a scanned text matches.
    pub(crate) fn is_found(&self, text: &str, scan: &Scan) -> bool {
        self.window(text, scan)
            .is_some_and(|window| self.form(text, &window).is_match_at(&text[..window.end], window.start))
    }

    /// Every match in a scanned text.
    pub(crate) fn captures<'t>(&self, text: &'t str, scan: &Scan) -> impl Iterator<Item = Captures<'t>> {
        let window = self.window(text, scan);
        let mut at = window.as_ref().map_or(0, |window| window.start);
        let form = window.as_ref().map(|window| self.form(text, window));
        std::iter::from_fn(move || {
            let end = window.as_ref()?.end;
            // No built-in regex matches the empty text, so the search moves on.
            let found = form?.captures_at(&text[..end], at).filter(|found| !found[0].is_empty())?;
            at = found.get(0)?.end();
            Some(found)
        })
    }
}

fn floor(text: &str, mut at: usize) -> usize {
    at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn ceil(text: &str, mut at: usize) -> usize {
    at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at += 1;
    }
    at
}

fn constant(source: &str) -> Regex {
    Regex::new(source).unwrap_or_else(|error| panic!("a built-in regex must compile: {error}"))
}

/// Whether both forms of every regex agree on this text: what it holds outside ASCII is punctuation
/// that belongs to no class but the negated ones.
pub(crate) fn is_plain(text: &str) -> bool {
    let mut rest = text;
    while let Some(at) = first_outside_ascii(rest) {
        let Some(ch) = rest[at..].chars().next().filter(|ch| is_punctuation(*ch)) else { return false };
        rest = &rest[at + ch.len_utf8()..];
    }
    true
}

fn first_outside_ascii(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let chunk = bytes.chunks(64).position(|chunk| !chunk.is_ascii())? * 64;
    Some(chunk + bytes[chunk..].iter().position(|byte| !byte.is_ascii())?)
}

fn is_punctuation(ch: char) -> bool {
    matches!(ch,
        '\u{b7}' | '«' | '»' | '\u{2010}'..='\u{2027}' | '\u{2190}'..='\u{245f}' | '\u{2500}'..='\u{27bf}'
        | '\u{3001}'..='\u{3003}' | '\u{3008}'..='\u{3011}' | '\u{ff01}' | '\u{ff08}' | '\u{ff09}' | '\u{ff0c}'
        | '\u{ff1a}' | '\u{ff1b}' | '\u{fffd}')
}

/// The same regex for plain texts; the classes nest, so they stand inside brackets too.
pub(crate) fn in_ascii(source: &str) -> String {
    let mut out = String::with_capacity(source.len() * 2);
    let mut chars = source.chars();
    while let Some(ch) = chars.next() {
        let escaped = if ch == '\\' { chars.next() } else { None };
        match escaped {
            Some('b') => out.push_str(r"(?-u:\b)"),
            Some('w') => out.push_str("[0-9A-Za-z_]"),
            Some('W') => out.push_str("[^0-9A-Za-z_]"),
            Some('d') => out.push_str("[0-9]"),
            Some('D') => out.push_str("[^0-9]"),
            Some('s') => out.push_str(r"[\t-\r ]"),
            Some('S') => out.push_str(r"[^\t-\r ]"),
            other => {
                out.push(ch);
                out.extend(other);
            }
        }
    }
    out
}

/// Whether no match holds a line feed, nor depends on where the text as a whole starts or ends.
fn stays_in_line(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Empty => true,
        HirKind::Literal(literal) => !literal.0.contains(&b'\n'),
        HirKind::Class(Class::Unicode(class)) => {
            class.iter().all(|range| !(range.start()..=range.end()).contains(&'\n'))
        }
        HirKind::Class(Class::Bytes(_)) => false,
        HirKind::Look(look) => !matches!(look, Look::Start | Look::End),
        HirKind::Repetition(repetition) => stays_in_line(&repetition.sub),
        HirKind::Capture(capture) => stays_in_line(&capture.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => parts.iter().all(stays_in_line),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_find_the_same_in_plain_text() {
        let text = "a-b \x0b\x1c 12:34 (x_1)\t`q`\n\\w e…x ·7→";
        assert!(is_plain(text));
        for source in
            [r"\b\w+\b", r"[\w.-]+", r"[^\s:]+", r"\W{2,}", r"\S+\s", r"[\s\S]\d", r"\\w", r"(?m)^\W*\w", r"\D+", ".+"]
        {
            let found = |regex: &str| constant(regex).find_iter(text).map(|found| found.range()).collect::<Vec<_>>();
            assert_eq!(found(&in_ascii(source)), found(source), "{source}");
        }
    }

    #[test]
    fn punctuation_belongs_to_no_class() {
        let class = Regex::new(r"[\w\s\d]").unwrap();
        for ch in ('\u{80}'..=char::MAX).filter(|ch| is_punctuation(*ch)) {
            assert!(!class.is_match(&ch.to_string()), "{ch:?}");
        }
    }

    #[test]
    fn letters_outside_ascii_still_belong_to_words() {
        assert!(!Search::bare(r"\berror\b").is_match("éerror"));
        assert!(Search::bare(r"\berror\b").is_match("é error"));
    }

    #[test]
    fn a_window_holds_every_match() {
        let mut words = Words::default();
        let searches: Vec<Search> = [
            r"(?i)\b(?:no|out of) (?:\w+ )?capacity\b",
            r"(?im)^[\w.]{0,80}error\b[^\n]{0,5}",
            r"(?i)\A(?:error: )?gone\.?(?:\n|\z)",
            r"(?i)ask \d{1,3}\b",
        ]
        .iter()
        .map(|source| Search::new(source, &mut words))
        .collect();
        let lexicon = words.finish();
        for text in [
            "no GPU Capacity",
            "x\ny Error and more\nan.Error:",
            "gone",
            "gone.\n",
            "Error: gone",
            "aſk 12",
            "as\u{212a} 123",
            "ask 123é ask 12",
            &format!("{}out of capacity{}", "é ".repeat(90), " x".repeat(90)),
        ] {
            for search in &searches {
                let full = constant(&search.source);
                let scan = lexicon.scan(text);
                let want: Vec<_> = full.find_iter(text).map(|found| found.range()).collect();
                let got: Vec<_> = search.captures(text, &scan).map(|found| found.get(0).unwrap().range()).collect();
                assert_eq!(got, want, "{} in {text}", search.source);
                assert_eq!(search.find(text, &scan), want.first().map(|range| range.start));
                assert_eq!(search.is_found(text, &scan), !want.is_empty());
            }
        }
    }
}
