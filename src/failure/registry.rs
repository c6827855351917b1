use std::sync::Arc;

use super::evidence::{DEFAULT_CAP, Evidence};
use super::facts::{Facts, diagnosis};
use super::found::{Match, Rank};
use super::gate::{self, Gate};
use super::json_text::bounded_copy;
use super::knowledge::knowledge;
use super::redaction::mask;
use super::rule::Rule;
use super::text::head;
use super::walk::TOOL_RESULT;
use super::{
    Category, Detection, ErrorPattern, Explanation, Kind, RecoveryError, Report, RunnerUp, Timestamp, details, explain,
    fingerprint,
};

/// The longest message of a [`RecoveryError`], in bytes.
pub const MAX_MESSAGE: usize = 2048;
/// How many bytes of text the copy of a reported value keeps.
const MAX_RAW: usize = 64 * 1024;
/// How many runners-up an explanation names.
const MAX_RUNNERS_UP: usize = 16;

/// Knows failures: the built-in knowledge and the user's own patterns, which win over it.
///
/// Cheap to clone: a clone is a snapshot that later registrations do not change.
///
/// ```
/// use backstop::failure::{Kind, PatternRegistry, Report, Timestamp};
///
/// let registry = PatternRegistry::new();
/// let found = registry.detect_first(&Report::text("429 Too Many Requests"), Timestamp::default());
/// assert_eq!(found.failure().map(|error| &error.kind), Some(&Kind::RateLimit));
/// ```
#[derive(Debug, Clone)]
pub struct PatternRegistry {
    own: Arc<Vec<ErrorPattern>>,
    cap: usize,
}

impl Default for PatternRegistry {
    fn default() -> Self {
        Self::new()
    }
}

/// How much of what matches is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Winner,
    All,
}

