//! The loop itself.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::attempt::{AsFound, Tried};
use super::builder::{SelfHealingLoop, Settings};
use super::checkpoints::{PROGRESS, from_json, to_json};
use super::client::{Granted, LoopClient};
use super::failure::{Failure, Step};
use super::progress::Progress;
use super::report::{Ended, LeftOut, LoopReport};
use super::{Budget, CheckpointManager, LoopEvent};
use crate::actors::{CheckpointError, EngineEvent, Outcome, Shared};
use crate::engine::{RecoveryEngine, SessionHandle, StopCause};
use crate::failure::{Kind, SessionId};
use crate::policy::budget::Spent;
use crate::policy::{Injection, Turn, Verdict};
use crate::state::Checkpoint;
use crate::strategy::SessionClient;

/// A loop under way.
pub(super) struct Run<S> {
    pub shared: Arc<Shared>,
    pub settings: Settings<S>,
    pub client: Arc<LoopClient>,
    pub iteration_budget: Arc<Budget>,
    pub progress: Progress,
    pub state: S,
    /// What a redo starts from.
    pub before: S,
    /// The redo goes on with what the failed step left.
    pub keeps_state: bool,
    /// What a host said to bring its agent back on course, for the next try.
    pub anchor: Option<Injection>,
    /// Why the loop ends, where it is no verdict of the engine.
    pub stop: Option<Ended>,
    pub last_kind: Option<Kind>,
    /// The models that this iteration fell back to.
    pub models: Vec<Arc<str>>,
    engine: RecoveryEngine,
    id: SessionId,
    checkpoints: CheckpointManager,
    budget: Arc<Budget>,
    has_checkpoint: bool,
    resumed: bool,
    durable: bool,
}

type Later<T> = Pin<Box<dyn Future<Output = Result<T, CheckpointError>> + Send>>;

/// Takes the loop's own configuration away from its session, however the loop is left.
struct OwnConfig(Arc<Shared>, SessionId);

impl Drop for OwnConfig {
    fn drop(&mut self) {
        self.0.set_own_config(&self.1, None);
    }
}

impl<S: Serialize + DeserializeOwned + Clone> SelfHealingLoop<S> {
    /// Runs the loop: the step gets the iteration's number from 1, the state, and the turn with what recovery
    /// asks of it. It runs in the caller's task and its future is not `Send`: to run several at once, join
    /// them or use a `tokio::task::LocalSet`.
    ///
    /// # Errors
    ///
    /// [`CheckpointError`] when what an earlier run left cannot be read; no step has run then. Everything
    /// later is in the report.
    ///
    /// # Cancellation
    ///
    /// Dropping the future cancels the iteration's recovery and loses what came after the last checkpoint;
    /// a loop with the same session id goes on from there. What was spent stays spent.
    pub async fn run<O, F>(self, step: F) -> Result<LoopReport<S, O>, CheckpointError>
    where
        F: AsyncFnMut(u32, &mut S, &Turn) -> Result<Step<O>, Failure>,
    {
        self.run_verified(step, async |_, _: &S| Ok(())).await
    }

    /// The same with a verifier, asked after every step that says it worked. Its failures are of domain
    /// `verifier`: a verdict on the work by [`Failure::said_no`], and what kept the verifier from judging by
    /// any other failure.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    ///
    /// # Cancellation
    ///
    /// As [`run`](Self::run).
    pub async fn run_verified<O, F, V>(self, mut step: F, mut verify: V) -> Result<LoopReport<S, O>, CheckpointError>
    where
        F: AsyncFnMut(u32, &mut S, &Turn) -> Result<Step<O>, Failure>,
        V: AsyncFnMut(u32, &S) -> Result<(), Failure>,
    {
        let mut run = Run::begin(self).await?;
        let _own = OwnConfig(Arc::clone(&run.shared), run.id.clone());
        run.shared.set_own_config(&run.id, Some(Arc::new(run.shared.config().for_loops())));
        let mut output = None;
        let ended = loop {
            if run.progress.begun >= run.settings.max_iterations {
                break Ended::MaxIterations;
            }
            if let Err(refusal) = run.budget.check(run.settings.step_time.unwrap_or_default()) {
                break Ended::Budget(refusal);
            }
            run.begin_iteration().await;
            let session = run.session();
            match session.run(async |turn: &Turn| run.attempt(turn, &mut step, &mut verify).await).await {
                Ok(done) => {
                    if let Some(outcome) = &done.recovery {
                        run.progress.recoveries.count_all(outcome);
                    }
                    output = run.complete(done.value);
                    if output.is_some() {
                        break Ended::Done;
                    }
                    if let Some(stop) = run.stop.take() {
                        break stop;
                    }
                }
                Err(stopped) => break run.stopped(stopped.cause),
            }
        };
        Ok(run.end(ended, output).await)
    }
}

