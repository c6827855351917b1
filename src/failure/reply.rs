//! What whole records say: a model's reply, a log line, a verifier's verdict.

use serde_json::{Map, Value};

use super::evidence::MAX_DEPTH;
use super::json_text::is_blank;
use super::walk::{Walk, plain};

impl Walk {
    /// A reply of a model: whether it carries anything.
    pub(crate) fn look_at_reply(&mut self, map: &Map<String, Value>, depth: usize) {
        let word = |key: &str| map.get(key).and_then(Value::as_str);
        let ended = ["finish_reason", "finishReason", "stop_reason", "stopReason", "done_reason"]
            .iter()
            .any(|key| word(key).is_some());
        let of_model = matches!(word("role"), Some("assistant" | "model"));
        let listed = ["choices", "candidates"].iter().any(|key| map.get(*key).is_some_and(Value::is_array));
        let whole = map.get("info").and_then(|info| info.get("role")).and_then(Value::as_str) == Some("assistant")
            || (word("object") == Some("response") || word("type") == Some("message"));
        if !(ended || of_model || listed || whole) || self.judged_reply {
            return;
        }
        self.judged_reply = true;
        let carries = map.iter().any(|(key, value)| carries_content(key, value, depth));
        self.empty_reply |= !carries;
        self.has_reply |= carries;
    }

    /// A log record below the level of errors, and a status that allows.
    pub(crate) fn look_at_level(&mut self, map: &Map<String, Value>) {
        let word = |key: &str| map.get(key).and_then(Value::as_str).map(str::to_ascii_lowercase).unwrap_or_default();
        if matches!(word("level").as_str(), "info" | "debug" | "trace" | "warn" | "warning")
            || matches!(word("status").as_str(), "allowed" | "allowed_warning")
        {
            self.calm = true;
        }
    }

    /// A verifier's record: what it says in several fields must agree.
    pub(crate) fn look_at_verdicts(&mut self, map: &Map<String, Value>) {
        const FIELDS: [&str; 7] =
            ["verdict", "approved", "polarity", "executionrecord", "decision", "passed", "verificationresult"];
        let (mut yes, mut no) = (false, false);
        for (key, value) in map {
            let key = plain(key);
            if !FIELDS.iter().any(|field| key.ends_with(field)) {
                continue;
            }
            match value.as_str().map(str::to_ascii_lowercase).as_deref() {
                Some("pass" | "passed" | "approve" | "approved" | "accept" | "accepted" | "ok") => yes = true,
                Some("fail" | "failed" | "reject" | "rejected" | "deny" | "changes_requested") => no = true,
                _ => match value.as_bool() {
                    Some(true) => yes = true,
                    Some(false) => no = true,
                    None => {}
                },
            }
        }
        if no {
            self.failed = true;
            self.code(if yes { "verdicts disagree" } else { "verdict: fail" });
        }
    }
}

/// Whether a reply's field holds text or a tool call.
fn carries_content(key: &str, value: &Value, depth: usize) -> bool {
    if depth > MAX_DEPTH {
        return false;
    }
    let inside = |value: &Value| match value {
        Value::Object(map) => map.iter().any(|(key, value)| carries_content(key, value, depth + 1)),
        _ => false,
    };
    match plain(key).as_ref() {
        "toolcalls" | "functioncall" | "functioncalls" | "tooluse" | "tool" => match value {
            Value::Array(items) => !items.is_empty(),
            Value::Null => false,
            _ => true,
        },
        "type" => value
            .as_str()
            .is_some_and(|word| matches!(word, "tool_use" | "tool_call" | "function_call" | "tool-call" | "tool")),
        "text" | "content" | "output" | "outputtext" | "response" | "result" | "refusal" | "parts" | "message"
        | "choices" | "candidates" | "delta" | "data" => match value {
            Value::String(text) => !is_blank(text),
            Value::Array(items) => {
                items.iter().any(|item| item.as_str().is_some_and(|text| !is_blank(text)) || inside(item))
            }
            other => inside(other),
        },
        _ => false,
    }
}
