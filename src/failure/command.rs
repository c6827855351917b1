//! Whole runs of agent command lines: which of their lines hold the outcome.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::evidence::Shape;
use super::json_text::is_blank;
use super::text::normalise;
use super::walk::Walk;

/// How many lines at the end of a stream are read when no line is marked as an error.
const TAIL_LINES: usize = 40;
/// How many JSON events of one run are read.
const MAX_EVENTS: usize = 400;

/// What a run's structured output says about its end.
#[derive(Debug)]
enum Outcome {
    Failed(Box<Value>),
    Interrupted,
    /// It worked; whether anything was answered is told where the output tells it.
    Worked {
        answered: Option<bool>,
    },
}

/// Lines that agents print in every run; they say nothing about its outcome.
static NOISE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?i)^(?:warning\b|deprecationwarning|reading additional input|yolo mode|ripgrep |at |note:|info\b|debug\b",
        r"|(?:error: )?reconnecting\.\.\.|(?:attempt \d+ failed.*)?retrying\b|loaded cached cred|-+$",
        r"|workdir: |model: |provider: |approval: |sandbox: |reasoning |session id: |tokens used|> |analytics ",
        r"|the api provider's servers|detected dumb terminal|update git |aider v|git repo: ",
        r"|repo-map: |an unexpected critical error occurred:$",
        r"|httpsconnectionpool\(host='raw\.githubusercontent\.com'.*model_prices_and_context_window)",
    ))
    .expect("a constant")
});

/// Lines by which known agents report a failure even when they end with code 0.
static FRAME: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(concat!(
        r"^(?:litellm\.\w+(?:Error|Exception|Timeout): |\[API Error: |API Error: |Empty response received from LLM",
        r"|Model .{1,80} has hit a token limit)",
    ))
    .expect("a constant")
});

/// Lines by which a failed command names its error.
static MARKED: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?i)^(?:error\b|fatal\b|panic\b|\[api error|api error|litellm\.|[\w.]{0,80}(?:error|exception)\b ?[:(]",
        r"|thread '.*' panicked|\d{3} [a-z])",
    ))
    .expect("a constant")
});

/// Banners of agents that print their answer on standard output.
static AGENT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?m)^(?:OpenAI Codex v\d|YOLO mode is enabled|> \w+ · \S+$|Ripgrep is not available)")
        .expect("a constant")
});

/// Turns the streams of a run into causes and a verdict.
pub(crate) fn read(walk: &mut Walk) {
    let stdout = walk.stdout.take().unwrap_or_default();
    let stderr = walk.stderr.take().unwrap_or_default();
    if interrupted(walk) {
        walk.verdict = Some(Shape::Cancelled);
        return;
    }
    let failed = walk.exit_code != Some(0);
    let (out_events, out_rest) = events(&stdout);
    let (err_events, err_rest) = events(&stderr);
    let outcome = outcome(&out_events, failed).or_else(|| outcome(&err_events, failed));
    // Who is killed in the middle of a turn was not stopped by a person.
    let killed = matches!(walk.exit_code, Some(134 | 137 | 139));
    let outcome = outcome.filter(|outcome| !(killed && matches!(outcome, Outcome::Interrupted)));
    match outcome {
        Some(Outcome::Interrupted) => walk.verdict = Some(Shape::Cancelled),
        Some(Outcome::Failed(value)) => {
            walk.failed = true;
            walk.verdict = Some(Shape::Failure);
            walk.value(&value, 1);
        }
        Some(Outcome::Worked { answered }) if !failed => {
            walk.verdict = Some(if answered == Some(false) { Shape::Empty } else { Shape::Success });
        }
        _ if failed => {
            let (err, out) = (causes(&err_rest), causes(&out_rest));
            if err_rest.contains("turn interrupted") {
                walk.verdict = Some(Shape::Cancelled);
            }
            if let (None, None, Some(error)) = (&err, &out, err_events.last()) {
                // An error object alone on standard error, of no agent that is known.
                walk.value(error, 1);
            }
            for text in [err, out].into_iter().flatten() {
                walk.push_text(&text);
            }
        }
        _ => quiet_run(walk, &out_rest, &err_rest, out_events.is_empty()),
    }
}

/// How a text of nothing but an agent's events ended: whether without an answer, and its failure.
pub(crate) fn end_of_events(text: &str) -> Option<(bool, Option<Value>)> {
    if !text.trim_start().starts_with('{') {
        return None;
    }
    let (events, rest) = events(text);
    let typed = events.iter().all(|event| event.get("type").is_some_and(Value::is_string));
    if events.len() < 2 || !typed || !is_blank(&rest) {
        return None;
    }
    match outcome(&events, false)? {
        Outcome::Failed(cause) => Some((true, Some(*cause))),
        Outcome::Worked { answered } => Some((answered == Some(false), None)),
        Outcome::Interrupted => None,
    }
}

