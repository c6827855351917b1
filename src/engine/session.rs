use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use super::RecoveryEngine;
use super::ended::{Recovered, StopCause, Stopped};
use super::to_report::{ByFunction, ByTrait, ToReport};
use crate::actors::{Adoption, EngineError, Incoming, Outcome, Room, SessionMsg, Told, Wants};
use crate::failure::{Category, Detection, LaneKey, RecoveryError, Report, SessionId, Timestamp};
use crate::policy::machine::Redoer;
use crate::policy::session::ReportKey;
use crate::policy::{Turn, Verdict};
use crate::strategy::SessionClient;

/// One session as its caller drives it: its lane, client and deadline, then one of the loops.
///
/// `R` is how errors become reports; see [`report_with`](Self::report_with).
#[derive(Clone)]
#[must_use = "a session does nothing until it is run"]
pub struct SessionHandle<R = ByTrait> {
    pub(super) engine: RecoveryEngine,
    pub(super) id: SessionId,
    pub(super) lane: Option<LaneKey>,
    pub(super) parent: Option<SessionId>,
    pub(super) client: Option<Arc<dyn SessionClient>>,
    pub(super) deadline: Option<Duration>,
    pub(super) reporter: R,
}

impl SessionHandle {
    pub(super) fn new(engine: RecoveryEngine, id: SessionId) -> Self {
        Self { engine, id, lane: None, parent: None, client: None, deadline: None, reporter: ByTrait }
    }
}

impl<R> SessionHandle<R> {
    /// The lane that the session's turns use: each is admitted there first.
    pub fn lane(mut self, lane: LaneKey) -> Self {
        self.lane = Some(lane);
        self
    }

    /// The session that this one works for: its deadline bounds this one's.
    pub fn parent(mut self, parent: SessionId) -> Self {
        self.parent = Some(parent);
        self
    }

    /// What can be asked of the agent's own API.
    pub fn client(mut self, client: Arc<dyn SessionClient>) -> Self {
        self.client = Some(client);
        self
    }

    /// How long the whole run may take, first try included.
    pub fn deadline(mut self, limit: Duration) -> Self {
        self.deadline = Some(limit);
        self
    }

    /// Reports errors by a function, for types that are no [`ToReport`].
    pub fn report_with<F>(self, report: F) -> SessionHandle<ByFunction<F>> {
        let Self { engine, id, lane, parent, client, deadline, .. } = self;
        SessionHandle { engine, id, lane, parent, client, deadline, reporter: ByFunction(report) }
    }

    /// The same for failures that were classified when they were seen.
    #[cfg(feature = "cli")]
    pub(crate) fn report_found_with<F, G>(
        self,
        report: F,
        found: G,
    ) -> SessionHandle<super::to_report::ByFinding<F, G>> {
        let Self { engine, id, lane, parent, client, deadline, .. } = self;
        let reporter = super::to_report::ByFinding(report, found);
        SessionHandle { engine, id, lane, parent, client, deadline, reporter }
    }

    /// When the run has to be over: its own deadline or its parent's, the earlier.
    pub(super) fn ends_at(&self, now: Timestamp) -> Option<Timestamp> {
        let parents = self.parent.as_ref().and_then(|parent| self.engine.shared().deadline_of(parent));
        let own = self.deadline.map(|limit| now + limit);
        own.into_iter().chain(parents).min()
    }

    /// Recovers from a failure by the session's client, or by strategies alone where it has none; see
    /// [`RecoveryEngine::recover`].
    ///
    /// # Errors
    ///
    /// [`Stopped`] with the verdict, or with the engine's refusal.
    pub async fn recover(
        self,
        error: impl ToReport,
        category: Option<Category>,
    ) -> Result<Recovered, Stopped<RecoveryError>> {
        let shared = Arc::clone(self.engine.shared());
        let report = self.completed(error.to_report(), &Turn::first(self.id.clone()));
        let (patterns, now) = (shared.patterns(), shared.now());
        let detection = match category {
            None => patterns.detect_first(&report, now),
            Some(category) => patterns.detect_category(&report, category, now),
        };
        let client = self.client.clone().or_else(|| shared.make_client(&self.id));
        let redoer = redoer_of(client.as_ref());
        let ask = Ask { detection, key: ReportKey { seq: None, turn: report.turn }, redoer, driver: None };
        match self.send(ask, client, self.ends_at(now)).await {
            Ok(Told::Stop(outcome)) => match &outcome.verdict {
                Verdict::Recovered(proof) => Ok(Recovered { proof: *proof, outcome }),
                _ => Err(stopped(outcome)),
            },
            // A client's redo is never told to the caller.
            Ok(Told::Redo { .. }) => Err(Stopped { error: None, cause: EngineError::Stopped.into() }),
            Err(error) => Err(Stopped { error: None, cause: error.into() }),
        }
    }

