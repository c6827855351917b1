//! What a text must hold for a regex to match anywhere in it, read from the regex itself.

use regex_syntax::hir::{Class, Hir, HirKind, Look};

/// How many words one condition may have; past it, what was gathered so far must do.
const MAX_WORDS: usize = 128;
/// The largest class that is spelt out.
const MAX_CLASS: u32 = 24;

/// A necessary condition: every match holds at least one of the words, in whatever ASCII case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Need {
    pub(crate) words: Vec<Word>,
    /// A match starts at most this many bytes before the start of a word; `None`: anywhere.
    pub(crate) before: Option<usize>,
    /// A match ends at most this many bytes after the start of a word.
    pub(crate) after: Option<usize>,
}

/// One word of a condition, in lower case.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Word {
    pub(crate) text: String,
    /// No letter, digit or underscore of ASCII stands before it.
    pub(crate) edge: bool,
}

impl Need {
    /// The best condition there is; `None` if the regex can match without any fixed word.
    ///
    /// `ſ` and `K` (Kelvin) are forms of `s` and `k` that a word does not name: a text that holds one
    /// of them is outside the condition.
    pub(crate) fn of(hir: &Hir) -> Option<Self> {
        if let Some(words) = spelt(hir).and_then(|words| reduced(words, false)) {
            let longest = longest(hir);
            return Some(Self { words, before: longest, after: longest });
        }
        match hir.kind() {
            HirKind::Capture(capture) => Self::of(&capture.sub),
            HirKind::Repetition(repetition) if repetition.min > 0 => {
                let inner = Self::of(&repetition.sub)?;
                Some(if repetition.max == Some(1) { inner } else { Self { after: None, ..inner } })
            }
            HirKind::Alternation(branches) => branches.iter().map(Self::of).reduce(|one, other| {
                let (mut one, other) = (one?, other?);
                one.words.extend(other.words);
                one.words.sort();
                one.words.dedup();
                let max = |one: Option<usize>, other: Option<usize>| Some(one?.max(other?));
                let (before, after) = (max(one.before, other.before), max(one.after, other.after));
                (one.words.len() <= MAX_WORDS).then_some(Self { words: one.words, before, after })
            })?,
            HirKind::Concat(parts) => Self::of_concat(parts),
            HirKind::Repetition(_) | HirKind::Empty | HirKind::Literal(_) | HirKind::Class(_) | HirKind::Look(_) => {
                None
            }
        }
    }

    fn of_concat(parts: &[Hir]) -> Option<Self> {
        let reach = |parts: &[Hir]| parts.iter().map(longest).sum::<Option<usize>>();
        let mut best: Option<Self> = None;
        let mut consider = |from: usize, to: usize, words: Option<Vec<Word>>, inner: Option<(usize, usize)>| {
            let Some(words) = words else { return };
            let (own_before, own_after) = match inner {
                Some((before, after)) => {
                    (Some(before).filter(|own| *own < usize::MAX), Some(after).filter(|own| *own < usize::MAX))
                }
                None => (reach(&parts[from..to]), reach(&parts[from..to])),
            };
            let sum = |one: Option<usize>, other: Option<usize>| Some(one? + other?);
            let found = Self {
                words,
                before: sum(reach(&parts[..from]), own_before),
                after: sum(own_after, reach(&parts[to..])),
            };
            if best.as_ref().is_none_or(|best| found.worth() > best.worth()) {
                best = Some(found);
            }
        };
        let mut from = 0;
        let mut run = vec![String::new()];
        let mut edge = false;
        for (at, part) in parts.iter().enumerate() {
            let next = spelt(part).map(|words| product(&run, &words));
            match next {
                Some(Some(longer)) => {
                    if is_edge(part) && run.iter().all(String::is_empty) {
                        edge = true;
                    }
                    run = longer;
                }
                too_many => {
                    consider(from, at, reduced(std::mem::take(&mut run), edge), None);
                    edge = false;
                    match (too_many, spelt(part)) {
                        (Some(None), Some(words)) => (run, from) = (words, at),
                        _ => {
                            if let Some(inner) = Self::of(part) {
                                let reach = (inner.before.unwrap_or(usize::MAX), inner.after.unwrap_or(usize::MAX));
                                consider(at, at + 1, Some(inner.words), Some(reach));
                            }
                            (run, from) = (vec![String::new()], at + 1);
                        }
                    }
                }
            }
        }
        consider(from, parts.len(), reduced(run, edge), None);
        best
    }

    /// The longer the shortest word and the fewer, the rarer; an edge is worth a letter.
    fn worth(&self) -> (usize, std::cmp::Reverse<usize>) {
        let shortest = self.words.iter().map(|word| word.text.len() + usize::from(word.edge)).min().unwrap_or(0);
        (shortest.min(6), std::cmp::Reverse(self.words.len()))
    }
}