/// A run that ended with code 0 and wrote no structured outcome: only fixed frames count (R1).
fn quiet_run(walk: &mut Walk, stdout: &str, stderr: &str, no_events: bool) {
    for stream in [stdout, stderr] {
        let lines: Vec<&str> = stream.lines().collect();
        let Some(last) = lines.iter().rposition(|line| FRAME.is_match(line)) else { continue };
        // What follows a frame on the same paragraph belongs to it.
        let cause = lines[last..].iter().take(6).take_while(|line| !line.starts_with("The API provider"));
        let end = cause.copied().collect::<Vec<_>>().join("\n");
        walk.failed = true;
        walk.worked = false;
        walk.verdict = Some(Shape::Failure);
        walk.push_text(&end);
        return;
    }
    // An agent that worked has answered something; nothing at all is no answer.
    let silent = is_blank(stdout) && no_events && (is_blank(stderr) || AGENT.is_match(stderr));
    walk.verdict = Some(if silent { Shape::Empty } else { Shape::Success });
}

fn interrupted(walk: &Walk) -> bool {
    walk.signal.as_deref().is_some_and(|signal| matches!(signal.trim_start_matches("SIG"), "INT" | "2" | "QUIT"))
        || walk.exit_code == Some(130)
}

/// The JSON objects of a stream, one a line or spread over lines, and what is not JSON.
fn events(stream: &str) -> (Vec<Value>, String) {
    let mut found = Vec::new();
    let mut rest = String::new();
    let mut at = 0;
    while at < stream.len() && found.len() < MAX_EVENTS {
        let line_end = stream[at..].find('\n').map_or(stream.len(), |end| at + end + 1);
        let line = &stream[at..line_end];
        if line.trim_start().starts_with(['{', '[']) {
            let mut values = serde_json::Deserializer::from_str(&stream[at..]).into_iter::<Value>();
            match values.next() {
                Some(Ok(Value::Array(items))) if items.iter().any(Value::is_object) => {
                    found.extend(items);
                    at += values.byte_offset();
                    continue;
                }
                Some(Ok(value @ Value::Object(_))) => {
                    found.push(value);
                    at += values.byte_offset();
                    continue;
                }
                _ => {}
            }
        }
        rest.push_str(line);
        at = line_end;
    }
    (found, normalise(&rest))
}

/// The last event that decides; `None` if no event speaks of the end.
fn outcome(events: &[Value], failed: bool) -> Option<Outcome> {
    let mut last = None;
    let mut answered = false;
    let mut open_turn = false;
    let mut retrying = None;
    for event in events {
        let kind = event.get("type").and_then(Value::as_str).unwrap_or_default();
        answered |= says_something(event, kind);
        match kind {
            "turn.started" => open_turn = true,
            // Killed while it tried again by itself: what it tried against is the cause.
            "system" if event.get("subtype").and_then(Value::as_str) == Some("api_retry") => {
                let fact = |key: &str| event.get(key).cloned().unwrap_or_default();
                retrying = Some(serde_json::json!({"status": fact("error_status"), "error": fact("error")}));
            }
            "result" | "run_result" => {
                open_turn = false;
                let reason = event.get("terminal_reason").and_then(Value::as_str).unwrap_or_default();
                if reason.starts_with("aborted") {
                    last = Some(Outcome::Interrupted);
                } else if is_error_result(event) {
                    last = Some(Outcome::Failed(Box::new(error_of(event))));
                } else {
                    let text = event.get("result").or_else(|| event.get("text")).and_then(Value::as_str);
                    answered |= text.is_some_and(|text| !is_blank(text));
                    last = Some(Outcome::Worked { answered: (text.is_some() || answered).then_some(answered) });
                }
            }
            "turn.failed" | "error" => {
                open_turn = false;
                let vague =
                    event.get("message").and_then(Value::as_str).is_some_and(|text| text.starts_with("Reconnecting"));
                if !vague && !matches!(last, Some(Outcome::Failed(_)) if kind == "error") {
                    last = Some(Outcome::Failed(Box::new(event.clone())));
                }
            }
            "turn.completed" => {
                open_turn = false;
                last = Some(Outcome::Worked { answered: Some(answered) });
            }
            "step_finish" => {
                let reason = event.pointer("/part/reason").and_then(Value::as_str).unwrap_or_default();
                last = Some(match reason {
                    "length" => Outcome::Failed(Box::new(serde_json::json!({"finish_reason": "length"}))),
                    "content-filter" => {
                        Outcome::Failed(Box::new(serde_json::json!({"finish_reason": "content-filter"})))
                    }
                    _ => Outcome::Worked { answered: Some(answered) },
                });
            }
            _ => {
                if let Some(message) = last_message(event, kind) {
                    last = judge_message(message).or(last);
                } else if kind.is_empty() && event.get("error").is_some_and(|error| !error.is_null()) {
                    last = Some(Outcome::Failed(Box::new(event.clone())));
                } else if kind.is_empty() && event.get("response").is_some() {
                    let text = event.get("response").and_then(Value::as_str).unwrap_or_default();
                    last = Some(Outcome::Worked { answered: Some(!is_blank(text)) });
                }
            }
        }
    }
    if let (None, Some(cause), true) = (&last, retrying, failed) {
        return Some(Outcome::Failed(Box::new(cause)));
    }
    if last.is_none() && open_turn && failed {
        // Begun, never ended, and not a word about an error: somebody stopped it.
        return Some(Outcome::Interrupted);
    }
    last
}

