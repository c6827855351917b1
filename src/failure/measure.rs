//! What a benchmark of detection compares: its parts, each alone.

use super::evidence::{DEFAULT_CAP, Evidence};
use super::knowledge::knowledge;
use super::one_by_one::OneByOne;
use super::{Report, Timestamp};

/// The rules evaluated one after the other, with nothing shared between them.
pub struct RuleByRule(OneByOne);

/// A report's evidence, and its text in lower case.
pub struct Prepared(Evidence, String);

impl RuleByRule {
    /// Compiles every rule by itself.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        Self(OneByOne::new())
    }

    /// The name of the rule that wins.
    pub fn winner(&self, of: &Prepared) -> Option<&'static str> {
        self.0.matches(&of.0).next().map(|hit| hit.rule.name)
    }
}

impl Prepared {
    /// Reads a report.
    pub fn new(report: &Report) -> Self {
        let evidence = Evidence::of(report, DEFAULT_CAP);
        let lower = evidence.flat().to_ascii_lowercase();
        Self(evidence, lower)
    }

    /// The text that is scanned.
    pub fn text(&self) -> &str {
        self.0.flat()
    }

    /// The pass for literals alone: how many were found.
    pub fn literals(&self) -> usize {
        knowledge().lexicon.pass(&self.1)
    }

    /// The pass for literals and what is kept of it.
    pub fn scan(&self) -> usize {
        knowledge().lexicon.scan(self.0.flat()).found().count()
    }

    /// The name of the rule that wins by the index, after a pass of its own.
    pub fn winner(&self) -> Option<&'static str> {
        let scan = knowledge().lexicon.scan(self.0.flat());
        knowledge().rules.matches(&self.0, &scan).next().map(|hit| hit.rule.name)
    }

    /// Whether the gate lets the report through.
    pub fn gate(&self) -> bool {
        let evidence = self.0.clone();
        !matches!(super::gate::judge(&evidence), super::gate::Gate::Ordinary(_))
    }
}

/// A moment, for detection.
pub const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);