fn is_edge(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Look(look) => matches!(look, Look::WordUnicode | Look::WordAscii),
        HirKind::Capture(capture) => is_edge(&capture.sub),
        _ => false,
    }
}

/// The longest match in bytes.
fn longest(hir: &Hir) -> Option<usize> {
    hir.properties().maximum_len()
}

/// Every text that this can match, in lower case, if they are few; what stands around is ignored.
fn spelt(hir: &Hir) -> Option<Vec<String>> {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => Some(vec![String::new()]),
        // A text may be scanned with blanks for its line feeds.
        HirKind::Literal(literal) if literal.0.contains(&b'\n') => None,
        HirKind::Literal(literal) => Some(vec![std::str::from_utf8(&literal.0).ok()?.to_ascii_lowercase()]),
        HirKind::Class(Class::Unicode(class)) => {
            let size = |range: &regex_syntax::hir::ClassUnicodeRange| u32::from(range.end()) - u32::from(range.start());
            if class.iter().map(|range| size(range).saturating_add(1)).fold(0, u32::saturating_add) > MAX_CLASS {
                return None;
            }
            let mut all: Vec<String> = class
                .iter()
                .flat_map(|range| range.start()..=range.end())
                .filter(|ch| !matches!(ch, 'ſ' | '\u{212a}'))
                .map(|ch| ch.to_ascii_lowercase().to_string())
                .collect();
            all.sort();
            all.dedup();
            (!all.is_empty() && all.iter().all(|text| text != "\n")).then_some(all)
        }
        HirKind::Class(Class::Bytes(_)) => None,
        HirKind::Capture(capture) => spelt(&capture.sub),
        HirKind::Repetition(repetition) => {
            let once = spelt(&repetition.sub)?;
            let mut all = Vec::new();
            let mut run = vec![String::new()];
            for count in 0..=repetition.max.filter(|max| *max <= 8)? {
                if count >= repetition.min {
                    all.extend(run.iter().cloned());
                }
                run = product(&run, &once)?;
            }
            (all.len() <= MAX_WORDS).then_some(all)
        }
        HirKind::Concat(parts) => parts.iter().try_fold(vec![String::new()], |run, part| product(&run, &spelt(part)?)),
        HirKind::Alternation(branches) => {
            let mut all = Vec::new();
            for branch in branches {
                all.extend(spelt(branch)?);
            }
            (all.len() <= MAX_WORDS).then_some(all)
        }
    }
}

fn product(one: &[String], other: &[String]) -> Option<Vec<String>> {
    (one.len() * other.len() <= MAX_WORDS)
        .then(|| one.iter().flat_map(|start| other.iter().map(move |end| format!("{start}{end}"))).collect())
}

/// Without those that hold another one; `None` if one of them is empty.
fn reduced(mut texts: Vec<String>, edge: bool) -> Option<Vec<Word>> {
    if texts.is_empty() || texts.iter().any(String::is_empty) {
        return None;
    }
    texts.sort_by_key(String::len);
    let edge = edge && texts.iter().all(|text| text.starts_with(|ch: char| ch.is_ascii_alphanumeric() || ch == '_'));
    let mut words: Vec<Word> = Vec::new();
    for text in texts {
        let known = |word: &Word| if edge { text.starts_with(&word.text) } else { text.contains(&word.text) };
        if !words.iter().any(known) {
            words.push(Word { text, edge });
        }
    }
    Some(words)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn words(regex: &str) -> Option<Vec<String>> {
        let need = Need::of(&regex_syntax::parse(regex).unwrap())?;
        let mut words: Vec<_> =
            need.words.iter().map(|word| format!("{}{}", if word.edge { "|" } else { "" }, word.text)).collect();
        words.sort();
        Some(words)
    }

    #[test]
    fn the_rarest_fixed_part_is_needed() {
        assert_eq!(words(r"(?i)\b(?:SK|pk)-[a-z]{12}").unwrap(), ["|pk-", "|sk-"]);
        assert_eq!(words(r"\d+ (?:errors?|failures) of \w+").unwrap(), [" error of ", " errors of ", " failures of "]);
        assert_eq!(words(r"\w+x?").as_deref(), None);
        assert_eq!(words(r"foo|\d+").as_deref(), None);
        assert_eq!(words(r"(?:foo|bars?)+\d").unwrap(), ["bar", "foo"]);
    }

    #[test]
    fn a_match_reaches_no_further_than_told() {
        let need = Need::of(&regex_syntax::parse(r"[^\n]{0,3}needle\d{2}").unwrap()).unwrap();
        // A class of Unicode takes four bytes a character at most.
        assert_eq!((need.before, need.after), (Some(12 + 6), Some(6 + 8)));
        assert_eq!(Need::of(&regex_syntax::parse(r"\w*needle").unwrap()).unwrap().before, None);
    }
}
