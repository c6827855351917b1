//! Envelopes of single vendors whose numbers mean something else elsewhere.

use serde_json::{Map, Value};

use super::evidence::Shape;
use super::machine_words::lower;
use super::walk::Walk;

/// How the type of an event ends that only informs.
const INFORMS: [&str; 11] = [
    ".updated",
    ".created",
    ".delta",
    ".done",
    ".completed",
    ".in_progress",
    ".queued",
    ".added",
    "_delta",
    "_start",
    "_stop",
];

impl Walk {
    /// Marks a vendor's number with the field it stood in, and reads states that words alone do not tell.
    pub(crate) fn look_at_envelope(&mut self, map: &Map<String, Value>) {
        let inner = |key: &str, field: &str| map.get(key).and_then(|inner| inner.get(field));
        // MiniMax, with HTTP 200; iFlytek; Baidu.
        self.vendor_code("base_resp", inner("base_resp", "status_code"));
        self.vendor_code("header", inner("header", "code"));
        self.vendor_code("error_code", map.get("error_code"));
        if let Some(reason) = inner("incomplete_details", "reason").and_then(Value::as_str) {
            self.code(&format!("finish:{}", lower(reason)));
        }
        let word = |key: &str| map.get(key).and_then(Value::as_str).unwrap_or_default();
        if word("object") == "response" && matches!(word("status"), "cancelled" | "canceled") {
            self.verdict = Some(Shape::Cancelled);
        }
        self.calm |= INFORMS.iter().any(|end| word("type").ends_with(end));
    }

    fn vendor_code(&mut self, field: &str, value: Option<&Value>) {
        let number = value.and_then(|value| value.as_i64().or_else(|| value.as_str()?.parse().ok()));
        if let Some(number) = number.filter(|number| *number != 0) {
            self.failed = true;
            self.code(&format!("{field}:{number}"));
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use crate::failure::{Detection, Kind, PatternRegistry, Report, Timestamp};
    use serde_json::{Value, json};

    fn detect(value: Value) -> Detection {
        PatternRegistry::new().detect_first(&Report::from_value(value), Timestamp::default())
    }

    fn kind(value: Value) -> Option<Kind> {
        detect(value).into_failure().map(|error| error.kind)
    }

    #[test]
    fn one_number_means_what_its_vendor_means() {
        assert_eq!(kind(json!({"base_resp": {"status_code": 1002, "status_msg": "x"}})), Some(Kind::RateLimit));
        assert_eq!(kind(json!({"error": {"code": "1002", "message": "x"}})), Some(Kind::Auth));
        assert_eq!(kind(json!({"error_code": 18, "error_msg": "x"})), Some(Kind::RateLimit));
        assert_eq!(kind(json!({"header": {"code": 11202, "message": "x", "sid": "y"}})), Some(Kind::RateLimit));
        assert_eq!(kind(json!({"base_resp": {"status_code": 0, "status_msg": "success"}})), None);
    }

    #[test]
    fn a_reply_says_by_itself_how_it_ended() {
        let reply = |status: &str, reason: &str| {
            json!({"object": "response", "status": status, "incomplete_details": {"reason": reason},
                "output": [{"type": "message", "content": [{"type": "output_text", "text": "half"}]}]})
        };
        assert_eq!(kind(reply("incomplete", "content_filter")), Some(Kind::ContentFilter));
        assert_eq!(kind(reply("incomplete", "max_output_tokens")), Some(Kind::OutputLimit));
        assert_eq!(detect(reply("cancelled", "")), Detection::Cancelled);
    }

    #[test]
    fn an_event_that_informs_is_no_failure() {
        let limits = json!({"type": "rate_limits.updated", "rate_limits": [{"name": "requests", "remaining": 9}]});
        assert_eq!(detect(limits), Detection::NotAFailure);
        let start = json!({"type": "message_start", "message": {"role": "assistant", "content": []}});
        assert_eq!(detect(start), Detection::NotAFailure);
    }
}
