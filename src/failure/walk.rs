use serde_json::{Map, Value};

use super::evidence::{MAX_DEPTH, MAX_NODES, Shape};
use super::json_text::{is_blank, names_none, open_json, whole_json};
use super::machine_words::plain;
use super::repr::printed_objects;
use super::text::{head, head_and_tail};
use super::{Report, Source};

/// The longest machine word that is kept.
pub(crate) const MAX_CODE: usize = 120;
/// The code that marks a tool's result which says that the tool failed, in the form of MCP.
pub(crate) const TOOL_RESULT: &str = "tool result: error";
/// How many codes, headers and numbers are kept.
pub(crate) const MAX_FACTS: usize = 64;

/// How many texts of the largest size are kept in all.
const TEXTS: usize = 16;
/// The longest tool's output that is parsed as a record.
const MAX_RECORD: usize = 256 * 1024;

/// Gathers facts and texts while going through a report's value, wrappers first.
#[derive(Debug, Default)]
pub(crate) struct Walk {
    cap: usize,
    nodes: usize,
    /// Bytes of text that were taken.
    taken: usize,
    causes: Vec<String>,
    outputs: Vec<String>,
    pub(crate) stderr: Option<String>,
    pub(crate) stdout: Option<String>,
    pub(crate) codes: Vec<String>,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) numbers: Vec<(String, String)>,
    pub(crate) status: Option<u16>,
    pub(crate) exit_code: Option<i64>,
    pub(crate) signal: Option<String>,
    pub(crate) tool: Option<String>,
    pub(crate) command: Option<String>,
    pub(crate) has_streams: bool,
    /// A field says that this is a failure.
    pub(crate) failed: bool,
    /// A field of the value itself says so, not one of something inside it.
    top_failed: bool,
    /// The server's status says so, whatever its answer quotes.
    refused: bool,
    /// A field says that it worked.
    pub(crate) worked: bool,
    /// Decided by somebody who knows the whole frame.
    pub(crate) verdict: Option<Shape>,
    pub(crate) bare_text: bool,
    pub(crate) calm: bool,
    pub(crate) empty_reply: bool,
    pub(crate) judged_reply: bool,
    pub(crate) has_reply: bool,
    pub(crate) role: Option<String>,
    /// The result of one tool call: it may be empty.
    tool_result: bool,
    /// What verifiers' records in it say: yes, no.
    pub(crate) verdicts: (bool, bool),
}

impl Walk {
    pub(crate) fn new(cap: usize) -> Self {
        Self { cap, ..Self::default() }
    }

    pub(crate) fn report(&mut self, report: &Report) {
        self.exit_code = report.exit_code.map(i64::from);
        self.signal = report.signal.as_deref().map(str::to_owned);
        self.tool = report.tool.as_deref().map(str::to_owned);
        if report.status.is_some_and(|status| status >= 400) || self.exit_code.is_some_and(|code| code != 0) {
            self.failed = true;
        }
        self.refused = report.source == Source::Provider && report.status.is_some_and(|status| status >= 400);
        match &report.value {
            Value::String(text) => {
                if is_blank(text) {
                    self.bare_text = true;
                    return;
                }
                let text = head_and_tail(text, self.cap * 2);
                match whole_json(&text) {
                    Some(value) => self.value(&value, 1),
                    None if self.events(&text) => {}
                    None => {
                        self.bare_text = true;
                        self.text(&text, 0);
                    }
                }
            }
            value => self.value(value, 0),
        }
    }

    /// The texts that may hold the cause, wrappers first.
    pub(crate) fn texts(&mut self) -> Vec<String> {
        let mut texts = std::mem::take(&mut self.causes);
        let wanted = texts.is_empty() || self.exit_code.is_some_and(|code| code != 0);
        if wanted {
            texts.extend(self.stderr.take());
            texts.append(&mut self.outputs);
            texts.extend(self.stdout.take());
        }
        texts
    }

