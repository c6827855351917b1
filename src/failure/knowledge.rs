use std::sync::LazyLock;

use super::details::Wordings;
use super::gate_marks::GateMarks;
use super::lexicon::{Lexicon, Words};
use super::redaction::SecretMarks;
use super::rule::RuleSet;
use super::tables;

/// Everything built in that reads texts, with one lexicon of all the words that it looks for.
#[derive(Debug)]
pub(crate) struct Knowledge {
    pub(crate) rules: RuleSet,
    pub(crate) wordings: Wordings,
    pub(crate) secrets: SecretMarks,
    pub(crate) gate: GateMarks,
    pub(crate) lexicon: Lexicon,
}

static KNOWLEDGE: LazyLock<Knowledge> = LazyLock::new(|| {
    let mut words = Words::default();
    let rules = RuleSet::new(tables::all(), &mut words);
    let wordings = Wordings::new(&mut words);
    let secrets = SecretMarks::new(&mut words);
    let gate = GateMarks::new(&mut words);
    Knowledge { rules, wordings, secrets, gate, lexicon: words.finish() }
});

/// What is built in, compiled once.
pub(crate) fn knowledge() -> &'static Knowledge {
    &KNOWLEDGE
}

#[cfg(test)]
impl Knowledge {
    /// Every regex that is searched in scanned texts.
    pub(crate) fn searches(&self) -> impl Iterator<Item = &super::search::Search> {
        self.rules.searches().chain(self.wordings.searches()).chain(self.gate.searches())
    }
}
