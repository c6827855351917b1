use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::request::Refusal;
use crate::actors::{Action, Directive};
use crate::failure::{Timestamp, mask};

/// One line of output.
pub(super) type Answer = Map<String, Value>;

/// A directive as the host gets it: flat, the verdict as one word with its reason beside it.
pub(super) fn directive(directive: &Directive, now: Timestamp, explain: bool) -> Answer {
    #[derive(Serialize)]
    struct Redo<'a> {
        wait_ms: u64,
        not_before: Timestamp,
        redo: u32,
        #[serde(skip_serializing_if = "Option::is_none")]
        remedy: Option<&'a crate::Remedy>,
        #[serde(skip_serializing_if = "Option::is_none")]
        model: Option<&'a Arc<str>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        truncate_to: Option<f64>,
        degraded: bool,
        skip: bool,
    }
    let mut answer = object(json!({
        "session": directive.session,
        "episode": directive.episode,
        "seq": directive.seq,
    }));
    match &directive.action {
        Action::Redo { remedy, not_before, redo, model, truncate_to, degraded, skip } => {
            let wait_ms = u64::try_from(not_before.since(now).as_millis()).unwrap_or(u64::MAX);
            let redo = Redo {
                wait_ms,
                not_before: *not_before,
                redo: *redo,
                remedy: remedy.as_ref(),
                model: model.as_ref(),
                truncate_to: *truncate_to,
                degraded: *degraded,
                skip: *skip,
            };
            answer.insert("action".to_owned(), "redo".into());
            answer.extend(object(json!(redo)));
        }
        Action::Stop { verdict } => {
            answer.insert("action".to_owned(), "stop".into());
            answer.insert("verdict".to_owned(), verdict.name().into());
            answer.insert("reason".to_owned(), mask(&verdict.to_string()).into_owned().into());
        }
    }
    answer.insert("injections".to_owned(), json!(directive.injections));
    if explain {
        answer.insert("explain".to_owned(), json!(directive.explain));
    }
    answer
}

/// The answer to a line that was not taken.
pub(super) fn refusal(refusal: Refusal, line: u64) -> Answer {
    let Refusal { session, code, message, help, .. } = refusal;
    let mut answer = Answer::new();
    answer.extend(session.map(|session| ("session".to_owned(), session.into())));
    let error = json!({"code": code, "message": mask(&message), "help": help, "line": line});
    answer.insert("error".to_owned(), error);
    answer
}

/// The fields of a value that is an object.
pub(super) fn object(value: Value) -> Answer {
    match value {
        Value::Object(fields) => fields,
        _ => Answer::new(),
    }
}
