use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickBuilder, MatchKind};
use regex::{Regex, RegexBuilder};

use super::evidence::Evidence;
use super::facts::{Facts, Overrides};
use super::{Category, Kind, tables};

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
    /// The higher wins; see [`tables`] for the ranks.
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
}

/// Every built-in rule, the higher rank first, with one automaton over all their literals.
pub(crate) struct RuleSet {
    rules: Vec<Compiled>,
    literals: AhoCorasick,
    /// Of each literal: whether its start and its end must be word boundaries.
    edges: Vec<(bool, bool)>,
}

struct Compiled {
    rule: &'static Rule,
    phrases: Vec<usize>,
    regexes: Vec<(Option<usize>, Regex)>,
    also: Vec<usize>,
    unless: Vec<usize>,
}

/// Where a matching rule found what it looked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hit {
    pub(crate) rule: &'static Rule,
    /// The place in the flat text, where text decided.
    pub(crate) at: Option<usize>,
}

static BUILT_IN: LazyLock<RuleSet> = LazyLock::new(|| RuleSet::compile(tables::all()));

/// The built-in rules, compiled once.
pub(crate) fn built_in() -> &'static RuleSet {
    &BUILT_IN
}

impl RuleSet {
    fn compile(mut rules: Vec<&'static Rule>) -> Self {
        rules.sort_by_key(|rule| std::cmp::Reverse(rule.rank));
        let mut words: Vec<&'static str> = Vec::new();
        let mut index = std::collections::HashMap::new();
        let mut intern = |word: &'static str| {
            *index.entry(word).or_insert_with(|| {
                words.push(word);
                words.len() - 1
            })
        };
        let rules = rules
            .into_iter()
            .map(|rule| Compiled {
                rule,
                phrases: rule.phrases.iter().map(|word| intern(word)).collect(),
                regexes: rule
                    .regexes
                    .iter()
                    .map(|(hint, regex)| ((!hint.is_empty()).then(|| intern(hint)), built_in_regex(regex)))
                    .collect(),
                also: rule.also.iter().map(|word| intern(word)).collect(),
                unless: rule.unless.iter().map(|word| intern(word)).collect(),
            })
            .collect();
        let edges = words.iter().map(|word| (!word.starts_with('*'), !word.ends_with('*'))).collect();
        let literals = AhoCorasickBuilder::new()
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::Standard)
            .build(words.iter().map(|word| word.trim_matches('*')))
            .expect("the built-in literals are few and short");
        Self { rules, literals, edges }
    }

    /// The first place of every literal in `text`.
    fn scan(&self, text: &str) -> Vec<Option<usize>> {
        let bytes = text.as_bytes();
        let mut found = vec![None; self.edges.len()];
        for hit in self.literals.find_overlapping_iter(text) {
            let (start, end) = self.edges[hit.pattern().as_usize()];
            if (!start || is_edge(bytes, hit.start())) && (!end || is_edge(bytes, hit.end())) {
                found[hit.pattern().as_usize()].get_or_insert(hit.start());
            }
        }
        found
    }

    /// Every rule that matches, the winner first.
    pub(crate) fn matches(&'static self, evidence: &Evidence) -> impl Iterator<Item = Hit> {
        let found = self.scan(evidence.flat());
        self.rules.iter().filter_map(move |compiled| compiled.hit(evidence, &found))
    }
}

impl Compiled {
    fn hit(&self, evidence: &Evidence, found: &[Option<usize>]) -> Option<Hit> {
        let rule = self.rule;
        if self.unless.iter().any(|word| found[*word].is_some()) {
            return None;
        }
        if !self.also.is_empty() && !self.also.iter().any(|word| found[*word].is_some()) {
            return None;
        }
        let only_status = rule.phrases.is_empty() && rule.regexes.is_empty() && rule.codes.is_empty();
        if !rule.statuses.is_empty() {
            let status = evidence.status().is_some_and(|status| rule.statuses.contains(&status));
            if only_status || !status {
                return status.then_some(Hit { rule, at: None });
            }
        }
        if let Some(at) = self.phrases.iter().find_map(|word| found[*word]) {
            return Some(Hit { rule, at: Some(at) });
        }
        if evidence.codes().iter().any(|code| rule.codes.contains(&code.as_str())) {
            return Some(Hit { rule, at: None });
        }
        self.regexes
            .iter()
            .filter(|(hint, _)| hint.is_none_or(|hint| found[hint].is_some()))
            .find_map(|(_, regex)| regex.find(evidence.lines()))
            // A line feed and the blank that stands for it in the flat text have one length.
            .map(|found| Hit { rule, at: Some(found.start()) })
    }
}

/// Whether the characters on both sides of this place do not belong to one word.
fn is_edge(bytes: &[u8], at: usize) -> bool {
    let word = |index: Option<usize>| index.and_then(|index| bytes.get(index)).is_some_and(u8::is_ascii_alphanumeric);
    !(word(at.checked_sub(1)) && word(Some(at)))
}

fn built_in_regex(regex: &str) -> Regex {
    RegexBuilder::new(regex)
        .case_insensitive(true)
        .multi_line(true)
        .build()
        .unwrap_or_else(|error| panic!("a built-in regex must compile: {error}"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::failure::evidence::DEFAULT_CAP;
    use crate::failure::{PatternRegistry, Report, Timestamp};

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
            if rule.no.is_empty() || built_in().matches(&evidence).any(|hit| hit.rule.name == rule.name) {
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

    #[test]
    fn a_phrase_inside_a_longer_word_is_not_found() {
        let found = built_in().scan("doom in the room, generated separately");
        assert!(found.iter().all(Option::is_none), "{found:?}");
    }
}
