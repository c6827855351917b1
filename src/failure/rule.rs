use std::collections::HashMap;
use std::sync::Arc;

use super::evidence::Evidence;
use super::facts::{Facts, Overrides};
use super::lexicon::{Scan, WordId, Words};
use super::search::Search;
use super::{Category, Kind};

/// One piece of built-in knowledge: how a failure speaks, and what it then is.
///
/// A rule matches if one of its phrases, regexes or codes is in the evidence and none of its
/// `unless` phrases is. With `also`, one of those phrases must be there besides; with `statuses`
/// and nothing else, the status alone decides.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rule {
    /// Unique; the `pattern` of a [`super::RecoveryError`].
    pub(crate) name: &'static str,
    pub(crate) kind: &'static Kind,
    /// The higher wins; see [`super::tables`] for the ranks.
    pub(crate) rank: u16,
    /// Lower-case literals, found at word boundaries unless an end is marked with `*`.
    pub(crate) phrases: &'static [&'static str],
    /// Case-insensitive, over the lines of the evidence; looked at only if its hint is found. The
    /// hint is a phrase; `""` always looks.
    pub(crate) regexes: &'static [(&'static str, &'static str)],
    /// Machine words (types, codes, names, reasons), lower-case, compared whole.
    pub(crate) codes: &'static [&'static str],
    pub(crate) statuses: &'static [u16],
    pub(crate) also: &'static [&'static str],
    pub(crate) unless: &'static [&'static str],
    pub(crate) over: Overrides,
    /// A text (or a JSON value) that this rule must match and win.
    #[cfg_attr(not(test), expect(dead_code, reason = "run as tests"))]
    pub(crate) yes: &'static str,
    /// One that it must not match.
    #[cfg_attr(not(test), expect(dead_code, reason = "run as tests"))]
    pub(crate) no: &'static str,
}

impl Rule {
    /// A rule without conditions, to be filled.
    pub(crate) const BASE: Self = Self {
        name: "",
        kind: &Kind::Other,
        rank: 0,
        phrases: &[],
        regexes: &[],
        codes: &[],
        statuses: &[],
        also: &[],
        unless: &[],
        over: Overrides::NONE,
        yes: "",
        no: "",
    };

    pub(crate) fn category(&self) -> Category {
        self.over.category.or(self.kind.usual_category()).unwrap_or(Category::SessionError)
    }

    pub(crate) fn facts(&self) -> Facts {
        self.over.over(Facts::of(self.kind))
    }

    /// Whether nothing but the status is asked.
    pub(crate) fn is_only_status(&self) -> bool {
        self.phrases.is_empty() && self.regexes.is_empty() && self.codes.is_empty()
    }
}

/// Every built-in rule, the higher rank first, with an index from words, codes and statuses to them.
#[derive(Debug)]
pub(crate) struct RuleSet {
    rules: Vec<Compiled>,
    /// Of each word: the rules that may match where it stands.
    by_word: Vec<Vec<u16>>,
    by_code: HashMap<&'static str, Vec<u16>>,
    /// Rules that a status alone decides.
    by_status: HashMap<u16, Vec<u16>>,
    /// Rules with a regex that can do without any word.
    always: Candidates,
    /// Rules with a regex without a hint: candidates where words say nothing about regexes.
    unhinted: Candidates,
}

#[derive(Debug)]
struct Compiled {
    rule: &'static Rule,
    name: Arc<str>,
    phrases: Vec<WordId>,
    regexes: Vec<(Option<WordId>, Search)>,
    also: Vec<WordId>,
    unless: Vec<WordId>,
}

/// Where a matching rule found what it looked for.
#[derive(Debug, Clone)]
pub(crate) struct Hit {
    pub(crate) rule: &'static Rule,
    pub(crate) name: Arc<str>,
    /// The place in the flat text, where text decided.
    pub(crate) at: Option<usize>,
}

/// The most rules that there can be.
const MAX_RULES: usize = 512;

/// A set of rules by their place.
#[derive(Debug, Clone, Copy, Default)]
struct Candidates([u64; MAX_RULES / 64]);

impl Candidates {
    fn add(&mut self, rules: &[u16]) {
        for rule in rules {
            self.0[usize::from(*rule) / 64] |= 1 << (rule % 64);
        }
    }

    fn join(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(own, other)| *own |= other);
    }

    /// The lowest place first.
    fn iter(self) -> impl Iterator<Item = usize> {
        self.0.into_iter().enumerate().flat_map(|(block, mut bits)| {
            std::iter::from_fn(move || {
                let lowest = (bits != 0).then(|| bits.trailing_zeros() as usize)?;
                bits &= bits - 1;
                Some(block * 64 + lowest)
            })
        })
    }
}

