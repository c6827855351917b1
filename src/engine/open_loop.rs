//! The open loop: the host redoes its turns itself.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::RecoveryEngine;
use crate::actors::{Directive, EngineError, Permit, ReplyTo, Room, SessionMsg, incoming};
use crate::failure::{Report, SessionId};

impl RecoveryEngine {
    /// Reports a failed turn and says what to do. Never sleeps: it answers as soon as the decision is
    /// durable, and waiting until `not_before` is the host's.
    ///
    /// A report without `seq` and turn number, while a redo is due, is that redo's result (R8).
    ///
    /// # Errors
    ///
    /// [`EngineError`] when the session cannot take it; no episode changed.
    pub async fn report(&self, id: &SessionId, report: Report) -> Result<Directive, EngineError> {
        self.report_redo(id, report, None).await
    }

    /// Reports that the redo of this attempt failed. One that is out of date changes nothing and is
    /// answered by the current directive or the last verdict.
    ///
    /// # Errors
    ///
    /// [`EngineError`] when the session cannot take it; no episode changed.
    pub async fn report_redo(
        &self,
        id: &SessionId,
        report: Report,
        seq: Option<u64>,
    ) -> Result<Directive, EngineError> {
        let permit = self.room(id, Room::Report)?;
        let (incoming, answer) = incoming(self.shared(), report, seq, permit);
        self.shared().send(id, SessionMsg::Report(Box::new(incoming)))?;
        Ok(Directive::of(answer.await.map_err(|_| self.shared().lost())??))
    }

    /// The redone turn of this attempt worked: the verdict.
    ///
    /// # Errors
    ///
    /// [`EngineError`] when the session cannot take it.
    pub async fn succeeded(&self, id: &SessionId, seq: u64) -> Result<Directive, EngineError> {
        self.directive(id, |reply| SessionMsg::Worked { seq, reply: Some(reply) }).await
    }

    /// The remedy of this attempt cannot be done: what to do instead.
    ///
    /// # Errors
    ///
    /// [`EngineError`] when the session cannot take it.
    pub async fn declined(
        &self,
        id: &SessionId,
        seq: u64,
        reason: impl Into<Arc<str>>,
    ) -> Result<Directive, EngineError> {
        let reason = reason.into();
        self.directive(id, |reply| SessionMsg::Declined { seq, reason, reply: Some(reply) }).await
    }

    async fn directive(
        &self,
        id: &SessionId,
        message: impl FnOnce((ReplyTo, Permit)) -> SessionMsg,
    ) -> Result<Directive, EngineError> {
        let permit = self.room(id, Room::Control)?;
        let (reply, answer) = oneshot::channel();
        self.shared().send(id, message((reply, permit)))?;
        Ok(Directive::of(answer.await.map_err(|_| self.shared().lost())??))
    }
}
