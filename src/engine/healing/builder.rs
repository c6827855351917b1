use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::broadcast;

use super::{Budget, CheckpointManager, LoopEvent, LoopEvents};
use crate::engine::RecoveryEngine;
use crate::failure::{LaneKey, SessionId};
use crate::policy::budget::Allowance;
use crate::policy::spiral::{Spiral, SpiralLimits};
use crate::strategy::SessionClient;

/// What a host answers to a spiral.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OnSpiral {
    /// Stop the loop and hand it to a person.
    Stop,
    /// Go on: the next try is told this text, and the watch starts anew.
    Reanchor(String),
}

/// A self-healing loop: iterations over a state, each recovered when it fails.
///
/// An iteration is a *transaction*: a redo starts from the state before it, unless the failure asks to keep
/// what the step left ([`Failure::keeping_state`](super::Failure::keeping_state)). Every few iterations the
/// state is kept as a checkpoint; `rollback` steps go back to one, and a loop with the same session id goes
/// on from the last one after a crash.
///
/// ```
/// use backstop::healing::{Failure, SelfHealingLoop, Step};
/// use backstop::{RecoveryEngine, Report, Runner, SessionId};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let engine = RecoveryEngine::builder().in_memory().runner(Runner::Inline).spawn().await?;
/// let mut flaky = true;
/// let report = SelfHealingLoop::new(&engine, SessionId::new("sums")?, 0_u32)
///     .max_iterations(10)
///     .run(async |iteration, sum: &mut u32, _turn| {
///         *sum += iteration;
///         if std::mem::take(&mut flaky) {
///             return Err(Report::text("503 Service Unavailable").into());
///         }
///         Ok(if *sum < 6 { Step::Continue } else { Step::Done("enough") })
///     })
///     .await?;
/// assert_eq!((report.state, report.output), (6, Some("enough")));
/// assert_eq!(report.recoveries.successful, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(()) }
/// ```
pub struct SelfHealingLoop<S> {
    pub(super) engine: RecoveryEngine,
    pub(super) id: SessionId,
    pub(super) initial: S,
    pub(super) settings: Settings<S>,
}

type SkipHook<S> = Box<dyn FnMut(u32, &mut S) + Send>;
type SpiralHook<S> = Box<dyn FnMut(&Spiral, &S) -> OnSpiral + Send>;
type Remaining<S> = Box<dyn Fn(&S) -> u64 + Send>;

pub(super) struct Settings<S> {
    pub max_iterations: u32,
    pub checkpoint_interval: u32,
    pub checkpoints_kept: usize,
    pub fresh: bool,
    pub has_alternative: bool,
    pub on_skip: Option<SkipHook<S>>,
    pub on_spiral: Option<SpiralHook<S>>,
    pub remaining: Option<Remaining<S>>,
    pub spirals: SpiralLimits,
    pub allowance: Allowance,
    pub iteration_allowance: Allowance,
    pub step_time: Option<Duration>,
    pub around: Option<Arc<Budget>>,
    pub lane: Option<LaneKey>,
    pub client: Option<Arc<dyn SessionClient>>,
    pub events: broadcast::Sender<LoopEvent>,
}

impl<S: Serialize + DeserializeOwned + Clone> SelfHealingLoop<S> {
    /// A loop over this state, under this session's name.
    pub fn new(engine: &RecoveryEngine, id: SessionId, state: S) -> Self {
        let settings = Settings {
            max_iterations: 20,
            checkpoint_interval: 3,
            checkpoints_kept: 5,
            fresh: false,
            has_alternative: false,
            on_skip: None,
            on_spiral: None,
            remaining: None,
            spirals: SpiralLimits::default(),
            allowance: Allowance::NONE,
            iteration_allowance: Allowance::NONE,
            step_time: None,
            around: None,
            lane: None,
            client: None,
            events: broadcast::channel(LoopEvents::CAPACITY).0,
        };
        Self { engine: engine.clone(), id, initial: state, settings }
    }

