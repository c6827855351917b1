use std::borrow::Cow;

use serde_json::{Map, Value};

use super::Report;
use super::evidence::{MAX_DEPTH, MAX_NODES, Shape};
use super::text::{head, head_and_tail};

/// How many JSON values hidden in one text are opened.
const MAX_EMBEDDED: usize = 8;
/// The longest machine word that is kept.
const MAX_CODE: usize = 120;
/// How many codes, headers and numbers are kept.
const MAX_FACTS: usize = 64;

/// Gathers facts and texts while going through a report's value, wrappers first.
#[derive(Debug, Default)]
pub(crate) struct Walk {
    cap: usize,
    nodes: usize,
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
    /// A field says that it worked.
    pub(crate) worked: bool,
    /// Decided by somebody who knows the whole frame.
    pub(crate) verdict: Option<Shape>,
    pub(crate) bare_text: bool,
    calm: bool,
    empty_reply: bool,
    judged_reply: bool,
    has_reply: bool,
    role: Option<String>,
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
        match &report.value {
            Value::String(text) => {
                if is_blank(text) {
                    self.bare_text = true;
                    return;
                }
                let text = head_and_tail(text, self.cap * 2);
                match whole_json(&text) {
                    Some(value) => self.value(&value, "", 1),
                    None => {
                        self.bare_text = true;
                        self.text(&text, 0);
                    }
                }
            }
            value => self.value(value, "", 0),
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
        if let Some(verdict) = self.verdict {
            return verdict;
        }
        // A run that ended well may still tell of attempts that did not.
        if self.failed && (self.exit_code != Some(0) || self.top_failed) {
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
        if shows_output || self.has_reply {
            let nothing = self.outputs.iter().all(blank) && self.tool.is_none() && !self.has_reply;
            return if nothing && self.causes.is_empty() { Shape::Empty } else { Shape::Output };
        }
        if self.causes.is_empty() && self.codes.is_empty() { Shape::Success } else { Shape::Text }
    }

    pub(crate) fn push_text(&mut self, text: &str) {
        self.text(text, MAX_DEPTH / 2);
    }

    pub(crate) fn value(&mut self, value: &Value, key: &str, depth: usize) {
        self.nodes += 1;
        if self.nodes > MAX_NODES || depth > MAX_DEPTH {
            return;
        }
        match value {
            Value::Object(map) => self.object(map, depth),
            Value::Array(items) => {
                for item in items.iter().take(MAX_NODES) {
                    self.value(item, key, depth + 1);
                }
            }
            Value::String(text) => self.text(text, depth),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn text(&mut self, text: &str, depth: usize) {
        if self.nodes > MAX_NODES {
            return;
        }
        self.nodes += 1;
        let text = head_and_tail(text, self.cap * 2);
        let (rest, embedded) = open_json(&text);
        self.causes.push(rest.into_owned());
        for value in embedded {
            self.value(&value, "", depth + 1);
        }
    }

    fn object(&mut self, map: &Map<String, Value>, depth: usize) {
        self.look_at_reply(map, depth);
        self.look_at_verdicts(map);
        let has_message = map.keys().any(|key| matches!(plain(key).as_ref(), "message" | "msg" | "errormessage"));
        if has_message && ["name", "code", "stack"].iter().any(|key| map.get(*key).is_some_and(Value::is_string)) {
            self.failed = true;
        }
        // The wrapper's own words come before what it wraps.
        self.look_at_level(map);
        let mut inner = Vec::new();
        for (key, value) in map.iter().take(MAX_NODES) {
            if value.is_null() {
                continue;
            }
            let name = plain(key);
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

    /// Takes a field that is a fact or an echo. False: it may hold text.
    fn fact(&mut self, name: &str, value: &Value, has_message: bool) -> bool {
        match name {
            "status" | "statuscode" | "httpstatus" | "httpstatuscode" | "apierrorstatus" | "httpcode" => {
                self.status_or_code(value);
                if let Some(word) = value.as_str() {
                    match word.to_ascii_lowercase().as_str() {
                        "error" | "failed" | "failure" | "denied" | "timeout" => self.failed = true,
                        "ok" | "success" | "completed" => self.worked = true,
                        _ => {}
                    }
                }
                !value.is_object()
            }
            "code" | "errorcode" | "errcode" | "errno" => {
                self.status_or_code(value);
                !value.is_object()
            }
            "type" | "name" | "reason" | "errortype" | "apierrortype" | "apierror" | "quotaid" | "subtype"
            | "exceptiontype" | "exceptionname" | "exitcodemeaning" | "xamznerrortype" => match value.as_str() {
                Some(word) if word.contains(' ') && word.len() > 40 => false,
                Some(word) => {
                    let word = word.to_ascii_lowercase();
                    self.failed |= word == "error" || word.ends_with("error") || word.ends_with("exception");
                    self.code(&word);
                    true
                }
                None => false,
            },
            "finishreason" | "stopreason" | "donereason" | "blockreason" | "terminalreason" => {
                if let Some(word) = value.as_str() {
                    self.code(&format!("finish:{}", word.to_ascii_lowercase()));
                }
                true
            }
            "headers" | "responseheaders" => {
                if let Value::Object(headers) = value {
                    for (key, value) in headers.iter().take(MAX_FACTS) {
                        let text = match value {
                            Value::String(text) => text.clone(),
                            Value::Number(number) => number.to_string(),
                            _ => continue,
                        };
                        self.headers.push((key.to_ascii_lowercase(), head(&text, MAX_CODE).to_owned()));
                    }
                }
                true
            }
            "exitcode" | "exit" | "agentrc" | "returncode" | "exitstatus" => {
                if let Some(code) = value.as_i64() {
                    self.exit_code = Some(code);
                    self.failed |= code != 0;
                    self.worked |= code == 0;
                }
                true
            }
            "signal" => {
                if let Some(signal) = value.as_str() {
                    self.signal = Some(head(signal, MAX_CODE).to_owned());
                    self.failed = true;
                }
                true
            }
            "success" | "ok" => match value.as_bool() {
                Some(worked) => {
                    self.failed |= !worked;
                    self.worked |= worked;
                    true
                }
                None => false,
            },
            "iserror" => {
                self.failed |= value.as_bool() == Some(true);
                self.worked |= value.as_bool() == Some(false);
                true
            }
            "tool" | "toolname" => {
                if let (None, Some(tool)) = (&self.tool, value.as_str()) {
                    self.tool = Some(head(tool, MAX_CODE).to_owned());
                }
                !value.is_object()
            }
            "command" | "cmd" => {
                if let Some(command) = value.as_str() {
                    self.command = Some(head(command, MAX_CODE).to_owned());
                }
                true
            }
            "role" => {
                self.role = value.as_str().map(str::to_ascii_lowercase);
                true
            }
            "stack" => has_message,
            // What was sent, not what went wrong.
            "input" | "request" | "requestbody" | "requestbodyvalues" | "prompt" | "arguments" | "args"
            | "messages" | "tools" | "usage" | "usagemetadata" | "id" | "sessionid" | "uuid" | "timestamp" | "cwd"
            | "path" | "param" | "params" | "requestid" | "userid" | "links" | "url" | "documentationurl"
            | "suggestion" => true,
            "body" | "data" | "error" | "result" if value.as_str().is_some_and(str::is_empty) => true,
            _ => self.number(name, value),
        }
    }

    fn content(&mut self, name: &str, value: &Value, depth: usize, alone: bool) {
        match name {
            "error" | "err" | "errors" | "exception" | "errormessage" | "errormsg" | "failure" | "lasterror" => {
                self.failed |= match value {
                    Value::Null | Value::Bool(false) => false,
                    Value::String(text) => !text.is_empty(),
                    Value::Array(items) => !items.is_empty(),
                    _ => true,
                };
                self.value(value, name, depth + 1);
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
                    Value::String(text) => self.outputs.push(head_and_tail(text, self.cap).into_owned()),
                    other => self.value(other, name, depth + 1),
                }
            }
            "message" | "msg" | "detail" | "details" | "errordescription" | "description" | "body" | "responsebody"
            | "raw" | "cause" | "data" | "metadata" | "failedgeneration" | "detailmessage" | "localizedmessage"
            | "lastmessage" | "state" | "response" | "reason" | "inner" | "value" => self.value(value, name, depth + 1),
            "title" if depth == 0 && alone => self.value(value, name, depth + 1),
            "title" => {
                if let Some(title) = value.as_str() {
                    self.command.get_or_insert_with(|| head(title, MAX_CODE).to_owned());
                    self.numbers.push(("title".to_owned(), head(title, MAX_CODE).to_owned()));
                }
            }
            _ if value.is_string() && name.contains("error") => {
                self.failed = true;
                self.value(value, name, depth + 1);
            }
            _ if value.is_object() || value.is_array() => self.value(value, name, depth + 1),
            _ => {}
        }
    }

    /// A reply of a model: whether it carries anything.
    fn look_at_reply(&mut self, map: &Map<String, Value>, depth: usize) {
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
    fn look_at_level(&mut self, map: &Map<String, Value>) {
        let word = |key: &str| map.get(key).and_then(Value::as_str).map(str::to_ascii_lowercase).unwrap_or_default();
        if matches!(word("level").as_str(), "info" | "debug" | "trace" | "warn" | "warning")
            || matches!(word("status").as_str(), "allowed" | "allowed_warning")
        {
            self.calm = true;
        }
    }

    /// A verifier's record: what it says in several fields must agree.
    fn look_at_verdicts(&mut self, map: &Map<String, Value>) {
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

    fn status_or_code(&mut self, value: &Value) {
        let number = value.as_i64().or_else(|| value.as_str()?.parse().ok());
        match (number, value.as_str()) {
            (Some(status @ 100..=599), _) => {
                let status = u16::try_from(status).unwrap_or_default();
                self.failed |= status >= 400;
                self.worked |= status < 300;
                // The innermost status that is an error wins over a wrapper's.
                if status >= 400 || self.status.is_none() {
                    self.status = Some(status);
                }
            }
            (Some(0), _) => self.worked = true,
            (Some(number), _) => {
                self.failed = true;
                self.code(&number.to_string());
            }
            (None, Some(word)) => self.code(&word.to_ascii_lowercase()),
            (None, None) => {}
        }
    }

    pub(crate) fn code(&mut self, word: &str) {
        if !word.is_empty() && self.codes.len() < MAX_FACTS {
            self.codes.push(head(word, MAX_CODE).to_owned());
        }
    }

    fn number(&mut self, name: &str, value: &Value) -> bool {
        let wait = name.contains("retry") || name.contains("resets");
        match value {
            Value::Number(number) => {
                if self.numbers.len() < MAX_FACTS {
                    self.numbers.push((name.to_owned(), number.to_string()));
                }
                true
            }
            Value::String(text) if wait && text.len() < MAX_CODE => {
                self.numbers.push((name.to_owned(), text.clone()));
                true
            }
            Value::Bool(flag) => {
                self.code(&format!("{name}={flag}"));
                true
            }
            _ => false,
        }
    }
}

/// A copy of a value that can neither be deep enough to exhaust the stack nor large.
pub(crate) fn bounded_copy(value: &Value, cap: usize) -> Value {
    fn copy(value: &Value, depth: usize, nodes: &mut usize, bytes: &mut usize) -> Value {
        *nodes += 1;
        if depth > MAX_DEPTH || *nodes > MAX_NODES {
            return Value::Null;
        }
        match value {
            Value::String(text) => {
                let kept = head_and_tail(text, *bytes);
                *bytes = bytes.saturating_sub(kept.len());
                kept.into()
            }
            Value::Array(items) => {
                items.iter().take(MAX_NODES).map(|item| copy(item, depth + 1, nodes, bytes)).collect()
            }
            Value::Object(map) => map
                .iter()
                .take(MAX_NODES)
                .map(|(key, value)| (head(key, MAX_CODE).to_owned(), copy(value, depth + 1, nodes, bytes)))
                .collect(),
            plain => plain.clone(),
        }
    }
    copy(value, 0, &mut 0, &mut { cap })
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

/// A key's name without case, underscores and hyphens.
fn plain(key: &str) -> Cow<'_, str> {
    let key = head(key, MAX_CODE);
    if key.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return Cow::Borrowed(key);
    }
    key.chars().filter(|ch| !matches!(ch, '_' | '-')).map(|ch| ch.to_ascii_lowercase()).collect::<String>().into()
}

/// Whether a text holds nothing: white space, byte-order marks, an empty list or object.
pub(crate) fn is_blank(text: &str) -> bool {
    let text = text.trim_matches(|ch: char| ch.is_whitespace() || ch == '\u{feff}');
    matches!(text, "" | "[]" | "{}")
}

/// A text that as a whole is a JSON object or list.
fn whole_json(text: &str) -> Option<Value> {
    let trimmed = text.trim();
    if !trimmed.starts_with(['{', '[', '"']) || is_blank(trimmed) {
        return None;
    }
    match serde_json::from_str(trimmed) {
        Ok(Value::String(inner)) => whole_json(&inner),
        Ok(value) => Some(value),
        Err(_) => None,
    }
}

/// Takes JSON objects out of a text: what is left, and the objects.
fn open_json(text: &str) -> (Cow<'_, str>, Vec<Value>) {
    let mut rest = String::new();
    let mut found = Vec::new();
    let mut from = 0;
    let mut at = 0;
    let mut tries = 0;
    while let Some(step) = text[at..].find('{') {
        let start = at + step;
        tries += 1;
        if found.len() >= MAX_EMBEDDED || tries > MAX_EMBEDDED * 4 {
            break;
        }
        let mut stream = serde_json::Deserializer::from_str(&text[start..]).into_iter::<Value>();
        match stream.next() {
            Some(Ok(value @ Value::Object(_))) if value.as_object().is_some_and(|map| !map.is_empty()) => {
                let end = start + stream.byte_offset();
                rest.push_str(&text[from..start]);
                rest.push(' ');
                found.push(value);
                from = end;
                at = end;
            }
            _ => at = start + 1,
        }
    }
    if found.is_empty() {
        return (Cow::Borrowed(text), found);
    }
    rest.push_str(&text[from..]);
    (Cow::Owned(rest), found)
}
