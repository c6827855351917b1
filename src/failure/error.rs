use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Category, Domain, ErrorSeverity, Kind, LaneKey, RecoveryAction, Timestamp};

/// Token numbers that an overflow or a per-minute limit stated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TokenCounts {
    /// The window, or the limit per minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// What the request needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actual: Option<u64>,
    /// What of it is the prompt, where that is told apart from the output that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<u64>,
}

impl TokenCounts {
    /// Whether the prompt fits and only the output that was asked for on top of it does not: a smaller
    /// `max_tokens` cures it, and nothing has to be cut.
    pub fn max_tokens_alone(self) -> bool {
        matches!((self.prompt, self.limit), (Some(prompt), Some(limit)) if prompt < limit)
    }

    /// By how many tokens the request is too large, where both numbers are known.
    pub fn overflow(self) -> Option<u64> {
        Some(self.actual?.saturating_sub(self.limit?))
    }
}

/// Facts that detection read out of a failure.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Details {
    /// The relative wait that the server stated.
    #[serde(with = "millis", rename = "retry_after_ms", skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<Duration>,
    /// Token numbers.
    pub tokens: TokenCounts,
    /// The HTTP status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
}

/// A report after detection: what kind of failure it was and what is known of it.
///
/// `raw` is the reported value; it is never persisted (R12), and `message` is already bounded and
/// masked. Printed for debugging, it leaves `raw` out.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct RecoveryError {
    /// The class that chooses the chain.
    pub category: Category,
    /// The precise type.
    #[serde(rename = "errorType")]
    pub kind: Kind,
    /// The failure's own words: normalised, bounded and masked.
    pub message: Arc<str>,
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
    /// One sentence for people.
    pub diagnosis: Arc<str>,
    /// Facts read out of the failure.
    #[serde(default)]
    pub details: Details,
    /// The name of the pattern that won.
    pub pattern: Arc<str>,
    /// The same for failures that differ only in ids, numbers, paths and times.
    pub fingerprint: u64,
    /// The lane that the failed turn used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lane: Option<LaneKey>,
    /// The model that the failed turn used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Arc<str>>,
    /// The tool that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<Arc<str>>,
    /// When it was reported.
    pub timestamp: Timestamp,
    /// The value as it was reported, cut where it is very deep or very long.
    #[serde(skip)]
    pub raw: Option<Arc<Value>>,
}

impl RecoveryError {
    /// Whether no wait helps although a rate is what was exceeded: this request alone is larger than
    /// what is let in at once, and has to shrink.
    pub fn must_shrink(&self) -> bool {
        matches!(self.kind, Kind::RateLimit | Kind::QuotaExhausted)
            && (&*self.pattern == REQUEST_OVER_LIMIT || self.details.tokens.overflow().is_some_and(|by| by > 0))
    }
}

/// The rule for a request that alone is over a limit per minute.
pub(crate) const REQUEST_OVER_LIMIT: &str = "request_over_minute_limit";

impl fmt::Debug for RecoveryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecoveryError")
            .field("category", &self.category)
            .field("kind", &self.kind)
            .field("message", &self.message)
            .field("domain", &self.domain)
            .field("severity", &self.severity)
            .field("retryable", &self.retryable)
            .field("recoverable", &self.recoverable)
            .field("suggested_action", &self.suggested_action)
            .field("diagnosis", &self.diagnosis)
            .field("details", &self.details)
            .field("pattern", &self.pattern)
            .field("fingerprint", &self.fingerprint)
            .field("lane", &self.lane)
            .field("model", &self.model)
            .field("tool", &self.tool)
            .field("timestamp", &self.timestamp)
            .finish_non_exhaustive()
    }
}

mod millis {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(span: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
        match span {
            Some(span) => to.serialize_some(&u64::try_from(span.as_millis()).unwrap_or(u64::MAX)),
            None => to.serialize_none(),
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<u64>::deserialize(from)?.map(Duration::from_millis))
    }
}