fn is_error_result(event: &Value) -> bool {
    let word = |key: &str| event.get(key).and_then(Value::as_str).unwrap_or_default();
    event.get("is_error").and_then(Value::as_bool) == Some(true)
        || word("subtype").starts_with("error")
        || matches!(word("status"), "error" | "failed")
        || matches!(word("finishReason"), "error" | "failed")
        || event.get("error").is_some_and(|error| !error.is_null())
}

/// A result's facts without its accounting.
fn error_of(event: &Value) -> Value {
    const KEPT: [&str; 14] = [
        "result",
        "error",
        "errors",
        "api_error",
        "api_error_status",
        "api_error_type",
        "stop_reason",
        "subtype",
        "text",
        "message",
        "terminal_reason",
        "finishReason",
        "status",
        "is_error",
    ];
    let mut kept: serde_json::Map<String, Value> = KEPT
        .iter()
        .filter_map(|key| Some(((*key).to_owned(), event.get(*key)?.clone())))
        .filter(|(key, value)| !(key == "subtype" && value == "success"))
        .collect();
    for key in ["result", "text"] {
        if let Some(text) = kept.remove(key) {
            kept.insert("message".to_owned(), text);
        }
    }
    Value::Object(kept)
}

fn says_something(event: &Value, kind: &str) -> bool {
    let text = match kind {
        "text" => event.pointer("/part/text"),
        "item.completed" if event.pointer("/item/type").and_then(Value::as_str) == Some("agent_message") => {
            event.pointer("/item/text")
        }
        "message" if event.get("role").and_then(Value::as_str) == Some("assistant") => event.get("content"),
        "assistant" => {
            return event.pointer("/message/content").and_then(Value::as_array).is_some_and(|all| {
                all.iter().any(|part| part.get("text").and_then(Value::as_str).is_some_and(|text| !is_blank(text)))
            });
        }
        _ => None,
    };
    text.and_then(Value::as_str).is_some_and(|text| !is_blank(text))
}

/// The assistant's last message, where agents wrap whole messages in events.
fn last_message<'a>(event: &'a Value, kind: &str) -> Option<&'a Value> {
    let message = match kind {
        "message_end" | "turn_end" => event.get("message")?,
        "agent_end" => event.get("messages")?.as_array()?.last()?,
        _ => return None,
    };
    (message.get("role").and_then(Value::as_str) == Some("assistant")).then_some(message)
}

fn judge_message(message: &Value) -> Option<Outcome> {
    let error = message.get("errorMessage").and_then(Value::as_str);
    match message.get("stopReason").and_then(Value::as_str)? {
        "aborted" => Some(Outcome::Interrupted),
        "error" => Some(Outcome::Failed(Box::new(serde_json::json!({"error": error.unwrap_or("error")})))),
        "length" => Some(Outcome::Failed(Box::new(serde_json::json!({"finish_reason": "length"})))),
        "stop" => {
            let parts = message.get("content").and_then(Value::as_array);
            let answered = parts.is_none_or(|parts| {
                parts.iter().any(|part| part.get("text").and_then(Value::as_str).is_some_and(|text| !is_blank(text)))
            });
            Some(Outcome::Worked { answered: Some(answered) })
        }
        _ => None,
    }
}

/// The lines of a failed run that name its error, else the end of what it wrote.
fn causes(stream: &str) -> Option<String> {
    let lines: Vec<&str> = stream.lines().filter(|line| !NOISE.is_match(line) && !line.is_empty()).collect();
    if lines.is_empty() {
        return None;
    }
    let first = lines.len().saturating_sub(TAIL_LINES);
    let from = lines.iter().rposition(|line| MARKED.is_match(line)).map_or(first, |marked| marked.min(lines.len()));
    // A marked line far above the end is part of a longer story: keep what stands around it.
    let from = if lines.len() - from > 8 { first.min(from) } else { from };
    Some(lines[from..].join("\n"))
}