    pub(crate) fn shape(&self) -> Shape {
        if let Some(verdict) = self.verdict.filter(|verdict| !self.refused || *verdict == Shape::Cancelled) {
            return verdict;
        }
        // A run that ended well may still tell of attempts that did not.
        if self.failed && (self.exit_code != Some(0) || self.top_failed || self.refused) {
            return Shape::Failure;
        }
        let blank = |text: &String| is_blank(text);
        if self.calm && !self.bare_text {
            return Shape::Output;
        }
        if self.bare_text {
            let empty = self.causes.iter().all(blank);
            return if empty { Shape::Empty } else { Shape::Text };
        }
        if self.role.as_deref().is_some_and(|role| role != "assistant" && role != "model") {
            return Shape::Output;
        }
        let shows_output = !self.outputs.is_empty() || self.has_streams;
        if self.worked || self.exit_code == Some(0) {
            return if self.empty_reply { Shape::Empty } else { Shape::Success };
        }
        if self.empty_reply {
            return Shape::Empty;
        }
        if self.tool_result && self.causes.is_empty() && self.outputs.iter().all(blank) {
            return Shape::Success;
        }
        // What a model says is its answer, whatever it speaks about.
        if self.has_reply && self.tool.is_none() && self.causes.is_empty() && !self.tool_result {
            return Shape::Success;
        }
        if shows_output || self.has_reply {
            let nothing = self.outputs.iter().all(blank) && self.tool.is_none() && !self.has_reply;
            return if nothing && self.causes.is_empty() { Shape::Empty } else { Shape::Output };
        }
        if self.causes.is_empty() && self.codes.is_empty() { Shape::Success } else { Shape::Text }
    }

    pub(crate) fn push_text(&mut self, text: &str) {
        self.text(text, MAX_DEPTH / 2);
    }

