use std::borrow::Cow;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::json::{is_set, values};
use super::{ChildOutcome, EndedBy, Exit, ExitMeaning, FactPointers, FailureRules, ResultRules};
use crate::failure::{Kind, Report, Source};

/// How much of each stream's end a report carries: as much as detection was proved with.
const REPORT_TAIL: usize = 4096;

/// What became of the turn that a command was to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Judgement {
    /// It worked.
    Worked,
    /// It failed.
    Failed(Box<Report>),
    /// A person stopped it: never recovered.
    Cancelled,
    /// The run was suspended: neither worked nor failed, the episode stays open.
    Suspended,
}

/// Judges one run by what ended it, its exit, and what the rules say of its output.
///
/// The report's value is `{"exit_code", "signal"?, "stderr", "stdout"}` with the ends of both streams, and
/// beside them what is known for certain: `error` (what the agent's JSON says), `message` (why it
/// counts as a failure) and `code` (its kind, where a time-out, an exit code or the result tells it). Where
/// the rules found a failure in spite of a zero exit code, `is_error` takes its place.
///
/// A run that a time-out ended has failed, unless the agent's own result or a success pattern shows
/// that the turn was done and only the process lingered.
///
/// ```
/// use std::time::Duration;
/// use backstop::client::command::{Captured, ChildOutcome, EndedBy, Exit, FailureRules, Judgement, judge};
///
/// let outcome = ChildOutcome {
///     exit: Exit::Code(1),
///     ended_by: EndedBy::Own,
///     limit: None,
///     stdout: Captured::default(),
///     stderr: Captured { tail: b"429 Too Many Requests".to_vec(), bytes: 21, sink_closed: false },
///     duration: Duration::from_secs(2),
/// };
/// let Judgement::Failed(report) = judge(&FailureRules::default(), &outcome) else { panic!() };
/// assert_eq!(report.exit_code, Some(1));
/// assert_eq!(report.value["stderr"], "429 Too Many Requests");
/// ```
pub fn judge(rules: &FailureRules, outcome: &ChildOutcome) -> Judgement {
    match outcome.ended_by {
        EndedBy::Cancelled => return Judgement::Cancelled,
        EndedBy::Suspended => return Judgement::Suspended,
        EndedBy::Own | EndedBy::TurnTimeout | EndedBy::IdleTimeout => {}
    }
    let run = Run::read(rules, outcome);
    if run.says_cancelled() {
        return Judgement::Cancelled;
    }
    match run.failure() {
        None => Judgement::Worked,
        Some(why) => Judgement::Failed(Box::new(run.report(why))),
    }
}

/// Why a run counts as a failure.
enum Why {
    TimedOut(String),
    ResultFailed,
    JsonError,
    Matched(String),
    Exit,
    Empty,
    NoSuccess,
}

struct Run<'r> {
    rules: &'r FailureRules,
    outcome: &'r ChildOutcome,
    stdout: Cow<'r, str>,
    stderr: Cow<'r, str>,
    result: Option<(&'r ResultRules, Value)>,
    json_error: Option<Value>,
    meaning: Option<&'r ExitMeaning>,
}

impl<'r> Run<'r> {
    fn read(rules: &'r FailureRules, outcome: &'r ChildOutcome) -> Self {
        let (stdout, stderr) = (outcome.stdout.text(), outcome.stderr.text());
        let reads_json = rules.result.is_some() || !rules.json_error.is_empty();
        let values = if reads_json { values(&stdout) } else { vec![] };
        let result = rules.result.as_ref().and_then(|result| Some((result, result.find(&values)?.clone())));
        let json_error = json_error(rules, &values);
        let meaning = match outcome.exit {
            Exit::Code(code) => rules.exit_map.get(&code),
            Exit::Signal(_) | Exit::NotStarted => None,
        };
        Self { rules, outcome, stdout, stderr, result, json_error, meaning }
    }

    fn says_cancelled(&self) -> bool {
        self.meaning.is_some_and(|meaning| meaning.cancelled)
            || self.result.as_ref().is_some_and(|(rules, result)| rules.cancelled.iter().any(|m| m.holds(result)))
    }

    fn failure(&self) -> Option<Why> {
        let said_failed = self.said_failure();
        if let Some(message) = timeout_message(self.outcome) {
            let done = said_failed.is_none() && (self.answered() == Some(true) || self.succeeded() == Some(true));
            return if done { None } else { Some(Why::TimedOut(message)) };
        }
        said_failed.or_else(|| match self.outcome.exit {
            Exit::Code(0) if self.answered() == Some(false) => Some(Why::Empty),
            Exit::Code(0) if self.rules.empty_is_failure && self.is_empty() => Some(Why::Empty),
            Exit::Code(0) if self.succeeded() == Some(false) => Some(Why::NoSuccess),
            Exit::Code(0) => None,
            Exit::Code(_) | Exit::Signal(_) | Exit::NotStarted => Some(Why::Exit),
        })
    }

    /// What the output says of a failure, whatever the exit code.
    fn said_failure(&self) -> Option<Why> {
        if self.result.as_ref().is_some_and(|(rules, result)| rules.failed.iter().any(|m| m.holds(result))) {
            return Some(Why::ResultFailed);
        }
        if self.json_error.is_some() {
            return Some(Why::JsonError);
        }
        self.rules.failure_regex.iter().find_map(|pattern| {
            let found = [&self.stdout, &self.stderr].into_iter().find_map(|text| Some((text, pattern.find(text)?)))?;
            Some(Why::Matched(lines_around(found.0, found.1.range())))
        })
    }

