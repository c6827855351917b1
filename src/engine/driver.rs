use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use super::ended::StopCause;
use super::session::{Ask, SessionHandle};
use crate::actors::{EngineError, LanePermit, Outcome, Refused, Room, SessionMsg, Shared, Told};
use crate::failure::{Detection, Report, SessionId, Timestamp};
use crate::policy::lane::{Blame, CallEnd};
use crate::policy::machine::{Event, Redoer};
use crate::policy::session::ReportKey;
use crate::policy::{Cause, Turn, Verdict};

/// One closed loop's place in its session; dropping it abandons the episode.
pub(super) struct Driver {
    shared: Arc<Shared>,
    id: SessionId,
    token: u64,
    deadline: Option<Timestamp>,
    started: Timestamp,
    /// The running episode and the attempt whose redo is under way.
    current: Option<(u64, u64)>,
    /// Whether the session may have an episode that only this loop drives.
    armed: bool,
}

impl Driver {
    pub fn new<R>(session: &SessionHandle<R>) -> Self {
        let shared = Arc::clone(session.engine.shared());
        let started = shared.now();
        let deadline = session.ends_at(started);
        let token = shared.moment().seed;
        if let Some(deadline) = deadline {
            shared.set_deadline(&session.id, deadline);
        }
        Self { shared, id: session.id.clone(), token, deadline, started, current: None, armed: false }
    }

    /// The first turn, or the one at which an episode found on disk goes on.
    pub async fn begin<R>(&mut self, session: &SessionHandle<R>) -> Result<Turn, StopCause> {
        self.armed = true;
        match session.adopt(Redoer::Caller, session.client.clone(), Some(self.token), self.deadline).await? {
            Some(told) => self.follow(told),
            None => {
                self.armed = false;
                Ok(Turn::first(self.id.clone()))
            }
        }
    }

    fn follow(&mut self, told: Told) -> Result<Turn, StopCause> {
        match told {
            Told::Redo { episode, redo, .. } => {
                self.current = Some((episode, redo.turn.seq));
                Ok(redo.turn.clone())
            }
            Told::Stop(outcome) => {
                self.armed = false;
                // Another loop of the session recovered it: this one's turn has its try.
                if outcome.verdict.is_recovered() && self.current.is_none() {
                    return Ok(Turn::first(self.id.clone()));
                }
                Err(outcome.into())
            }
        }
    }

    /// Reports that the turn failed, and hears how to redo it.
    pub async fn failed<R>(
        &mut self,
        session: &SessionHandle<R>,
        report: Report,
        found: Option<Detection>,
        admitted: Option<LanePermit>,
    ) -> Result<Turn, StopCause> {
        let detection = found.unwrap_or_else(|| self.shared.patterns().detect_first(&report, self.shared.now()));
        self.tell_lane(&detection, admitted);
        self.armed = true;
        let key = ReportKey { seq: self.current.map(|(_, seq)| seq), turn: report.turn };
        let ask = Ask { detection, key, redoer: Redoer::Caller, driver: Some(self.token) };
        let told = session.send(ask, session.client.clone(), self.deadline).await?;
        self.follow(told)
    }

    /// The failure is evidence about the lane that let the turn start, or the one that the report names.
    fn tell_lane(&self, detection: &Detection, admitted: Option<LanePermit>) {
        let Detection::Failure(error) = detection else { return };
        match (admitted, &error.lane) {
            (Some(permit), _) => permit.failed(error),
            (None, Some(lane)) => {
                // An error is the engine's end.
                let _ = self.shared.lanes.ended(lane, &self.id, CallEnd::Failed(Blame::of(error)));
            }
            (None, None) => {}
        }
    }

    /// Tells the session that its redo worked, and hears the verdict.
    pub async fn worked<R>(
        &mut self,
        session: &SessionHandle<R>,
        admitted: Option<LanePermit>,
    ) -> Option<Arc<Outcome>> {
        if let Some(permit) = admitted {
            permit.worked();
        }
        let Some((_, seq)) = self.current.take() else {
            self.worked_at_once(session);
            return None;
        };
        let permit = session.engine.room(&self.id, Room::Control).ok()?;
        let (reply, answer) = oneshot::channel();
        self.shared.send(&self.id, SessionMsg::Worked { seq, reply: Some((reply, permit)) }).ok()?;
        self.verdict_from(answer).await
    }

    /// A turn that worked at once shows that the session's last recovery held (R16).
    fn worked_at_once<R>(&self, session: &SessionHandle<R>) {
        if self.shared.stored.contains_key(&self.id) {
            // A session that is too busy to be told has an episode, which will tell.
            let _ = session.engine.turn_worked(&self.id);
        }
    }

    async fn verdict_from(&mut self, answer: oneshot::Receiver<Result<Told, EngineError>>) -> Option<Arc<Outcome>> {
        let Ok(Ok(Told::Stop(outcome))) = answer.await else { return None };
        self.armed = false;
        Some(outcome)
    }

    /// The deadline passed while the turn ran.
    pub async fn too_late<R>(&mut self, session: &SessionHandle<R>) -> StopCause {
        if let Some((episode, _)) = self.current.take()
            && let Ok(permit) = session.engine.room(&self.id, Room::Control)
        {
            self.shared.send_event(&self.id, episode, Event::DeadlinePassed);
            let (reply, answer) = oneshot::channel();
            let asked = self.shared.send(&self.id, SessionMsg::Await { episode, reply, permit });
            if asked.is_ok()
                && let Some(outcome) = self.verdict_from(answer).await
            {
                return outcome.into();
            }
        }
        let verdict = Verdict::Exhausted { cause: Cause::Deadline };
        let mut outcome = Outcome::without_episode(self.id.clone(), verdict, None, self.shared.now());
        outcome.started = self.started;
        Arc::new(outcome).into()
    }

    /// Runs the turn's future until the deadline; `None` when that passes first.
    pub async fn within_deadline<T>(&self, turn: impl Future<Output = T>) -> Option<T> {
        match self.time_left() {
            None => Some(turn.await),
            Some(left) => tokio::time::timeout(left, turn).await.ok(),
        }
    }

    fn time_left(&self) -> Option<Duration> {
        self.deadline.map(|deadline| self.shared.until(deadline))
    }

    /// Waits for the lane, as long as the deadline allows.
    pub async fn admit<R>(&mut self, session: &SessionHandle<R>, turn: &Turn) -> Result<Option<LanePermit>, StopCause> {
        let Some(lane) = &session.lane_of(turn) else { return Ok(None) };
        loop {
            if let Some(end) = self.shared.end() {
                return Err(end.into());
            }
            let asked = self.shared.lanes.admit_turn(lane, &self.id, turn.redo > 0, self.time_left());
            match asked.await {
                Ok(permit) => return Ok(Some(permit)),
                Err(Refused::QueueFull { .. }) => return Err(EngineError::Busy.into()),
                Err(Refused::Engine(error)) => return Err(error.into()),
                Err(Refused::Closed { not_before }) => {
                    if self.deadline.is_some_and(|deadline| not_before >= deadline) {
                        return Err(self.too_late(session).await);
                    }
                    tokio::time::sleep(self.shared.until(not_before)).await;
                }
            }
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        if self.deadline.is_some() {
            self.shared.clear_deadline(&self.id);
        }
        if self.armed && !self.shared.is_closing() {
            self.shared.send_if_live(&self.id, SessionMsg::Abandon { driver: self.token });
        }
    }
}