impl<S: Serialize + DeserializeOwned + Clone> Run<S> {
    /// A new loop, or one that goes on from the last checkpoint.
    async fn begin(of: SelfHealingLoop<S>) -> Result<Self, CheckpointError> {
        let SelfHealingLoop { engine, id, initial, settings } = of;
        let shared = Arc::clone(engine.shared());
        let checkpoints = engine.checkpoints(&id);
        let (left, fresh) = (checkpoints.clone(), settings.fresh);
        let left: Later<_> = Box::pin(async move {
            if fresh {
                left.remove(PROGRESS).await?;
                left.prune(0).await?;
            }
            Ok(match left.load(PROGRESS).await? {
                Some(progress) => (Some(progress), left.last_good().await?),
                None => (None, None),
            })
        });
        let (kept, from): (Option<Checkpoint>, Option<Checkpoint>) = left.await?;
        let mut progress = match &kept {
            Some(kept) => from_json(&kept.state)?,
            None => Progress::new(Spent { attempts: 0, since: shared.now() }),
        };
        let state = match &from {
            Some(checkpoint) => from_json(&checkpoint.state)?,
            None => initial,
        };
        let (begun, name) = (progress.begun, from.as_ref().map(|checkpoint| Arc::clone(&checkpoint.name)));
        // Nobody listens where it fails.
        let _ = settings.events.send(LoopEvent::Started { begun, from: name });
        let limits = engine.config().limits().clone();
        let granted = Granted::default();
        granted.degrades.store(progress.degrades, Ordering::SeqCst);
        granted.skips.store(progress.skips, Ordering::SeqCst);
        let budget = Budget::reopen(
            Arc::clone(&shared),
            settings.around.as_ref(),
            "session",
            settings.allowance,
            progress.spent,
        );
        progress.spent = budget.spent();
        let client = LoopClient {
            checkpoints: checkpoints.clone(),
            host: settings.client.clone().or_else(|| shared.make_client(&id)),
            has_alternative: settings.has_alternative,
            max_degrades: limits.max_degrades,
            max_skips: limits.max_skips,
            granted,
        };
        Ok(Self {
            iteration_budget: budget.inside("iteration", settings.iteration_allowance),
            shared,
            settings,
            client: Arc::new(client),
            before: state.clone(),
            state,
            keeps_state: false,
            anchor: None,
            stop: None,
            last_kind: None,
            models: vec![],
            engine,
            id,
            checkpoints,
            budget,
            has_checkpoint: false,
            resumed: begun > 0,
            progress,
            durable: true,
        })
    }

    pub fn tell(&self, event: LoopEvent) {
        // Nobody listens where it fails.
        let _ = self.settings.events.send(event);
    }

    async fn begin_iteration(&mut self) {
        self.progress.begun += 1;
        let iteration = self.progress.begun;
        self.before = self.state.clone();
        self.iteration_budget = self.budget.inside("iteration", self.settings.iteration_allowance);
        self.models.clear();
        self.last_kind = None;
        self.tell(LoopEvent::Iteration { iteration });
        if !self.has_checkpoint || iteration.is_multiple_of(self.settings.checkpoint_interval) {
            self.checkpoint(iteration).await;
        }
    }

    /// Keeps the state before an iteration.
    async fn checkpoint(&mut self, iteration: u32) {
        let (checkpoints, most, json) =
            (self.checkpoints.clone(), self.settings.checkpoints_kept, to_json(&self.before));
        let kept: Later<Arc<str>> = Box::pin(async move {
            let name = checkpoints.keep_automatic(iteration, &json?).await?;
            checkpoints.prune(most).await?;
            Ok(name)
        });
        match kept.await {
            Ok(name) => {
                self.has_checkpoint = true;
                self.tell(LoopEvent::Checkpoint { name });
            }
            Err(error) => self.not_durable(&error),
        }
    }