    /// Whether the agent's result holds an answer; `None` when that cannot be told.
    fn answered(&self) -> Option<bool> {
        let (rules, result) = self.result.as_ref()?;
        Some(rules.answer.as_ref()?.find(result).is_some_and(is_set))
    }

    /// Whether a success pattern was found; `None` without any.
    fn succeeded(&self) -> Option<bool> {
        let patterns = &self.rules.success_regex;
        (!patterns.is_empty()).then(|| patterns.iter().any(|pattern| pattern.is_match(&self.stdout)))
    }

    fn is_empty(&self) -> bool {
        let whole = self.outcome.stdout.bytes <= self.outcome.stdout.tail.len() as u64;
        whole && self.stdout.trim().is_empty()
    }

    fn report(&self, why: Why) -> Report {
        let mut value = Map::new();
        let (exit_code, signal) = match &self.outcome.exit {
            Exit::Code(code) => (Some(*code), None),
            Exit::Signal(name) => (None, Some(name.clone())),
            Exit::NotStarted => (None, None),
        };
        // Where the rules know better than a zero exit code, it is no fact that detection may trust.
        let known_better = matches!(why, Why::ResultFailed | Why::JsonError | Why::Matched(_) | Why::NoSuccess);
        let refuted = exit_code == Some(0) && known_better;
        let exit_code = exit_code.filter(|_| !refuted);
        if refuted {
            value.insert("is_error".to_owned(), true.into());
        }
        value.insert("exit_code".to_owned(), json!(exit_code));
        if let Some(signal) = &signal {
            value.insert("signal".to_owned(), json!(**signal));
        }
        value.insert("stderr".to_owned(), json!(end_of(&self.stderr)));
        value.insert("stdout".to_owned(), json!(end_of(&self.stdout)));

        let (mut kind, mut status) = (None, None);
        if let Some((rules, result)) = self.result.as_ref().filter(|_| !matches!(why, Why::Empty)) {
            kind = rules.kind(result);
            status = rules.facts.status(result);
            value.insert("error".to_owned(), rules.facts.error(result));
        } else if let Some(error) = &self.json_error {
            value.insert("error".to_owned(), error.clone());
        }
        kind = kind.or(self.meaning.and_then(|meaning| meaning.kind.as_ref()));
        status = status.or(self.meaning.and_then(|meaning| meaning.status));
        let message = match why {
            Why::TimedOut(message) => {
                kind = Some(&Kind::Timeout);
                Some(message)
            }
            Why::Empty => {
                kind = Some(&Kind::EmptyResponse);
                Some("the command ended with exit code 0 and an empty answer".to_owned())
            }
            Why::NoSuccess => Some("the command ended with exit code 0, but its output shows no success".to_owned()),
            Why::Matched(lines) => Some(lines),
            Why::ResultFailed | Why::JsonError | Why::Exit => None,
        };
        if let Some(message) = message {
            value.insert("message".to_owned(), message.into());
        }
        if let Some(kind) = kind {
            value.insert("code".to_owned(), kind.as_str().into());
        }
        let report = Report::new(value).with_source(Source::Command);
        Report { exit_code, signal, status, ..report }
    }
}

impl FactPointers {
    fn status(&self, result: &Value) -> Option<u16> {
        self.status.as_ref()?.find(result)?.as_u64()?.try_into().ok()
    }

    /// The facts as an error object; the whole result when none of them is there.
    fn error(&self, result: &Value) -> Value {
        let message =
            self.message.iter().filter_map(|at| at.find(result)).find(|text| text.is_string() && is_set(text));
        let fact = |at: &Option<super::JsonPointer>| at.as_ref().and_then(|at| at.find(result)).filter(|v| is_set(v));
        let facts = [
            ("message", message),
            ("status", fact(&self.status)),
            ("type", fact(&self.error_type)),
            ("code", fact(&self.code)),
        ];
        let facts: Map<_, _> =
            facts.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.clone()))).collect();
        if facts.is_empty() { result.clone() } else { facts.into() }
    }
}

/// What the error pointers find. A bare mark such as `true` says little, so its object is taken.
fn json_error(rules: &FailureRules, values: &[Value]) -> Option<Value> {
    rules.json_error.iter().find_map(|pointer| {
        let container = values.iter().rev().find_map(|value| pointer.container(value).map(|inner| (value, inner)));
        let (value, container) = container?;
        match pointer.find(value).filter(|found| is_set(found))? {
            Value::Bool(_) | Value::Number(_) => Some(container.clone()),
            error => Some(error.clone()),
        }
    })
}

fn timeout_message(outcome: &ChildOutcome) -> Option<String> {
    let seconds = outcome.limit.unwrap_or(Duration::ZERO).as_secs_f64();
    match outcome.ended_by {
        EndedBy::TurnTimeout => Some(format!("still running after {seconds} s: ended by backstop")),
        EndedBy::IdleTimeout => Some(format!("no output for {seconds} s: ended by backstop")),
        EndedBy::Own | EndedBy::Cancelled | EndedBy::Suspended => None,
    }
}

/// The whole lines in which a pattern was found.
fn lines_around(text: &str, found: std::ops::Range<usize>) -> String {
    let start = text[..found.start].rfind('\n').map_or(0, |end| end + 1);
    let end = text[found.end..].find('\n').map_or(text.len(), |more| found.end + more);
    end_of(text[start..end].trim()).to_owned()
}

fn end_of(text: &str) -> &str {
    let mut start = text.len().saturating_sub(REPORT_TAIL);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    &text[start..]
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