    pub(crate) fn value(&mut self, value: &Value, depth: usize) {
        self.nodes += 1;
        if self.nodes > MAX_NODES || depth > MAX_DEPTH {
            return;
        }
        match value {
            Value::Object(map) => self.object(map, depth),
            Value::Array(items) => {
                for item in items.iter().take(MAX_NODES) {
                    self.value(item, depth + 1);
                }
            }
            Value::String(text) => self.text(text, depth),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Lines of events of an agent's run, one JSON object each: how the run ended decides.
    fn events(&mut self, text: &str) -> bool {
        let Some((failed, cause)) = super::command::end_of_events(text) else { return false };
        match cause {
            Some(cause) => {
                self.failed = true;
                self.value(&cause, 1);
            }
            None => self.verdict = Some(if failed { Shape::Empty } else { Shape::Success }),
        }
        true
    }

    fn text(&mut self, text: &str, depth: usize) {
        if self.nodes > MAX_NODES {
            return;
        }
        self.nodes += 1;
        let text = head_and_tail(text, self.cap * 2);
        if !self.has_room(&text) {
            return;
        }
        let (rest, embedded) = open_json(&text);
        let printed = printed_objects(&rest);
        self.causes.push(rest.into_owned());
        for value in embedded.into_iter().chain(printed) {
            self.value(&value, depth + 1);
        }
    }

    /// Whether a text may be kept beside what was: many long ones are bounded together.
    fn has_room(&mut self, text: &str) -> bool {
        self.taken += text.len();
        self.taken <= self.cap * TEXTS
    }

    fn object(&mut self, map: &Map<String, Value>, depth: usize) {
        self.look_at_reply(map, depth);
        self.look_at_verdicts(map, depth);
        self.look_at_envelope(map);
        self.tool_result |=
            ["tool_use_id", "tool_call_id", "call_id", "toolCallId"].iter().any(|key| map.contains_key(*key));
        if map.get("isError") == Some(&Value::Bool(true)) && map.get("content").is_some_and(Value::is_array) {
            self.code(TOOL_RESULT);
        }
        let has_message = map.keys().any(|key| matches!(plain(key).as_ref(), "message" | "msg" | "errormessage"));
        if has_message && ["name", "code", "stack"].iter().any(|key| map.get(*key).is_some_and(Value::is_string)) {
            self.failed = true;
        }
        // The wrapper's own words come before what it wraps.
        self.look_at_level(map);
        let settled = ["ok", "success"].iter().any(|key| map.get(*key) == Some(&Value::Bool(true)))
            || map.get("status").and_then(Value::as_u64).is_some_and(|status| (200..300).contains(&status));
        let mut inner = Vec::new();
        for (key, value) in map.iter().take(MAX_NODES) {
            if value.is_null() {
                continue;
            }
            let name = plain(key);
            // Earlier attempts of what worked in the end.
            if settled
                && matches!(name.as_ref(), "retries" | "attempts" | "previousattempts" | "tries" | "retryhistory")
            {
                continue;
            }
            if !self.fact(&name, value, has_message) {
                inner.push((name, value));
            }
        }
        if depth == 0 {
            let said = |key: &str| map.get(key).is_some_and(|value| !value.is_null() && value != "" && value != false);
            let denied = |key: &str| map.get(key).is_some_and(|value| value == false);
            self.top_failed =
                ["error", "errors", "isError", "is_error"].into_iter().any(said) || denied("success") || denied("ok");
        }
        inner.sort_by_key(|(_, value)| value.is_object() || value.is_array());
        for (name, value) in inner {
            self.content(&name, value, depth, map.len() == 1);
        }
    }

    fn content(&mut self, name: &str, value: &Value, depth: usize, alone: bool) {
        match name {
            "error" | "err" | "errors" | "exception" | "errormessage" | "errormsg" | "failure" | "lasterror" => {
                self.failed |= match value {
                    Value::Null | Value::Bool(false) => false,
                    Value::String(text) if names_none(text) => return,
                    Value::Array(items) => !items.is_empty(),
                    _ => true,
                };
                self.value(value, depth + 1);
            }
            "stderr" => {
                self.has_streams = true;
                self.stderr = value.as_str().map(|text| head_and_tail(text, self.cap).into_owned());
            }
            "stdout" => {
                self.has_streams = true;
                self.stdout = value.as_str().map(|text| head_and_tail(text, self.cap).into_owned());
            }
            "output" | "content" | "text" | "rawoutput" | "formattedoutput" | "aggregatedoutput" | "result" => {
                match value {
                    Value::String(text) => match self.tool_result.then(|| exec_record(text)).flatten() {
                        Some(record) => self.value(&record, depth + 1),
                        None => {
                            let text = head_and_tail(text, self.cap);
                            if self.has_room(&text) {
                                self.outputs.push(text.into_owned());
                            }
                        }
                    },
                    other => self.value(other, depth + 1),
                }
            }
            "message" | "msg" | "detail" | "details" | "errordescription" | "description" | "body" | "responsebody"
            | "raw" | "cause" | "data" | "metadata" | "failedgeneration" | "detailmessage" | "localizedmessage"
            | "lastmessage" | "state" | "response" | "reason" | "inner" | "value" | "statusmsg" | "errmsg"
            | "faultstring" | "finishmessage" => self.value(value, depth + 1),
            "title" if depth == 0 && alone => self.value(value, depth + 1),
            "title" => {
                if let Some(title) = value.as_str() {
                    self.command.get_or_insert_with(|| head(title, MAX_CODE).to_owned());
                    if self.numbers.len() < MAX_FACTS {
                        self.numbers.push(("title".to_owned(), head(title, MAX_CODE).to_owned()));
                    }
                }
            }
            _ if name.contains("error") && value.as_str().is_some_and(|text| !names_none(text)) => {
                self.failed = true;
                self.value(value, depth + 1);
            }
            _ if value.is_object() || value.is_array() => self.value(value, depth + 1),
            _ => {}
        }
    }
}

/// A tool's result that is a record of a command, written as JSON: its output and its exit code.
fn exec_record(text: &str) -> Option<Value> {
    let record = whole_json(Some(text).filter(|text| text.len() <= MAX_RECORD)?)?;
    let exit = record.get("metadata")?.get("exit_code")?.as_i64()?;
    (exit != 0 && record.get("output").is_some_and(Value::is_string)).then_some(record)
}