/// What a report is, with everything that matched, the winner first.
enum Finding {
    Cancelled(&'static str),
    Ordinary(&'static str),
    Matches(Vec<Match>),
}

impl PatternRegistry {
    /// The built-in knowledge alone.
    pub fn new() -> Self {
        Self { own: Arc::default(), cap: DEFAULT_CAP }
    }

    /// Looks at this many bytes of text per report at most; 16 KiB unless set.
    #[must_use]
    pub fn with_text_cap(mut self, bytes: usize) -> Self {
        self.cap = bytes.max(64);
        self
    }

    /// Adds a user's pattern; one of the same name is replaced.
    pub fn register(&mut self, pattern: ErrorPattern) {
        let own = Arc::make_mut(&mut self.own);
        own.retain(|known| known.name() != pattern.name());
        // Stable: among equals the one registered first stays first.
        let place = own.partition_point(|known| known.priority() >= pattern.priority());
        own.insert(place, pattern);
    }

    /// The user's patterns in the order in which they are asked.
    pub fn own_patterns(&self) -> &[ErrorPattern] {
        &self.own
    }

    /// Every pattern that matches a failure, the winner first; empty where there is no failure.
    pub fn detect(&self, report: &Report, now: Timestamp) -> Vec<RecoveryError> {
        let evidence = Evidence::of(report, self.cap);
        match self.find(report, &evidence, Wanted::All) {
            Finding::Matches(all) => all.into_iter().map(|one| build(one, report, &evidence, now)).collect(),
            Finding::Cancelled(_) | Finding::Ordinary(_) => Vec::new(),
        }
    }

    /// What this report is.
    pub fn detect_first(&self, report: &Report, now: Timestamp) -> Detection {
        if report.cancelled {
            return Detection::Cancelled;
        }
        let evidence = Evidence::of(report, self.cap);
        decide(self.find(report, &evidence, Wanted::Winner), report, &evidence, now).0
    }

    /// What this report is as a failure of one category: the best match there, else a basic error of
    /// kind `other`. Never [`Detection::NotAFailure`]; what somebody stopped is no failure of any category.
    pub fn detect_category(&self, report: &Report, category: Category, now: Timestamp) -> Detection {
        let evidence = Evidence::of(report, self.cap);
        let found = match self.find(report, &evidence, Wanted::All) {
            Finding::Cancelled(_) => return Detection::Cancelled,
            Finding::Matches(all) => all.into_iter().find(|one| one.category == category),
            Finding::Ordinary(_) => None,
        };
        let found = found.unwrap_or_else(|| Match { category, ..fallback("basic", Kind::Other, None) });
        Detection::Failure(Box::new(build(found, report, &evidence, now)))
    }

    /// The same as [`Self::detect_first`], with the reasons (R15).
    pub fn detect_explained(&self, report: &Report, now: Timestamp) -> (Detection, Explanation) {
        if report.cancelled {
            let winner = "cancel_flag".into();
            return (Detection::Cancelled, Explanation { winner, ..Explanation::default() });
        }
        let evidence = Evidence::of(report, self.cap);
        let (detection, mut explanation) = decide(self.find(report, &evidence, Wanted::All), report, &evidence, now);
        explanation.evidence = explain::seen(&evidence);
        (detection, explanation)
    }

    fn find(&self, report: &Report, evidence: &Evidence, wanted: Wanted) -> Finding {
        if report.cancelled {
            return Finding::Cancelled("cancel_flag");
        }
        let gate = gate::judge(evidence);
        if let Gate::Cancelled(name) = gate {
            return Finding::Cancelled(name);
        }
        let limit = if wanted == Wanted::Winner { 1 } else { usize::MAX };
        let own = self.own.iter().filter(|pattern| pattern.matches(report, evidence));
        let mut all: Vec<Match> = own
            .take(limit)
            .map(|pattern| Match {
                name: pattern.shared_name(),
                category: pattern.category(),
                kind: pattern.kind().clone(),
                facts: pattern.facts(),
                at: None,
                rank: Rank::Own(pattern.priority()),
            })
            .collect();
        match gate {
            Gate::Ordinary(name) if all.is_empty() => {
                // A filter's verdict or a cut reply may come as a success (`finish_reason`).
                if evidence.has_finish_fact() {
                    all.extend(matches(evidence).filter(|one| one.rank == FINISH_RANK).take(limit));
                }
                if all.is_empty() {
                    return Finding::Ordinary(name);
                }
            }
            Gate::Ordinary(_) | Gate::Cancelled(_) => {}
            _ if all.len() >= limit => {}
            Gate::Empty(name) => {
                all.extend(matches(evidence).filter(|one| one.rank == FINISH_RANK).take(limit));
                all.push(fallback(name, Kind::EmptyResponse, None));
            }
            Gate::Failure | Gate::Reported => {
                // A policy or a tool's name in ordinary prose is no verdict.
                let vague = gate == Gate::Reported && !gate::may_be_a_verdict(evidence);
                all.extend(matches(evidence).filter(|one| !(vague && is_verdict(&one.kind))).take(limit));
                if all.is_empty() && (gate == Gate::Failure || gate::sounds_wrong(evidence)) {
                    all.push(unknown(evidence));
                }
            }
        }
        if all.is_empty() { Finding::Ordinary("not_error_like") } else { Finding::Matches(all) }
    }
}

/// The rank of rules over a reply's finish reason.
const FINISH_RANK: Rank = Rank::BuiltIn(95);

fn matches(evidence: &Evidence) -> impl Iterator<Item = Match> {
    let hits = knowledge().rules.matches(evidence, evidence.scan());
    // What a tool does not find is a page or a file, never a model.
    let is_out_of_place =
        |rule: &Rule| evidence.tool.is_some() && *rule.kind == Kind::ModelNotFound && rule.is_only_status();
    hits.filter(move |hit| !is_out_of_place(hit.rule)).map(|hit| Match {
        name: hit.name,
        category: hit.rule.category(),
        kind: hit.rule.kind.clone(),
        facts: hit.rule.facts(),
        at: hit.at,
        rank: Rank::BuiltIn(hit.rule.rank),
    })
}

fn is_verdict(kind: &Kind) -> bool {
    matches!(kind, Kind::GuardBlocked | Kind::VerificationFailed | Kind::InvalidGeneration)
}

fn fallback(name: &'static str, kind: Kind, facts: Option<Facts>) -> Match {
    let category = kind.usual_category().unwrap_or(Category::SessionError);
    let facts = facts.unwrap_or_else(|| Facts::of(&kind));
    Match { name: name.into(), category, kind, facts, at: None, rank: Rank::NoPattern }
}

/// A failure that no rule names: a command that ended so, else `other`.
fn unknown(evidence: &Evidence) -> Match {
    match evidence.exit_code {
        // A shell's way to say that a signal ended it.
        Some(129..=159 | -64..=-2) => fallback("exit_signal", Kind::ProcessKilled, None),
        // The code of `timeout`.
        Some(124) => fallback("exit_timeout", Kind::ToolTimeout, None),
        Some(code) if code != 0 => fallback("exit_code", Kind::ProcessFailed, None),
        _ if evidence.signal.is_some() => fallback("signal", Kind::ProcessKilled, None),
        _ if evidence.tool.is_some() || evidence.has_code(TOOL_RESULT) => fallback("tool", Kind::ToolFailed, None),
        _ => fallback("unknown", Kind::Other, None),
    }
}

fn decide(finding: Finding, report: &Report, evidence: &Evidence, now: Timestamp) -> (Detection, Explanation) {
    let mut all = match finding {
        Finding::Cancelled(name) => {
            return (Detection::Cancelled, Explanation { winner: name.into(), ..Explanation::default() });
        }
        Finding::Ordinary(name) => {
            return (Detection::NotAFailure, Explanation { winner: name.into(), ..Explanation::default() });
        }
        Finding::Matches(all) => all.into_iter(),
    };
    let Some(winner) = all.next() else {
        return (Detection::NotAFailure, Explanation::default());
    };
    let runners_up = all
        .take(MAX_RUNNERS_UP)
        .map(|one| {
            let tie = if one.rank == winner.rank { ", and comes before it" } else { "" };
            let reason = format!("{}; `{}` won: {}{tie}", one.rank, winner.name, winner.rank);
            RunnerUp { pattern: one.name, reason }
        })
        .collect();
    let explanation = Explanation { winner: Arc::clone(&winner.name), runners_up, evidence: Vec::new() };
    (Detection::Failure(Box::new(build(winner, report, evidence, now))), explanation)
}

fn build(found: Match, report: &Report, evidence: &Evidence, now: Timestamp) -> RecoveryError {
    let message = message(evidence, found.at);
    let details = details::read(&found.kind, evidence, now);
    let tool = report.tool.as_deref().or(evidence.tool.as_deref());
    let mut error = RecoveryError {
        fingerprint: fingerprint::of(&found.kind, details.status, tool, &message),
        message: message.into(),
        category: found.category,
        domain: found.facts.domain,
        severity: found.facts.severity,
        retryable: found.facts.retryable,
        recoverable: found.facts.recoverable,
        suggested_action: found.facts.action,
        diagnosis: diagnosis(&found.kind).into(),
        details,
        pattern: found.name,
        kind: found.kind,
        lane: report.lane.clone(),
        model: report.model.as_deref().map(name),
        tool: tool.map(name),
        timestamp: now,
        raw: Some(Arc::new(bounded_copy(&report.value, MAX_RAW))),
    };
    // The same request can never pass.
    error.retryable &= !error.must_shrink();
    error
}

/// A name as records and output may hold it.
fn name(given: &str) -> Arc<str> {
    mask(given).into()
}

/// Masked before it is cut, so that no cut leaves half a secret; cut again, as masks have a length.
fn message(evidence: &Evidence, at: Option<usize>) -> String {
    let text = evidence.message(at);
    // The message is a piece of what was scanned.
    let masked = if knowledge().secrets.any(evidence.scan()) { mask(text) } else { text.into() };
    let cut = head(&masked, MAX_MESSAGE);
    cut.trim_end().to_owned()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;

    const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

    fn kind(value: serde_json::Value) -> Option<Kind> {
        let found = PatternRegistry::new().detect_first(&Report::from_value(value), NOW);
        found.into_failure().map(|error| error.kind)
    }

    #[test]
    fn the_cancel_flag_wins_over_every_word() {
        let report = Report { cancelled: true, ..Report::text("429 Too Many Requests") };
        assert_eq!(PatternRegistry::new().detect_first(&report, NOW), Detection::Cancelled);
        assert!(PatternRegistry::new().detect(&report, NOW).is_empty());
    }

    #[test]
    fn a_users_pattern_wins_over_the_built_in_ones() {
        let mut registry = PatternRegistry::new();
        let kind = Kind::parse("gpu_queue");
        registry.register(ErrorPattern::regex("own", Category::SessionError, kind.clone(), "too many req").unwrap());
        let (found, why) = registry.detect_explained(&Report::text("429 Too Many Requests"), NOW);
        assert_eq!(found.failure().unwrap().kind, kind);
        assert_eq!(&*why.winner, "own");
        assert!(!why.runners_up.is_empty() && why.evidence.iter().any(|line| line.contains("429")));
    }

    #[test]
    fn a_snapshot_does_not_see_later_registrations() {
        let mut registry = PatternRegistry::new();
        let snapshot = registry.clone();
        registry.register(ErrorPattern::new("all", Category::JsonError, Kind::parse("x"), |_| true));
        assert_eq!(snapshot.own_patterns().len(), 0);
        assert_eq!(registry.own_patterns().len(), 1);
    }

    #[test]
    fn the_higher_priority_is_asked_first_and_a_name_is_kept_once() {
        let mut registry = PatternRegistry::new();
        let make = |name: &str, priority| {
            ErrorPattern::new(name, Category::JsonError, Kind::Other, |_| true).with_priority(priority)
        };
        for (name, priority) in [("a", 0), ("b", 5), ("c", 0), ("a", 1)] {
            registry.register(make(name, priority));
        }
        let names: Vec<_> = registry.own_patterns().iter().map(ErrorPattern::name).collect();
        assert_eq!(names, ["b", "a", "c"]);
    }

    #[test]
    fn a_category_without_a_match_gives_a_basic_error() {
        let registry = PatternRegistry::new();
        let error = registry.detect_category(&Report::text("all is well"), Category::EditError, NOW);
        let error = error.into_failure().unwrap();
        assert_eq!((error.category, error.kind), (Category::EditError, Kind::Other));
    }

    #[test]
    fn the_innermost_cause_wins_over_wrapper_and_status() {
        let wrapped = json!({"status": 500, "message": "Internal Server Error", "cause": {"body":
            "{\"error\":{\"message\":\"maximum context length is 8192 tokens\"}}"}});
        assert_eq!(kind(wrapped), Some(Kind::ContextOverflow));
    }

    #[test]
    fn an_error_object_alone_on_standard_error_is_the_cause() {
        let stderr = r#"{"name":"TypeError","message":"fetch failed","cause":{"code":"UND_ERR_SOCKET"}}"#;
        assert_eq!(kind(json!({"exit_code": 1, "stdout": "", "stderr": stderr})), Some(Kind::Network));
    }

    #[test]
    fn an_unknown_error_is_other_and_ordinary_output_is_none() {
        assert_eq!(kind(json!({"error": {"message": "flux capacitor misaligned"}})), Some(Kind::Other));
        assert_eq!(kind(json!({"tool": "read", "output": "Error: 429 rate limit"})), None);
        assert_eq!(kind(json!({"exit_code": 0, "stdout": "rate limit exceeded", "stderr": "error: 429"})), None);
    }

    #[test]
    fn a_message_is_bounded_and_masked() {
        let text = format!("Error: Incorrect API key provided: sk-proj-{} {}", "a1B2".repeat(10), "é".repeat(9000));
        let found = PatternRegistry::new().detect_first(&Report::text(text), NOW).into_failure().unwrap();
        assert!(found.message.len() <= MAX_MESSAGE);
        assert!(!found.message.contains("a1B2a1B2"), "{}", found.message);
    }
}
