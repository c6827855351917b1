use std::sync::Arc;
use std::time::Duration;

use ractor::{ActorCell, ActorRef};
use tokio::sync::{OnceCell, oneshot};

use super::{EngineBuilder, SessionHandle, Shutdown};
use crate::actors::{
    Collected, DetectorMsg, EngineError, EventStream, LanePermit, LanePressure, MetricsMsg, Outage, Permit, Queue,
    RecoveryMsg, Refused, Room, SessionMsg, SessionStatus, Shared, ask,
};
use crate::failure::{Detection, ErrorPattern, LaneKey, PatternRegistry, Report, SessionId};
use crate::policy::config::PatternSpec;
use crate::policy::{Answer, RecoveryConfig};
use crate::state::RecoveryMetricsSnapshot;
use crate::strategy::{Attempt, RecoveryStrategy, StrategyRegistry, UnnamedStrategy};

/// The handle over an engine's actors: cheap to clone, safe to share.
///
/// No name is global: two engines live in one process without seeing each other. When the last handle
/// is dropped without [`shutdown`](Self::shutdown), the actors go on until their runtime ends.
///
/// ```
/// use backstop::{RecoveryEngine, SessionId};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let engine = RecoveryEngine::builder().in_memory().spawn().await?;
/// let done = engine
///     .session(SessionId::new("s1")?)
///     .run(async |turn| match turn.redo {
///         0 => Err(std::io::Error::other("the edit failed: oldString not found")),
///         _ => Ok("hello"),
///     })
///     .await?;
/// assert_eq!(done.value, "hello");
/// assert!(done.recovery.is_some());
/// engine.shutdown().await;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct RecoveryEngine {
    shared: Arc<Shared>,
    root: ActorRef<RecoveryMsg>,
    collected: Collected,
    ended: Arc<OnceCell<Shutdown>>,
}

/// Messages of embedders that the root has not read yet.
const ROOT_MAIL: usize = 16_384;

impl RecoveryEngine {
    /// Puts an engine together.
    pub fn builder() -> EngineBuilder {
        EngineBuilder::default()
    }

