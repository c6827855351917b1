//! What whole records say: a model's reply, a log line, a verifier's verdict.

use serde_json::{Map, Value};

use super::evidence::MAX_DEPTH;
use super::json_text::is_blank;
use super::machine_words::{lower, plain};
use super::walk::Walk;

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
        let word = |key: &str| map.get(key).and_then(Value::as_str).map(lower).unwrap_or_default();
        if matches!(word("level").as_str(), "info" | "debug" | "trace" | "warn" | "warning")
            || matches!(word("status").as_str(), "allowed" | "allowed_warning")
        {
            self.calm = true;
        }
    }

    /// A verifier's record: what it says in several fields, or in several small records, must agree.
    pub(crate) fn look_at_verdicts(&mut self, map: &Map<String, Value>, depth: usize) {
        const FIELDS: [&str; 8] = [
            "verdict",
            "approved",
            "polarity",
            "executionrecord",
            "decision",
            "passed",
            "verificationresult",
            "outcome",
        ];
        let judged =
            ["gate", "verifier", "reviewer", "threshold", "criteria", "score"].iter().any(|key| map.contains_key(*key));
        let by = ["by", "decided_by", "decidedBy", "actor"].iter().find_map(|key| map.get(*key)?.as_str());
        let by_a_person = by.is_some_and(|by| matches!(by, "user" | "human" | "person" | "operator"));
        let (mut yes, mut no) = (false, false);
        for (key, value) in map {
            let key = plain(key);
            let is_status = judged && matches!(key.as_ref(), "status" | "result");
            if !is_status && !FIELDS.iter().any(|field| key.ends_with(field)) {
                continue;
            }
            match value.as_str().map(lower).as_deref() {
                Some(
                    "pass" | "passed" | "approve" | "approved" | "accept" | "accepted" | "ok" | "success" | "allow",
                ) => yes = true,
                Some(
                    "fail" | "failed" | "reject" | "rejected" | "deny" | "denied" | "changes_requested" | "block"
                    | "request_changes",
                ) => no = true,
                _ => match value.as_bool() {
                    Some(true) => yes = true,
                    Some(false) => no = true,
                    None => {}
                },
            }
        }
        if !yes && !no {
            let next = map.get("action").or_else(|| map.get("next_action")).and_then(Value::as_str);
            no = self.verdicts.0
                && depth > 0
                && next.is_some_and(|next| ["fix", "rework", "revise"].iter().any(|word| next.contains(word)));
        } else if let (Some(score), Some(least)) = (number(map, "score"), number(map, "threshold")) {
            yes |= score >= least;
        }
        if depth <= 2 {
            self.verdicts.0 |= yes;
            self.verdicts.1 |= no;
        }
        if no && by_a_person {
            self.failed = true;
            self.code("rejected_by_user");
            return;
        }
        if no && !judged && is_a_guards(map) {
            self.failed = true;
            self.code("denied_by_hook");
            return;
        }
        if no || (yes && self.verdicts.1 && depth <= 1) {
            self.failed = true;
            let disagree = (yes && no) || (self.verdicts.0 && self.verdicts.1 && depth <= 1);
            self.code(if disagree { "verdicts disagree" } else { "verdict: fail" });
        }
    }
}

/// A hook's or a guard's record: it blocks or denies, where a verifier rejects or fails.
fn is_a_guards(map: &Map<String, Value>) -> bool {
    let decided = ["decision", "permissionDecision", "permission_decision", "behavior"]
        .iter()
        .find_map(|key| map.get(*key)?.as_str());
    decided.is_some_and(|word| matches!(word.to_ascii_lowercase().as_str(), "block" | "deny" | "denied" | "blocked"))
}

fn number(map: &Map<String, Value>, key: &str) -> Option<f64> {
    map.get(key).and_then(Value::as_f64)
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