    /// Iterations at most, over restarts; 20 unless set.
    #[must_use]
    pub fn max_iterations(mut self, most: u32) -> Self {
        self.settings.max_iterations = most;
        self
    }

    /// Keeps the state before every this many iterations, and before the first; 3 unless set, 0 counts as 1.
    #[must_use]
    pub fn checkpoint_interval(mut self, iterations: u32) -> Self {
        self.settings.checkpoint_interval = iterations.max(1);
        self
    }

    /// Keeps the state before every iteration.
    #[must_use]
    pub fn checkpoint_before_every_iteration(self) -> Self {
        self.checkpoint_interval(1)
    }

    /// How many of the checkpoints that the loop takes itself are kept; 5 unless set, 0 counts as 1.
    #[must_use]
    pub fn checkpoints_kept(mut self, newest: usize) -> Self {
        self.settings.checkpoints_kept = newest.max(1);
        self
    }

    /// Begins anew, whatever an earlier run of this session left.
    #[must_use]
    pub fn fresh(mut self) -> Self {
        self.settings.fresh = true;
        self
    }

    /// The step has an alternative way for turns that are [`degraded`](crate::Turn::degraded). Without one
    /// `degrade` is refused, and the chain goes on.
    #[must_use]
    pub fn with_alternative(mut self) -> Self {
        self.settings.has_alternative = true;
        self
    }

    /// Is called where a sub-task is left out, to mark it in the state. Without it the iteration is over with
    /// the state as it was before.
    #[must_use]
    pub fn on_skip(mut self, mark: impl FnMut(u32, &mut S) + Send + 'static) -> Self {
        self.settings.on_skip = Some(Box::new(mark));
        self
    }

    /// Is asked what to do about a spiral; without it the loop stops and escalates.
    #[must_use]
    pub fn on_spiral(mut self, decide: impl FnMut(&Spiral, &S) -> OnSpiral + Send + 'static) -> Self {
        self.settings.on_spiral = Some(Box::new(decide));
        self
    }

    /// Measures how much is left to do: rounds that bring it to a new low are never part of a spiral.
    #[must_use]
    pub fn remaining(mut self, measure: impl Fn(&S) -> u64 + Send + 'static) -> Self {
        self.settings.remaining = Some(Box::new(measure));
        self
    }

    /// How many rounds without improvement each kind of spiral is given.
    #[must_use]
    pub fn spiral_limits(mut self, limits: SpiralLimits) -> Self {
        self.settings.spirals = limits;
        self
    }

    /// Tries and wall time of the whole loop, over restarts.
    #[must_use]
    pub fn budget(mut self, allowance: Allowance) -> Self {
        self.settings.allowance = allowance;
        self
    }

    /// Tries and wall time of one iteration, its recovery included.
    #[must_use]
    pub fn iteration_budget(mut self, allowance: Allowance) -> Self {
        self.settings.iteration_allowance = allowance;
        self
    }

    /// Wall time of one try: one that takes longer fails with a time-out, and none begins that could not
    /// finish in what is left of the budgets around it.
    #[must_use]
    pub fn step_time(mut self, most: Duration) -> Self {
        self.settings.step_time = Some(most);
        self
    }

    /// Puts the loop's budget inside another.
    #[must_use]
    pub fn inside(mut self, budget: &Arc<Budget>) -> Self {
        self.settings.around = Some(Arc::clone(budget));
        self
    }

    /// The lane that the steps use: each is admitted there first.
    #[must_use]
    pub fn lane(mut self, lane: LaneKey) -> Self {
        self.settings.lane = Some(lane);
        self
    }

    /// What can be asked of the agent's own API; rollbacks are the loop's own.
    #[must_use]
    pub fn client(mut self, client: Arc<dyn SessionClient>) -> Self {
        self.settings.client = Some(client);
        self
    }

    /// What happens in the loop from now on.
    pub fn events(&self) -> LoopEvents {
        LoopEvents(self.settings.events.subscribe())
    }

    /// The loop's checkpoints, for named ones around risky work.
    pub fn checkpoints(&self) -> CheckpointManager {
        self.engine.checkpoints(&self.id)
    }
}
