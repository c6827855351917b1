use std::sync::Arc;

use serde::Serialize;

use super::evidence::Evidence;
use super::text::head;
use super::{RecoveryError, mask};

/// The longest piece of evidence that is shown, in bytes.
const MAX_EVIDENCE: usize = 400;

/// What detection says about a report.
#[derive(Debug, Clone, PartialEq)]
pub enum Detection {
    /// The turn failed, in this way.
    Failure(Box<RecoveryError>),
    /// A person or the host stopped the turn; it is never recovered (R1).
    Cancelled,
    /// Ordinary output or a success: nothing to recover (R1).
    NotAFailure,
}

impl Detection {
    /// The failure, if there is one.
    pub fn failure(&self) -> Option<&RecoveryError> {
        match self {
            Self::Failure(error) => Some(error),
            Self::Cancelled | Self::NotAFailure => None,
        }
    }

    /// The failure by value, if there is one.
    pub fn into_failure(self) -> Option<RecoveryError> {
        match self {
            Self::Failure(error) => Some(*error),
            Self::Cancelled | Self::NotAFailure => None,
        }
    }
}

/// A pattern that matched as well and lost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunnerUp {
    /// The pattern's name.
    pub pattern: Arc<str>,
    /// Why another one won.
    pub reason: String,
}

/// Why detection decided as it did (R15): what it saw, what matched and what lost.
///
/// All text in it is bounded and masked.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Explanation {
    /// The name of the pattern that won, or of the rule that found no failure.
    pub winner: Arc<str>,
    /// What else matched, in the order of evaluation.
    pub runners_up: Vec<RunnerUp>,
    /// The facts and texts that were looked at.
    pub evidence: Vec<String>,
}

/// What an explanation shows of the evidence.
pub(super) fn seen(evidence: &Evidence) -> Vec<String> {
    let mut seen = vec![format!("shape: {:?}", evidence.shape)];
    seen.extend(evidence.status().map(|status| format!("status: {status}")));
    seen.extend(evidence.exit_code.map(|code| format!("exit code: {code}")));
    seen.extend(evidence.signal.as_deref().map(|signal| format!("signal: {}", mask(signal))));
    seen.extend(evidence.tool.as_deref().map(|tool| format!("tool: {}", mask(tool))));
    seen.extend(evidence.codes().iter().map(|code| format!("code: {}", mask(code))));
    // Others say nothing of the failure, and may hold what is nobody's business.
    let telling = evidence.headers.iter().filter(|(name, _)| name.contains("retry") || name.contains("ratelimit"));
    seen.extend(telling.map(|(name, value)| format!("header: {name}: {}", mask(value))));
    seen.extend(evidence.texts().map(|text| format!("text: {}", head(&mask(text), MAX_EVIDENCE))));
    seen
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::{Category, Kind};
    use super::super::{ErrorPattern, PatternRegistry, Report, Timestamp};

    #[test]
    fn the_headers_that_tell_of_a_wait_are_shown_and_no_others() {
        let headers = [("Retry-After", "7"), ("x-ratelimit-reset", "9s"), ("set-cookie", "id=canary-4711")];
        let report = Report::from_response(429, headers, "slow down");
        let (_, why) = PatternRegistry::new().detect_explained(&report, Timestamp::default());
        let has = |line: &str| why.evidence.iter().any(|seen| seen == line);
        assert!(has("header: retry-after: 7") && has("header: x-ratelimit-reset: 9s"), "{why:?}");
        assert!(!why.evidence.iter().any(|seen| seen.contains("canary")), "{why:?}");
    }

    #[test]
    fn among_equals_the_reason_is_the_order() {
        let mut registry = PatternRegistry::new();
        for name in ["first", "second"] {
            registry.register(ErrorPattern::regex(name, Category::JsonError, Kind::Other, "boom").unwrap());
        }
        let (_, why) = registry.detect_explained(&Report::text("boom"), Timestamp::default());
        assert_eq!(&*why.winner, "first");
        assert_eq!(
            why.runners_up[0].reason,
            "own pattern, priority 0; `first` won: own pattern, priority 0, and comes before it"
        );
    }
}