    /// Makes what was begun, granted and spent durable, before its effect can be seen.
    pub async fn save_progress(&mut self) {
        self.progress.spent = self.budget.spent();
        self.progress.degrades = self.client.granted.degrades.load(Ordering::SeqCst);
        self.progress.skips = self.client.granted.skips.load(Ordering::SeqCst);
        let (checkpoints, begun, json) = (self.checkpoints.clone(), self.progress.begun, to_json(&self.progress));
        let saved: Later<()> = Box::pin(async move { checkpoints.keep(PROGRESS, begun, &json?).await });
        if let Err(error) = saved.await {
            self.not_durable(&error);
        }
    }

    /// While the disk fails, memory counts, aloud.
    pub fn not_durable(&mut self, error: &CheckpointError) {
        if std::mem::take(&mut self.durable) {
            tracing::error!(session = %self.id, %error, "the loop's progress cannot be kept; memory counts");
        }
        self.tell(LoopEvent::NotDurable { reason: error.to_string().into() });
    }

    fn session(&self) -> SessionHandle<AsFound> {
        SessionHandle {
            engine: self.engine.clone(),
            id: self.id.clone(),
            lane: self.settings.lane.clone(),
            parent: None,
            client: Some(Arc::clone(&self.client) as Arc<dyn SessionClient>),
            deadline: self.iteration_budget.time_left(),
            reporter: AsFound,
        }
    }

    /// An iteration worked; answers with the output of the last one.
    fn complete<O>(&mut self, tried: Tried<O>) -> Option<O> {
        let iteration = self.progress.begun;
        let mut round = self.round();
        round.fallback = u32::try_from(self.models.len()).unwrap_or(u32::MAX);
        let output = match tried {
            Tried::Skipped => {
                round.lesser = true;
                None
            }
            Tried::Worked { step, degraded } => {
                self.progress.completed += 1;
                if degraded {
                    round.lesser = true;
                    self.progress.degraded.push(LeftOut { iteration, kind: self.last_kind.clone() });
                }
                self.tell(LoopEvent::Completed { iteration, degraded });
                match step {
                    Step::Done(output) => Some(output),
                    Step::Continue => None,
                }
            }
        };
        self.before = self.state.clone();
        if output.is_none() {
            self.spirals(round);
        }
        output
    }

    fn stopped(&mut self, cause: StopCause) -> Ended {
        if let StopCause::Verdict(outcome) = &cause {
            self.progress.recoveries.count_all(outcome);
        }
        // What the failed iteration left is no state to go on from, unless the step said so.
        if self.keeps_state {
            self.before = self.state.clone();
        } else {
            self.state = self.before.clone();
        }
        match (self.stop.take(), cause) {
            (Some(stop), _) => stop,
            (None, StopCause::Verdict(outcome)) => Ended::Verdict(outcome),
            (None, StopCause::Engine(error)) => Ended::Engine(error),
        }
    }

    async fn end<O>(mut self, ended: Ended, output: Option<O>) -> LoopReport<S, O> {
        match &ended {
            Ended::Done => self.clear().await,
            _ => {
                self.save_progress().await;
                self.checkpoint(self.progress.begun).await;
            }
        }
        if let Ended::Spiral(spiral) = &ended {
            let verdict = Verdict::Escalated { reason: spiral.to_string().into() };
            let outcome = Outcome::without_episode(self.id.clone(), verdict, None, self.shared.now());
            let outcome = Arc::new(outcome);
            self.shared.events.publish(EngineEvent::Ended(Arc::clone(&outcome)));
            self.shared.escalated(&outcome);
        }
        self.tell(LoopEvent::Ended { how: ended.to_string().into() });
        let progress = self.progress;
        LoopReport {
            session: self.id,
            ended,
            output,
            state: self.state,
            iterations: progress.begun,
            completed: progress.completed,
            tries: self.budget.spent().attempts,
            failures_by_domain: progress.by_domain,
            failures_by_kind: progress.by_kind,
            recoveries: progress.recoveries,
            skipped: progress.skipped,
            degraded: progress.degraded,
            spirals: progress.spirals,
            resumed: self.resumed,
            durable: self.durable,
        }
    }

    /// Done: nothing is to be gone on with; named checkpoints stay.
    async fn clear(&mut self) {
        let checkpoints = self.checkpoints.clone();
        let cleared: Later<()> = Box::pin(async move {
            checkpoints.remove(PROGRESS).await?;
            checkpoints.prune(0).await
        });
        if let Err(error) = cleared.await {
            self.not_durable(&error);
        }
    }
}