impl RuleSet {
    /// Sorts and compiles these rules; what they look for joins the words.
    pub(crate) fn new(mut rules: Vec<&'static Rule>, words: &mut Words) -> Self {
        rules.sort_by_key(|rule| std::cmp::Reverse(rule.rank));
        assert!(rules.len() <= MAX_RULES, "more rules than the index holds");
        let rules: Vec<Compiled> = rules.into_iter().map(|rule| Compiled::new(rule, words)).collect();
        let mut set = Self {
            rules,
            by_word: Vec::new(),
            by_code: HashMap::new(),
            by_status: HashMap::new(),
            always: Candidates::default(),
            unhinted: Candidates::default(),
        };
        for (place, compiled) in set.rules.iter().enumerate() {
            let place = place as u16;
            let mut on_word = |word: WordId| {
                let at = usize::from(word);
                set.by_word.resize_with(set.by_word.len().max(at + 1), Vec::new);
                set.by_word[at].push(place);
            };
            compiled.phrases.iter().copied().for_each(&mut on_word);
            for (hint, regex) in &compiled.regexes {
                match (hint, regex.words()) {
                    (Some(hint), _) => on_word(*hint),
                    (None, Some(needed)) => {
                        set.unhinted.add(&[place]);
                        needed.iter().copied().for_each(&mut on_word);
                    }
                    (None, None) => set.always.add(&[place]),
                }
            }
            for code in compiled.rule.codes {
                set.by_code.entry(code).or_default().push(place);
            }
            if compiled.rule.is_only_status() {
                for status in compiled.rule.statuses {
                    set.by_status.entry(*status).or_default().push(place);
                }
            }
        }
        set
    }

    /// Every rule that matches, the winner first; the scan went over the flat text.
    pub(crate) fn matches<'a>(&'a self, evidence: &'a Evidence, scan: &'a Scan) -> impl Iterator<Item = Hit> + 'a {
        self.candidates(evidence, scan).iter().filter_map(move |place| self.rules[place].hit(evidence, scan))
    }

    #[cfg(test)]
    pub(crate) fn searches(&self) -> impl Iterator<Item = &Search> {
        self.rules.iter().flat_map(|rule| rule.regexes.iter().map(|(_, regex)| regex))
    }

    fn candidates(&self, evidence: &Evidence, scan: &Scan) -> Candidates {
        let mut all = self.always;
        for word in scan.found() {
            all.add(self.by_word.get(usize::from(word)).map_or(&[], Vec::as_slice));
        }
        if scan.is_odd() {
            all.join(&self.unhinted);
        }
        for code in evidence.codes() {
            all.add(self.by_code.get(code.as_str()).map_or(&[], Vec::as_slice));
        }
        if let Some(status) = evidence.status() {
            all.add(self.by_status.get(&status).map_or(&[], Vec::as_slice));
        }
        all
    }
}

impl Compiled {
    fn new(rule: &'static Rule, words: &mut Words) -> Self {
        let mut phrases = |all: &[&str]| all.iter().map(|phrase| words.phrase(phrase)).collect();
        let (own, also, unless) = (phrases(rule.phrases), phrases(rule.also), phrases(rule.unless));
        let regexes = rule
            .regexes
            .iter()
            .map(|(hint, regex)| {
                let hint = (!hint.is_empty()).then(|| words.phrase(hint));
                (hint, Search::new(&format!("(?im){regex}"), words))
            })
            .collect();
        Self { rule, name: rule.name.into(), phrases: own, regexes, also, unless }
    }

    fn hit(&self, evidence: &Evidence, scan: &Scan) -> Option<Hit> {
        let rule = self.rule;
        if self.unless.iter().any(|word| scan.has(*word)) {
            return None;
        }
        if !self.also.is_empty() && !self.also.iter().any(|word| scan.has(*word)) {
            return None;
        }
        let hit = |at: Option<usize>| Hit { rule, name: Arc::clone(&self.name), at };
        if !rule.statuses.is_empty() {
            let status = evidence.status().is_some_and(|status| rule.statuses.contains(&status));
            if rule.is_only_status() || !status {
                return status.then(|| hit(None));
            }
        }
        if let Some(found) = self.phrases.iter().find_map(|word| scan.get(*word)) {
            return Some(hit(Some(found.first)));
        }
        if evidence.codes().iter().any(|code| rule.codes.contains(&code.as_str())) {
            return Some(hit(None));
        }
        self.regexes
            .iter()
            .filter(|(hint, _)| hint.is_none_or(|hint| scan.has(hint)))
            .find_map(|(_, regex)| regex.find(evidence.lines(), scan))
            // A line feed and the blank that stands for it in the flat text have one length.
            .map(|at| hit(Some(at)))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::failure::evidence::DEFAULT_CAP;
    use crate::failure::knowledge::knowledge;
    use crate::failure::{PatternRegistry, Report, Timestamp, tables};

    fn report(example: &str) -> Report {
        Report::from_value(serde_json::from_str(example).unwrap_or_else(|_| example.into()))
    }

    #[test]
    fn every_rule_wins_its_example() {
        let registry = PatternRegistry::new();
        let mut wrong = Vec::new();
        for rule in tables::all() {
            let found = registry.detect_first(&report(rule.yes), Timestamp::default());
            let winner = found.failure().map_or_else(|| format!("{found:?}"), |error| error.pattern.to_string());
            if winner != rule.name {
                wrong.push(format!("{}: `{}` is taken by {winner}", rule.name, rule.yes));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn no_rule_matches_its_counterexample() {
        let mut wrong = Vec::new();
        for rule in tables::all() {
            let evidence = Evidence::of(&report(rule.no), DEFAULT_CAP);
            if rule.no.is_empty()
                || knowledge().rules.matches(&evidence, evidence.scan()).any(|hit| hit.rule.name == rule.name)
            {
                wrong.push(format!("{}: `{}`", rule.name, rule.no));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn names_are_unique_and_literals_are_lower_case() {
        let mut names = std::collections::HashSet::new();
        for rule in tables::all() {
            assert!(names.insert(rule.name), "{} twice", rule.name);
            for word in [rule.phrases, rule.codes, rule.also, rule.unless].concat() {
                assert_eq!(word, word.to_ascii_lowercase(), "{}", rule.name);
            }
        }
    }
}
