use serde::Serialize;
use serde_json::Value;

use super::{Detection, Domain, ErrorSeverity, PatternRegistry, RecoveryAction, Report, Timestamp};

/// The answer of `backstop classify`: what a bare value is, on one line.
///
/// `category` is `none` where nothing is to be recovered; `kind` then says why: `cancelled` or
/// `not_an_error`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ClassifyAnswer {
    /// The category, or `none`.
    pub category: &'static str,
    /// The kind, `cancelled`, or `not_an_error`.
    pub kind: String,
    /// Who is at fault.
    pub domain: Domain,
    /// How bad it is.
    pub severity: ErrorSeverity,
    /// Sending the same request again can work without a person acting.
    pub retryable: bool,
    /// Something other than a person can still help.
    pub recoverable: bool,
    /// What the detector suggests.
    pub suggested_action: RecoveryAction,
    /// The relative wait that the server stated, in milliseconds.
    pub retry_after_ms: Option<u64>,
    /// The window, or the limit per minute.
    pub limit_tokens: Option<u64>,
    /// What the request needed.
    pub actual_tokens: Option<u64>,
    /// A rate limit that no wait cures: the request alone is over it, and has to shrink.
    pub must_shrink: bool,
    /// An overflow that a smaller `max_tokens` cures: the prompt itself fits.
    pub max_tokens_alone: bool,
    /// The name of the pattern that decided.
    pub pattern: String,
    /// The failure's own words, bounded and masked; empty where there is no failure.
    pub message: String,
}

/// Classifies one bare JSON value, as [`Report::from_value`] reads it.
///
/// ```
/// use backstop::failure::{PatternRegistry, Timestamp, classify};
///
/// let answer = classify(&PatternRegistry::new(), &"429 Too Many Requests".into(), Timestamp::default());
/// assert_eq!((answer.category, answer.kind.as_str()), ("session_error", "rate_limit"));
/// ```
pub fn classify(registry: &PatternRegistry, value: &Value, now: Timestamp) -> ClassifyAnswer {
    let (detection, why) = registry.detect_explained(&Report::from_value(value.clone()), now);
    let none = |kind: &str, recoverable| ClassifyAnswer {
        category: "none",
        kind: kind.to_owned(),
        domain: Domain::Unknown,
        severity: ErrorSeverity::Low,
        retryable: false,
        recoverable,
        suggested_action: RecoveryAction::None,
        retry_after_ms: None,
        limit_tokens: None,
        actual_tokens: None,
        must_shrink: false,
        max_tokens_alone: false,
        pattern: why.winner.to_string(),
        message: String::new(),
    };
    match detection {
        Detection::Cancelled => none("cancelled", false),
        Detection::NotAFailure => none("not_an_error", true),
        Detection::Failure(error) => ClassifyAnswer {
            category: error.category.as_str(),
            kind: error.kind.as_str().to_owned(),
            domain: error.domain,
            severity: error.severity,
            retryable: error.retryable,
            recoverable: error.recoverable,
            suggested_action: error.suggested_action,
            retry_after_ms: error.details.retry_after.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
            limit_tokens: error.details.tokens.limit,
            actual_tokens: error.details.tokens.actual,
            must_shrink: error.must_shrink(),
            max_tokens_alone: error.details.tokens.max_tokens_alone(),
            pattern: error.pattern.to_string(),
            message: error.message.to_string(),
        },
    }
}
