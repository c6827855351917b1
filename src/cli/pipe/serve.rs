use std::sync::Arc;

use serde_json::{Value, json};

use super::answer::{Answer, directive, object};
use super::permits::Permits;
use super::request::{Ask, Refusal};
use crate::actors::{Action, Clock, Directive, Refused, SystemClock};
use crate::policy::Unhandled;
use crate::{EngineError, RecoveryEngine, SessionId, Verdict};

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
                return self.about_a_redo(engine.succeeded(&session, seq).await, session);
            }
            Ask::Declined { session, seq, reason } => {
                return self.about_a_redo(engine.declined(&session, seq, reason).await, session);
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
            Ask::Metrics => Ok(object(json!({"metrics": engine.metrics(), "outage": engine.last_outage()}))),
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

    /// The answer to what a host says about a redo.
    fn about_a_redo(&self, told: Result<Directive, EngineError>, session: SessionId) -> Result<Answer, Refusal> {
        let is_unknown = |told: &Directive| {
            let Action::Stop { verdict } = &told.action else { return false };
            told.seq == 0 && *verdict == Verdict::Unhandled(Unhandled::NotDetected)
        };
        let refusal = match told {
            Ok(told) if !is_unknown(&told) => return Ok(self.directive(&told, false)),
            Ok(_) => Refusal::unknown_session(),
            Err(error) => Refusal::of(error),
        };
        Err(Refusal { session: Some(session.as_str().to_owned()), ..refusal })
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
            Err(Refused::QueueFull { .. }) => Err(Refusal::of(EngineError::Busy)),
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
