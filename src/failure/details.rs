//! Facts in numbers: stated waits and token counts.

use std::time::Duration;

use super::evidence::Evidence;
use super::lexicon::{WordId, Words};
use super::search::Search;
use super::{Details, Kind, Timestamp, TokenCounts, token_counts, waits};

/// A stated wait longer than this is a mistake of whoever stated it.
const MAX_WAIT: Duration = Duration::from_secs(400 * 24 * 3600);

/// Reads the details that a failure of this kind can state.
pub(crate) fn read(kind: &Kind, evidence: &Evidence, now: Timestamp) -> Details {
    let may_wait = matches!(
        kind,
        Kind::RateLimit
            | Kind::Overloaded
            | Kind::QuotaExhausted
            | Kind::ServerError
            | Kind::ServiceUnavailable
            | Kind::Timeout
            | Kind::Other
            | Kind::Custom(_)
    );
    let tokens = match kind {
        Kind::ContextOverflow => token_counts::overflow(evidence),
        Kind::RateLimit | Kind::QuotaExhausted => token_counts::throttle(evidence),
        _ => TokenCounts::default(),
    };
    let retry_after = if may_wait { waits::retry_after(evidence, now) } else { None };
    Details { retry_after: retry_after.filter(|wait| *wait <= MAX_WAIT), tokens, status: evidence.status() }
}

/// The wordings of waits and token counts, compiled.
#[derive(Debug)]
pub(crate) struct Wordings {
    pub(super) waits: Vec<Search>,
    pub(super) overflow: Vec<Search>,
    pub(super) throttle: Vec<Search>,
    /// How much of an overflow is the prompt.
    pub(super) prompt: Vec<Search>,
    /// The words without one of which no throttle speaks of tokens.
    pub(super) token: [WordId; 3],
}

impl Wordings {
    pub(crate) fn new(words: &mut Words) -> Self {
        let mut all =
            |sources: Vec<String>| -> Vec<Search> { sources.iter().map(|source| Search::new(source, words)).collect() };
        Self {
            waits: all(waits::wordings()),
            overflow: all(token_counts::of_overflows()),
            throttle: all(token_counts::of_throttles()),
            prompt: all(token_counts::of_prompts()),
            token: ["*token*", "*tpm*", "*tpd*"].map(|word| words.phrase(word)),
        }
    }

    #[cfg(test)]
    pub(crate) fn searches(&self) -> impl Iterator<Item = &Search> {
        self.waits.iter().chain(&self.overflow).chain(&self.throttle).chain(&self.prompt)
    }
}