    pub(super) fn new(shared: Arc<Shared>, root: ActorRef<RecoveryMsg>, collected: Collected) -> Self {
        Self { shared, root, collected, ended: Arc::default() }
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// How the shutdown went, for everybody who asks for one.
    pub(super) fn ended(&self) -> &OnceCell<Shutdown> {
        &self.ended
    }

    pub(super) fn root(&self) -> &ActorRef<RecoveryMsg> {
        &self.root
    }

    /// A session to be driven by the caller: see [`SessionHandle`].
    pub fn session(&self, id: SessionId) -> SessionHandle {
        SessionHandle::new(self.clone(), id)
    }

    /// The root of the actor tree, for messages of an embedder's actors.
    pub fn supervisor(&self) -> ActorRef<RecoveryMsg> {
        self.root.clone()
    }

    /// Room for one [`RecoveryMsg`] about a session.
    ///
    /// # Errors
    ///
    /// [`EngineError::Busy`] when too many wait already, for the session or for the root's actor;
    /// [`EngineError::ShuttingDown`] and [`EngineError::Stopped`] at the engine's end.
    pub fn permit(&self, id: &SessionId) -> Result<Permit, EngineError> {
        let root = self.shared.root_mail.enter(ROOT_MAIL).ok_or(EngineError::Busy)?;
        Ok(self.room(id, Room::Report)?.by_way_of_root(root))
    }

    pub(super) fn room(&self, id: &SessionId, room: Room) -> Result<Permit, EngineError> {
        self.shared.enter(id, room).map(Permit::new)
    }

    /// Adds a strategy; chains of configurations loaded from now on may name it.
    ///
    /// # Errors
    ///
    /// [`UnnamedStrategy`] if its name is blank; nothing changes.
    pub fn register_strategy(
        &self,
        strategy: impl RecoveryStrategy + 'static,
    ) -> Result<Option<Arc<dyn RecoveryStrategy>>, UnnamedStrategy> {
        self.shared.strategies.register(Arc::new(strategy))
    }

    /// Adds an async closure as a strategy.
    ///
    /// # Errors
    ///
    /// [`UnnamedStrategy`] if the name is blank; nothing changes.
    pub fn register_strategy_fn<F, Fut>(
        &self,
        name: impl Into<Arc<str>>,
        execute: F,
    ) -> Result<Option<Arc<dyn RecoveryStrategy>>, UnnamedStrategy>
    where
        F: Fn(Attempt) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Answer> + Send + 'static,
    {
        self.shared.strategies.register_fn(name, execute)
    }

    /// Adds a pattern; it is in force when this returns.
    ///
    /// # Errors
    ///
    /// [`EngineError::Stopped`] at the engine's end.
    pub async fn register_error_pattern(&self, pattern: ErrorPattern) -> Result<(), EngineError> {
        let patterns = || vec![pattern.clone()];
        ask(&self.shared, Shared::detector, |done| DetectorMsg::Register { patterns: patterns(), done }).await
    }

    /// What a report is, as the detector actor sees it.
    ///
    /// # Errors
    ///
    /// [`EngineError::Stopped`] at the engine's end.
    pub async fn classify(&self, report: Report) -> Result<Detection, EngineError> {
        let report = || Box::new(report.clone());
        ask(&self.shared, Shared::detector, |reply| DetectorMsg::Classify { report: report(), reply }).await
    }

    /// The detector's patterns as published last.
    pub fn pattern_registry(&self) -> Arc<PatternRegistry> {
        self.shared.patterns()
    }

    /// The strategies.
    pub fn strategy_registry(&self) -> &StrategyRegistry {
        &self.shared.strategies
    }

    /// The configuration that new episodes keep to.
    pub fn config(&self) -> Arc<RecoveryConfig> {
        self.shared.config()
    }

    /// Puts another configuration in force. Episodes that open from now on keep to it; running ones keep
    /// their plan and its durability. The last configuration's own patterns go and this one's come; those
    /// that code registered stay. Limits of lanes, strategies and the journal hold from now on, without
    /// ending what is under way; where state is kept, and `state_file_bytes`, are as they were at the start.
    ///
    /// # Cancellation
    ///
    /// Dropped early, it may leave the new patterns in force and the rest as it was; call it again.
    ///
    /// # Errors
    ///
    /// [`EngineError::Stopped`] at the engine's end; nothing changes then.
    pub async fn reload(&self, config: RecoveryConfig) -> Result<(), EngineError> {
        let _one_at_a_time = self.shared.reloading.lock().await;
        let (patterns, text_cap) = (own_patterns(&config), config.limits().detect_bytes);
        let patterns = || patterns.clone();
        let message = |done| DetectorMsg::Reload { patterns: patterns(), text_cap, done };
        ask(&self.shared, Shared::detector, message).await?;
        self.shared.set_config(config);
        Ok(())
    }

    /// What recovery has done so far. Sessions report when an episode ends, so the last moments may
    /// still be on their way.
    pub fn metrics(&self) -> RecoveryMetricsSnapshot {
        let outage = |queue: &Queue| queue.outage.as_ref().map_or(0, |outage| outage.not_durable.len());
        let sessions_not_durable = outage(&self.shared.writer.queue()) as u64;
        RecoveryMetricsSnapshot { sessions_not_durable, ..crate::actors::snapshot(&self.collected) }
    }

    /// The last time in which records did not reach the disk, if there was one, and whose they were (R10).
    pub fn last_outage(&self) -> Option<Outage> {
        self.shared.writer.queue().outage.clone()
    }

    /// The same, once everything that was sent before is counted.
    ///
    /// # Errors
    ///
    /// [`EngineError::Stopped`] at the engine's end.
    pub async fn settled_metrics(&self) -> Result<RecoveryMetricsSnapshot, EngineError> {
        ask(&self.shared, Shared::metrics, |done| MetricsMsg::Flush { done }).await?;
        Ok(self.metrics())
    }

    /// What happens from now on, as a bounded stream with marks where this receiver missed something.
    pub fn events(&self) -> EventStream {
        self.shared.events.subscribe()
    }

    /// Stops the session's episode; tells whether there was one.
    ///
    /// # Errors
    ///
    /// [`EngineError`] when the session cannot be asked.
    pub async fn cancel(&self, id: &SessionId) -> Result<bool, EngineError> {
        self.call(id, |done| SessionMsg::Cancel { done: Some(done) }).await
    }

    /// Forgets the session: cancels its episode, clears its verdict, window and strikes (R11).
    ///
    /// # Errors
    ///
    /// [`EngineError`] when the session cannot be asked.
    pub async fn reset(&self, id: &SessionId) -> Result<(), EngineError> {
        self.call(id, |done| SessionMsg::Reset { done }).await
    }

    /// What the session is doing.
    ///
    /// # Errors
    ///
    /// [`EngineError`] when the session cannot be asked.
    pub async fn status(&self, id: &SessionId) -> Result<SessionStatus, EngineError> {
        self.call(id, |reply| SessionMsg::Status { reply }).await
    }

    /// A turn was seen to work outside episodes: the session's last recovery held (R16).
    ///
    /// # Errors
    ///
    /// [`EngineError`] when the session cannot be told.
    pub fn turn_worked(&self, id: &SessionId) -> Result<(), EngineError> {
        let permit = self.room(id, Room::Control)?;
        self.shared.send(id, SessionMsg::TurnWorked { permit })
    }

    /// Sessions whose episode was open when the engine last stopped, and that nobody goes on with yet:
    /// they wait for [`SessionHandle::run`], a report, or [`resume`](Self::resume).
    pub fn open_episodes(&self) -> Vec<SessionId> {
        let with_episode = self.shared.stored.iter().filter(|stored| stored.has_episode());
        let mut open: Vec<SessionId> = with_episode.map(|stored| stored.key().clone()).collect();
        open.retain(|id| self.shared.directory.get(id).is_none_or(|entry| entry.desk.lock().running.is_none()));
        open.sort();
        open
    }

    /// Cancels the session's episode when this actor ends.
    ///
    /// # Errors
    ///
    /// [`EngineError`] when too many requests wait, or at the engine's end.
    pub fn watch(&self, session: SessionId, cell: ActorCell) -> Result<(), EngineError> {
        let permit = self.permit(&session)?;
        self.root.send_message(RecoveryMsg::Watch { permit, session, cell }).map_err(|_| EngineError::Stopped)
    }

    /// Waits for permission to start a turn on a lane, first come, first served.
    ///
    /// # Errors
    ///
    /// [`Refused::Closed`] with the time to ask again, also when `deadline` passes first;
    /// [`Refused::QueueFull`] when too many wait.
    ///
    /// # Cancellation
    ///
    /// Safe: a caller that leaves gives its place back.
    pub async fn admit(&self, lane: &LaneKey, deadline: Option<Duration>) -> Result<LanePermit, Refused> {
        if let Some(end) = self.shared.end() {
            return Err(end.into());
        }
        self.shared.lanes.admit(lane, deadline).await
    }

    /// How busy each lane in use is, as it changes.
    pub fn pressure(&self) -> tokio::sync::watch::Receiver<Arc<Vec<LanePressure>>> {
        self.shared.lanes.pressure()
    }

    /// Sessions whose actors live.
    pub fn live_sessions(&self) -> usize {
        self.shared.directory.len()
    }

    /// Threads that own strategies hold although their time is over (R9).
    pub fn stuck_threads(&self) -> usize {
        self.shared.runner.stuck_threads()
    }

    async fn call<T>(
        &self,
        id: &SessionId,
        message: impl FnOnce(oneshot::Sender<T>) -> SessionMsg,
    ) -> Result<T, EngineError> {
        let _permit = self.room(id, Room::Control)?;
        let (reply, answer) = oneshot::channel();
        self.shared.send(id, message(reply))?;
        answer.await.map_err(|_| self.shared.lost())
    }
}

/// The patterns that a configuration brings along, as the detector takes them.
fn own_patterns(config: &RecoveryConfig) -> Vec<ErrorPattern> {
    let compiled = |spec: &PatternSpec| {
        let fields = spec.field_values().iter().map(|(path, value)| (path.to_string(), value.clone())).collect();
        let regex = spec.expression().map(|regex| &**regex);
        let pattern = ErrorPattern::data(Arc::clone(spec.name()), spec.category(), spec.kind().clone(), regex, fields);
        Some(pattern.ok()?.with_priority(spec.priority()))
    };
    // The configuration was checked when it was loaded, so none is left out.
    config.patterns().iter().filter_map(compiled).collect()
}

pub(crate) fn add_patterns(patterns: &mut PatternRegistry, config: &RecoveryConfig) {
    for pattern in own_patterns(config) {
        patterns.register(pattern);
    }
}

impl std::fmt::Debug for RecoveryEngine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RecoveryEngine").field("live_sessions", &self.live_sessions()).finish_non_exhaustive()
    }
}
