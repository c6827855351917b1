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
    /// A scheduler that has a queue of its own puts redos back into it, and asks the lane before each
    /// turn:
    ///
    /// ```
    /// use backstop::actors::{Action, Refused};
    /// use backstop::{LaneKey, RecoveryEngine, Report, SessionId, Timestamp};
    /// use std::{cmp::Reverse, collections::BinaryHeap};
    ///
    /// # fn turn(redo: u32) -> Result<(), &'static str> { if redo < 2 { Err("503 Service Unavailable") } else { Ok(()) } }
    /// # struct Sim(std::sync::Arc<std::sync::atomic::AtomicU64>);
    /// # impl backstop::actors::Clock for Sim { fn now(&self) -> Timestamp { Timestamp::from_millis(self.0.load(std::sync::atomic::Ordering::Relaxed)) } }
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let time = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
    /// # let sleep_until = |at: Timestamp| { time.fetch_max(at.as_millis(), std::sync::atomic::Ordering::Relaxed); std::future::ready(()) };
    /// # let engine = RecoveryEngine::builder().in_memory().clock(Sim(time.clone())).spawn().await?;
    /// # /*
    /// let engine = RecoveryEngine::builder().spawn().await?;
    /// # */
    /// let lane = LaneKey::of("acme", "large", "team-a");
    /// // When a turn is due, its session, the attempt that asked for it, and how often it was redone.
    /// let mut due = BinaryHeap::from([Reverse((Timestamp::default(), SessionId::new("s1")?, None, 0))]);
    /// while let Some(Reverse((at, session, seq, redo))) = due.pop() {
    ///     sleep_until(at).await;
    ///     let permit = match engine.admit(&lane, None).await {
    ///         Ok(permit) => permit,
    ///         Err(Refused::Closed { not_before }) => {
    ///             due.push(Reverse((not_before, session, seq, redo)));
    ///             continue;
    ///         }
    ///         Err(other) => return Err(other.into()),
    ///     };
    ///     let ended = turn(redo);
    ///     drop(permit);
    ///     let directive = match (ended, seq) {
    ///         (Err(message), seq) => {
    ///             let report = Report::text(message).with_lane(lane.clone());
    ///             engine.report_redo(&session, report, seq).await?
    ///         }
    ///         (Ok(()), Some(seq)) => engine.succeeded(&session, seq).await?,
    ///         (Ok(()), None) => continue,
    ///     };
    ///     match directive.action {
    ///         Action::Redo { not_before, redo, .. } => {
    ///             due.push(Reverse((not_before, session, Some(directive.seq), redo)));
    ///         }
    ///         Action::Stop { verdict } => println!("{session}: {verdict}"),
    ///     }
    ///     for lane in engine.pressure().borrow().iter() {
    ///         println!("{}: {} free, {} wait", lane.lane, lane.free, lane.queued);
    ///     }
    /// }
    /// # assert_eq!(engine.status(&SessionId::new("s1")?).await?.episodes, 1);
    /// # assert!(time.load(std::sync::atomic::Ordering::Relaxed) > 0);
    /// # Ok(()) }
    /// ```
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
