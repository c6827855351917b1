use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use crate::failure::{LaneKey, Report, Source};
use crate::{EngineError, SessionId};

/// One line as the host wrote it. What a field means depends on `op`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    #[serde(default)]
    op: Op,
    id: Option<Value>,
    session: Option<String>,
    error: Option<Value>,
    seq: Option<u64>,
    turn: Option<u64>,
    status: Option<u16>,
    exit_code: Option<i32>,
    signal: Option<Arc<str>>,
    #[serde(default)]
    cancelled: bool,
    #[serde(default)]
    source: Source,
    provider: Option<Arc<str>>,
    model: Option<Arc<str>>,
    tool: Option<Arc<str>>,
    lane: Option<LaneKey>,
    #[serde(default)]
    explain: bool,
    reason: Option<String>,
    wait_ms: Option<u64>,
    permit: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Op {
    #[default]
    Report,
    Succeeded,
    Declined,
    Worked,
    Cancel,
    Reset,
    Status,
    Admit,
    Release,
    Open,
    Metrics,
    Shutdown,
}

/// What a line asks for.
#[derive(Debug)]
pub(super) enum Ask {
    Report { session: SessionId, report: Box<Report>, seq: Option<u64>, explain: bool },
    Succeeded { session: SessionId, seq: u64 },
    Declined { session: SessionId, seq: u64, reason: String },
    Worked { session: SessionId },
    Cancel { session: SessionId },
    Reset { session: SessionId },
    Status { session: SessionId },
    Admit { lane: LaneKey, wait: Option<Duration> },
    Release { permit: u64 },
    Open,
    Metrics,
    Shutdown,
}

/// A line that was understood.
#[derive(Debug)]
pub(super) struct Request {
    /// The host's own mark, given back with the answer.
    pub id: Option<Value>,
    pub ask: Ask,
}

/// A line that cannot be taken, and what to do about it.
#[derive(Debug)]
pub(super) struct Refusal {
    pub id: Option<Value>,
    pub session: Option<String>,
    pub code: &'static str,
    pub message: String,
    pub help: &'static str,
}

impl Refusal {
    /// What the engine could not take.
    pub fn of(error: EngineError) -> Self {
        let (code, help) = match error {
            EngineError::Busy => ("busy", "send the line again when earlier ones are answered"),
            EngineError::ShuttingDown => ("shutting_down", "start backstop again with the same --state-dir to go on"),
            EngineError::NothingOpen => ("nothing_open", "report the failure to open an episode"),
            _ => ("stopped", "start backstop again"),
        };
        Self { id: None, session: None, code, message: error.to_string(), help }
    }
}

/// Takes one line.
///
/// # Errors
///
/// It is no JSON object, has unknown fields, or lacks what its `op` needs.
pub(super) fn parse(line: &[u8]) -> Result<Request, Refusal> {
    let refusal = |code, message, help| Refusal { id: None, session: None, code, message, help };
    let value: Value = serde_json::from_slice(line).map_err(|error| {
        refusal("bad_json", format!("the line is no JSON: {error}"), "write one JSON object a line")
    })?;
    // Even a line that cannot be taken is answered under its own mark.
    let id = value.get("id").filter(|id| !id.is_null()).cloned();
    let session = value.get("session").and_then(Value::as_str).map(str::to_owned);
    let named = |refusal: Refusal| Refusal { id: id.clone(), session: session.clone(), ..refusal };
    let fields: Fields = serde_json::from_value(value).map_err(|error| {
        named(refusal("bad_request", error.to_string(), "see `backstop pipe --help` for operations and fields"))
    })?;
    let missing = |field: &str| {
        let message = format!("`{field}` is missing");
        named(refusal("bad_request", message, "see `backstop pipe --help` for what each operation needs"))
    };
    ask(fields, missing).map(|(id, ask)| Request { id, ask })
}

fn ask(fields: Fields, missing: impl Fn(&str) -> Refusal) -> Result<(Option<Value>, Ask), Refusal> {
    let session = || {
        let id = fields.session.clone().ok_or_else(|| missing("session"))?;
        SessionId::new(id).map_err(|_| missing("session"))
    };
    let seq = || fields.seq.ok_or_else(|| missing("seq"));
    let ask = match fields.op {
        Op::Report => {
            let session = session()?;
            if fields.error.is_none() && !fields.cancelled && fields.status.is_none() && fields.exit_code.is_none() {
                return Err(missing("error"));
            }
            let report = Report {
                value: fields.error.unwrap_or_default(),
                source: fields.source,
                provider: fields.provider,
                model: fields.model,
                tool: fields.tool,
                status: fields.status,
                exit_code: fields.exit_code,
                signal: fields.signal,
                cancelled: fields.cancelled,
                turn: fields.turn,
                lane: fields.lane,
            };
            Ask::Report { session, report: Box::new(report), seq: fields.seq, explain: fields.explain }
        }
        Op::Succeeded => Ask::Succeeded { session: session()?, seq: seq()? },
        Op::Declined => {
            let reason = fields.reason.clone().unwrap_or_else(|| "the host cannot do it".to_owned());
            Ask::Declined { session: session()?, seq: seq()?, reason }
        }
        Op::Worked => Ask::Worked { session: session()? },
        Op::Cancel => Ask::Cancel { session: session()? },
        Op::Reset => Ask::Reset { session: session()? },
        Op::Status => Ask::Status { session: session()? },
        Op::Admit => {
            let lane = fields.lane.clone().ok_or_else(|| missing("lane"))?;
            Ask::Admit { lane, wait: fields.wait_ms.map(Duration::from_millis) }
        }
        Op::Release => Ask::Release { permit: fields.permit.ok_or_else(|| missing("permit"))? },
        Op::Open => Ask::Open,
        Op::Metrics => Ask::Metrics,
        Op::Shutdown => Ask::Shutdown,
    };
    Ok((fields.id, ask))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn refused(line: &str) -> Refusal {
        parse(line.as_bytes()).unwrap_err()
    }

    #[test]
    fn a_line_without_an_operation_is_a_report() {
        let request = parse(br#"{"session":"s1","error":{"message":"Overloaded"},"status":529,"id":7}"#).unwrap();
        assert_eq!(request.id, Some(7.into()));
        let Ask::Report { session, report, seq: None, .. } = request.ask else { panic!("{:?}", request.ask) };
        assert_eq!((session.as_str(), report.status), ("s1", Some(529)));
    }

    #[test]
    fn a_line_that_cannot_be_taken_is_answered_under_its_own_id() {
        let refusal = refused(r#"{"id":"x","session":"s1","op":"succeeded"}"#);
        assert_eq!(refusal.id, Some("x".into()));
        assert_eq!(refusal.session.as_deref(), Some("s1"));
        assert_eq!(refusal.message, "`seq` is missing");
    }

    #[test]
    fn misspelt_fields_and_operations_are_refused_by_name() {
        assert!(refused(r#"{"session":"s1","eror":"x"}"#).message.contains("eror"));
        assert!(refused(r#"{"session":"s1","op":"succeded","seq":1}"#).message.contains("succeded"));
        assert_eq!(refused("{").code, "bad_json");
        assert_eq!(refused("[]").code, "bad_request");
    }

    #[test]
    fn a_session_needs_a_name() {
        assert_eq!(refused(r#"{"error":"x"}"#).message, "`session` is missing");
        assert_eq!(refused(r#"{"session":"","error":"x"}"#).message, "`session` is missing");
    }
}