    /// The lane that a turn uses: another model is another lane.
    pub(super) fn lane_of(&self, turn: &Turn) -> Option<LaneKey> {
        let lane = self.lane.as_ref()?;
        Some(turn.model.as_ref().map_or_else(|| lane.clone(), |model| lane.with_model(model)))
    }

    /// What the caller left out of a report on this turn and the session knows.
    pub(super) fn completed(&self, mut report: Report, turn: &Turn) -> Report {
        report.lane = report.lane.or_else(|| self.lane_of(turn));
        report.model = report.model.or_else(|| turn.model.clone());
        report
    }

    pub(super) async fn send(
        &self,
        ask: Ask,
        client: Option<Arc<dyn SessionClient>>,
        deadline: Option<Timestamp>,
    ) -> Result<Told, EngineError> {
        // What a redo came to has its place, however many others report.
        let room = if ask.key.seq.is_some() { Room::Control } else { Room::Report };
        let permit = self.engine.room(&self.id, room)?;
        let (reply, answer) = oneshot::channel();
        let Ask { detection, key, redoer, driver } = ask;
        let wants = wants(redoer);
        let incoming = Incoming { detection, key, redoer, client, deadline, wants, driver, reply, permit };
        self.engine.shared().send(&self.id, SessionMsg::Report(Box::new(incoming)))?;
        answer.await.map_err(|_| self.engine.shared().lost())?
    }

    /// Goes on with an open episode found on disk; `None` if there is none.
    pub(super) async fn adopt(
        &self,
        redoer: Redoer,
        client: Option<Arc<dyn SessionClient>>,
        driver: Option<u64>,
        deadline: Option<Timestamp>,
    ) -> Result<Option<Told>, EngineError> {
        let shared = self.engine.shared();
        if !shared.stored.get(&self.id).is_some_and(|stored| stored.has_episode()) {
            return Ok(None);
        }
        let permit = self.engine.room(&self.id, Room::Control)?;
        let (reply, answer) = oneshot::channel();
        let wants = wants(redoer);
        let adoption = Adoption { redoer, client, driver, deadline, wants, reply, permit };
        shared.send(&self.id, SessionMsg::Adopt(Box::new(adoption)))?;
        match answer.await.map_err(|_| shared.lost())? {
            Ok(told) => Ok(Some(told)),
            Err(EngineError::NothingOpen) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// A failure as a caller hands it over.
pub(super) struct Ask {
    pub detection: Detection,
    pub key: ReportKey,
    pub redoer: Redoer,
    pub driver: Option<u64>,
}

fn wants(redoer: Redoer) -> Wants {
    match redoer {
        Redoer::Caller | Redoer::Host => Wants::Redo,
        Redoer::Client | Redoer::Nobody => Wants::Verdict,
    }
}

fn redoer_of(client: Option<&Arc<dyn SessionClient>>) -> Redoer {
    match client {
        Some(client) if client.can_redo() => Redoer::Client,
        _ => Redoer::Nobody,
    }
}

fn stopped(outcome: Arc<Outcome>) -> Stopped<RecoveryError> {
    let error = outcome.error.as_ref().map(|error| (**error).clone());
    Stopped { error, cause: StopCause::Verdict(outcome) }
}

impl RecoveryEngine {
    /// Recovers from a failure by the session's client, where [`EngineBuilder::clients`] makes one: the
    /// turn is redone and seen to work. Without a client that can redo, a strategy's success is
    /// recovery, and `retry` runs the strategy again after its delay (R5, R6).
    ///
    /// With a category, detection is restricted to it; without a match there the failure is of kind
    /// `other`.
    ///
    /// # Errors
    ///
    /// [`Stopped`] with the verdict, or with the engine's refusal.
    ///
    /// [`EngineBuilder::clients`]: super::EngineBuilder::clients
    pub async fn recover(
        &self,
        id: &SessionId,
        error: impl ToReport,
        category: Option<Category>,
    ) -> Result<Recovered, Stopped<RecoveryError>> {
        self.session(id.clone()).recover(error, category).await
    }

    /// Goes on with an open episode found on disk, by the client that [`EngineBuilder::clients`] makes.
    ///
    /// # Errors
    ///
    /// [`EngineError::NothingOpen`] if none waits in this session.
    ///
    /// [`EngineBuilder::clients`]: super::EngineBuilder::clients
    pub async fn resume(&self, id: &SessionId) -> Result<Arc<Outcome>, EngineError> {
        let client = self.shared().make_client(id);
        let redoer = redoer_of(client.as_ref());
        match self.session(id.clone()).adopt(redoer, client, None, None).await? {
            Some(Told::Stop(outcome)) => Ok(outcome),
            Some(Told::Redo { .. }) | None => Err(EngineError::NothingOpen),
        }
    }
}
