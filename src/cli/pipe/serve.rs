use std::sync::Arc;

use serde_json::{Value, json};

use super::answer::{Answer, directive, object};
use super::permits::Permits;
use super::request::{Ask, Refusal};
use crate::actors::{Clock, Directive, Refused, SystemClock};
use crate::{EngineError, RecoveryEngine, SessionId};

/// What every request needs.
pub(super) struct Server {
    pub engine: RecoveryEngine,
    pub permits: Permits,
    /// Every directive carries its decisions.
    pub explain: bool,
}

impl Server {
    /// Answers one request. Whatever the session's actor is to be told is in its mailbox once this was polled
    /// for the first time.
    pub async fn answer(self: Arc<Self>, ask: Ask) -> Result<Answer, Refusal> {
        let engine = &self.engine;
        let name = session(&ask).cloned();
        let answer = match ask {
            Ask::Report { session, report, seq, explain } => {
                let told = engine.report_redo(&session, *report, seq).await;
                told.map(|told| self.directive(&told, explain))
            }
            Ask::Succeeded { session, seq } => {
                engine.succeeded(&session, seq).await.map(|told| self.directive(&told, false))
            }
            Ask::Declined { session, seq, reason } => {
                engine.declined(&session, seq, reason).await.map(|told| self.directive(&told, false))
            }
            Ask::Worked { session } => engine.turn_worked(&session).map(|()| object(json!({"ok": true}))),
            Ask::Cancel { session } => {
                engine.cancel(&session).await.map(|cancelled| object(json!({"ok": true, "cancelled": cancelled})))
            }
            Ask::Reset { session } => engine.reset(&session).await.map(|()| object(json!({"ok": true}))),
            Ask::Status { session } => engine.status(&session).await.map(|status| object(json!(status))),
            Ask::Admit { lane, wait } => return self.admit(&lane, wait).await,
            Ask::Release { permit } if self.permits.release(permit) => Ok(object(json!({"ok": true}))),
            Ask::Release { permit } => {
                let (code, help) = ("no_such_permit", "release each permit once");
                let message = format!("no permit {permit} is held");
                return Err(Refusal { id: None, session: None, code, message, help });
            }
            Ask::Open => Ok(object(json!({"open": engine.open_episodes()}))),
            Ask::Metrics => Ok(object(json!({"metrics": engine.metrics()}))),
            Ask::Shutdown => Ok(object(json!({"ok": true}))),
        };
        let named = name.map(|id| id.as_str().to_owned());
        match answer {
            Ok(mut answer) => {
                if let Some(session) = named {
                    answer.entry("session").or_insert(Value::String(session));
                }
                Ok(answer)
            }
            Err(error) => Err(Refusal { session: named, ..Refusal::of(error) }),
        }
    }

    fn directive(&self, told: &Directive, explain: bool) -> Answer {
        directive(told, SystemClock.now(), explain || self.explain)
    }

    async fn admit(&self, lane: &crate::LaneKey, wait: Option<std::time::Duration>) -> Result<Answer, Refusal> {
        match self.engine.admit(lane, wait).await {
            Ok(permit) => {
                let permit = self.permits.keep(permit);
                Ok(object(json!({"lane": lane, "action": "go", "permit": permit})))
            }
            Err(Refused::Closed { not_before }) => {
                let wait_ms = not_before.since(SystemClock.now()).as_millis();
                Ok(object(json!({"lane": lane, "action": "wait", "not_before": not_before, "wait_ms": wait_ms})))
            }
            Err(Refused::QueueFull) => Err(Refusal::of(EngineError::Busy)),
            Err(Refused::Engine(error)) => Err(Refusal::of(error)),
        }
    }
}

fn session(ask: &Ask) -> Option<&SessionId> {
    match ask {
        Ask::Report { session, .. }
        | Ask::Succeeded { session, .. }
        | Ask::Declined { session, .. }
        | Ask::Worked { session }
        | Ask::Cancel { session }
        | Ask::Reset { session }
        | Ask::Status { session } => Some(session),
        Ask::Admit { .. } | Ask::Release { .. } | Ask::Open | Ask::Metrics | Ask::Shutdown => None,
    }
}
