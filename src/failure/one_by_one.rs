//! Every rule by itself, as its definition reads: what the indexed evaluation must agree with.

use regex::{Regex, RegexBuilder};

use super::evidence::Evidence;
use super::rule::{Hit, Rule};
use super::tables;

/// The rules with nothing shared between them.
pub(crate) struct OneByOne {
    rules: Vec<(&'static Rule, Vec<(&'static str, Regex)>)>,
}

impl OneByOne {
    pub(crate) fn new() -> Self {
        let mut rules = tables::all();
        rules.sort_by_key(|rule| std::cmp::Reverse(rule.rank));
        let rules = rules
            .into_iter()
            .map(|rule| {
                let regexes = rule.regexes.iter().map(|(hint, regex)| {
                    let regex = RegexBuilder::new(regex).case_insensitive(true).multi_line(true).build();
                    (*hint, regex.expect("a constant"))
                });
                (rule, regexes.collect())
            })
            .collect();
        Self { rules }
    }

    /// Every rule that matches, the winner first.
    pub(crate) fn matches<'a>(&'a self, evidence: &'a Evidence) -> impl Iterator<Item = Hit> + 'a {
        let flat = evidence.flat().to_ascii_lowercase();
        self.rules.iter().filter_map(move |(rule, regexes)| hit(rule, regexes, evidence, &flat))
    }
}

fn hit(rule: &'static Rule, regexes: &[(&str, Regex)], evidence: &Evidence, flat: &str) -> Option<Hit> {
    let holds = |all: &[&str]| all.iter().any(|phrase| first(flat, phrase).is_some());
    if holds(rule.unless) || !(rule.also.is_empty() || holds(rule.also)) {
        return None;
    }
    let hit = |at: Option<usize>| Hit { rule, name: rule.name.into(), at };
    if !rule.statuses.is_empty() {
        let status = evidence.status().is_some_and(|status| rule.statuses.contains(&status));
        if rule.is_only_status() || !status {
            return status.then(|| hit(None));
        }
    }
    if let Some(at) = rule.phrases.iter().find_map(|phrase| first(flat, phrase)) {
        return Some(hit(Some(at)));
    }
    if evidence.codes().iter().any(|code| rule.codes.contains(&code.as_str())) {
        return Some(hit(None));
    }
    regexes
        .iter()
        .filter(|(hint, _)| hint.is_empty() || first(flat, hint).is_some())
        .find_map(|(_, regex)| regex.find(evidence.lines()))
        .map(|found| hit(Some(found.start())))
}

/// The first place of a phrase, at word boundaries unless an end is marked with `*`.
fn first(flat: &str, phrase: &str) -> Option<usize> {
    let word = phrase.trim_matches('*');
    let letter = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let joined = |at: usize| {
        let bytes = flat.as_bytes();
        letter(at.checked_sub(1).and_then(|before| bytes.get(before))) && letter(bytes.get(at))
    };
    let mut from = 0;
    while let Some(step) = flat[from..].find(word) {
        let at = from + step;
        if (phrase.starts_with('*') || !joined(at)) && (phrase.ends_with('*') || !joined(at + word.len())) {
            return Some(at);
        }
        from = at + word.chars().next().map_or(1, char::len_utf8);
    }
    None
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::LazyLock;

    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;
    use crate::failure::Report;
    use crate::failure::evidence::DEFAULT_CAP;
    use crate::failure::knowledge::knowledge;

    static EACH: LazyLock<OneByOne> = LazyLock::new(OneByOne::new);

    fn corpus() -> Vec<Value> {
        let lines = include_str!("../../tests/data/corpus/dev.jsonl").lines();
        lines.map(|line| serde_json::from_str::<Value>(line).unwrap()["input"].take()).collect()
    }

    /// Every text of the corpus and of the rules' examples.
    static TEXTS: LazyLock<Vec<String>> = LazyLock::new(|| {
        fn gather(value: &Value, into: &mut Vec<String>) {
            match value {
                Value::String(text) => into.push(text.clone()),
                Value::Array(items) => items.iter().for_each(|item| gather(item, into)),
                Value::Object(map) => map.values().for_each(|item| gather(item, into)),
                _ => {}
            }
        }
        let mut all = Vec::new();
        corpus().iter().for_each(|value| gather(value, &mut all));
        all.extend(tables::all().iter().flat_map(|rule| [rule.yes.to_owned(), rule.no.to_owned()]));
        all.retain(|text| !text.is_empty());
        all
    });

    fn assert_same(report: &Report) {
        let evidence = Evidence::of(report, DEFAULT_CAP);
        let plain = |hit: Hit| (hit.rule.name, hit.at);
        let indexed: Vec<_> = knowledge().rules.matches(&evidence, evidence.scan()).map(plain).collect();
        let each: Vec<_> = EACH.matches(&evidence).map(plain).collect();
        assert_eq!(indexed, each, "{:?}", evidence.flat());
        for search in knowledge().searches() {
            let got = search.find(evidence.lines(), evidence.scan());
            assert_eq!(got, search.find_in_full(evidence.lines()), "{search:?} in {:?}", evidence.lines());
        }
    }

    #[test]
    fn the_index_finds_what_each_rule_by_itself_finds_in_real_failures() {
        for value in corpus() {
            assert_same(&Report::from_value(value));
        }
        for text in &*TEXTS {
            assert_same(&Report::text(text.clone()));
        }
    }

    fn piece() -> impl Strategy<Value = String> {
        let known = any::<prop::sample::Index>().prop_map(|at| at.get(&TEXTS).clone());
        let cut = (any::<prop::sample::Index>(), 0.0..1.0_f64, 0.0..1.0_f64).prop_map(|(at, from, to)| {
            let chars: Vec<char> = at.get(&TEXTS).chars().collect();
            let place = |share: f64| (chars.len() as f64 * share) as usize;
            chars[place(from.min(to))..place(from.max(to))].iter().collect()
        });
        let strange = prop::sample::select(vec![
            "é", "…", "\n", "  ", "ſ", "\u{212a}", "错误", "· ", "\u{2028}", "_", "Ä", "½", "٤٢٩", " 503 ", "日本", "{",
        ]);
        prop_oneof![
            3 => known,
            3 => cut,
            2 => strange.prop_map(str::to_owned),
            1 => "[ -~]{0,20}",
            1 => any::<String>(),
            1 => (1_usize..9).prop_map(|lines| "a line of 12 words, nothing in it\n".repeat(lines * lines)),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(192))]

        #[test]
        fn the_index_finds_what_each_rule_by_itself_finds_in_any_text(
            pieces in prop::collection::vec(piece(), 1..5), change in 0..4_u8, status in prop::option::of(400..530_u16)
        ) {
            let text = pieces.concat();
            let text = match change {
                0 => text.to_uppercase(),
                1 => text.chars().map(|ch| if ch.is_lowercase() { ch.to_ascii_uppercase() } else { ch.to_ascii_lowercase() }).collect(),
                _ => text,
            };
            let report = Report::text(text);
            assert_same(&Report { status, ..report });
        }
    }
}
