//! One life of an engine, and one world of several lives.

use std::cell::Cell;
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::task::{JoinSet, LocalSet};
use tokio::time::Instant;

use super::agent::{Agent, Remote};
use super::disk::Mounted;
use super::scenario::{Drive, End};
use super::strategies::{OWN, Own};
use super::trace::Trace;
use super::world::{BEGINNING, World};
use super::{chaos, client_loop, closed_loop, open_loop};
use crate::actors::{EngineError, Outcome, Runner, TokioClock};
use crate::engine::{RecoveryEngine, StopCause};
use crate::failure::{SessionId, Timestamp};
use crate::strategy::SessionClient;

/// How long anybody may wait for an answer: far more than all bounds of an episode together.
const PATIENCE: Duration = Duration::from_secs(24 * 60 * 60);
/// How often a caller tries again that was refused.
const TRIES: u32 = 2_000;

/// Runs the world of a seed to its end and tells what was seen of it.
pub fn run_seed(seed: u64) -> Trace {
    let mut runtime = new_runtime();
    let (world, mut born) = runtime.block_on(async { (Arc::new(World::new(seed)), BEGINNING) });
    let ends = world.scenario.ends.iter().map(|end| Some(*end)).chain([None]);
    for (life, end) in ends.enumerate() {
        if life > 0 {
            // The runtime of the life before is dropped with all its tasks: that is the crash.
            runtime = new_runtime();
            world.disk.power_on();
        }
        let callers = LocalSet::new();
        let all_done = callers.block_on(&runtime, live(&world, born, end));
        // Outside its runtime the paused clock cannot be read.
        born = runtime.block_on(async { world.now() });
        let _inside = runtime.enter();
        drop(callers);
        if all_done {
            break;
        }
    }
    drop(runtime);
    let mut model = world.model();
    Trace { seed, steps: std::mem::take(&mut model.steps), broken: std::mem::take(&mut model.broken) }
}

fn new_runtime() -> Runtime {
    let mut builder = Builder::new_current_thread();
    builder.enable_time().start_paused(true).build().expect("a runtime without drivers of the system's can be built")
}

/// An engine at work, and those who use it.
pub(super) struct Life {
    pub world: Arc<World>,
    pub engine: RecoveryEngine,
    over: Cell<bool>,
    refused: Cell<u32>,
}

/// Lives until the planned end, or until everybody is done; tells whether they are.
async fn live(world: &Arc<World>, born: Timestamp, end: Option<(Duration, End)>) -> bool {
    let clock = world.wind_up(born);
    let engine = start(world, clock).await;
    let life = Rc::new(Life { world: Arc::clone(world), engine, over: Cell::new(false), refused: Cell::new(0) });
    let mut events = life.engine.events();
    let listener = Arc::clone(world);
    tokio::task::spawn_local(async move {
        while let Some(event) = events.next().await {
            listener.heard(&event);
        }
    });
    let chaos = tokio::task::spawn_local(chaos::strike(Rc::clone(&life)));
    let mut drivers = JoinSet::new();
    for (index, plan) in world.scenario.sessions.iter().enumerate() {
        let life = Rc::clone(&life);
        match plan.drive {
            Drive::Closed => drivers.spawn_local(closed_loop::drive(life, index)),
            Drive::Client { .. } => drivers.spawn_local(client_loop::drive(life, index)),
            Drive::Open => drivers.spawn_local(open_loop::drive(life, index)),
        };
    }
    let lasts = end.map_or(Duration::MAX, |(at, _)| at.saturating_sub(world.age()));
    let all_done = tokio::select! {
        biased;
        () = until_all_end(&life, &mut drivers) => true,
        () = tokio::time::sleep(lasts) => false,
    };
    chaos.abort();
    match end {
        Some((_, End::Crash)) if !all_done => {
            world.model().steps.push(format!("{} - crash", world.age().as_millis()));
            world.disk.power_off();
            world.life_ended(false);
        }
        _ => shut_down(&life, &mut drivers).await,
    }
    all_done
}

async fn start(world: &Arc<World>, clock: TokioClock) -> RecoveryEngine {
    let (clients, slow) = (Arc::clone(world), Arc::clone(world));
    let mut builder = RecoveryEngine::builder()
        .config(world.current_config().clone())
        .store(Mounted(Arc::clone(world)))
        .clock(clock)
        .runner(Runner::Inline)
        .seed(world.scenario.seed ^ world.now().as_millis())
        .clients(move |id| client_of(&clients, id));
    builder.disk_latency = Some(Arc::new(move || slow.latency()));
    for (name, way) in OWN {
        builder = builder.strategy(Own { name, way: *way, world: Arc::clone(world) });
    }
    builder.spawn().await.expect("a store that can be read and named strategies let an engine start")
}

fn client_of(world: &Arc<World>, id: &SessionId) -> Option<Arc<dyn SessionClient>> {
    let index = world.scenario.sessions.iter().position(|plan| plan.id == *id)?;
    Some(Arc::new(Remote { world: Arc::clone(world), index }))
}

async fn until_all_end(life: &Life, drivers: &mut JoinSet<()>) {
    while let Some(ended) = drivers.join_next().await {
        if let Err(error) = ended {
            life.world.broke("P4", &nobody(), format_args!("a caller's task failed: {error}"));
        }
    }
}

/// Ends the engine in good order (P6).
async fn shut_down(life: &Life, drivers: &mut JoinSet<()>) {
    let world = &life.world;
    life.over.set(true);
    let (began, limit) = (Instant::now(), life.engine.config().limits().shutdown_timeout);
    let down = life.engine.shutdown().await;
    let took = began.elapsed();
    world.model().steps.push(format!("{} - shutdown took {took:?}: {down:?}", world.age().as_millis()));
    if took > limit {
        world.broke("P6", &nobody(), format_args!("the shutdown took {took:?} of {limit:?}"));
    }
    if tokio::time::timeout(PATIENCE, until_all_end(life, drivers)).await.is_err() {
        world.broke("P4", &nobody(), "somebody was left waiting by a shutdown");
    }
    world.handed_out(&nobody(), "metrics", &life.engine.metrics());
    world.disk.power_off();
    world.life_ended(down.durable);
}

fn nobody() -> SessionId {
    SessionId::new("-").expect("it is not empty")
}

impl Life {
    /// Whether there is a turn to be done, and an engine to recover it.
    pub fn goes_on(&self, agent: &Agent) -> bool {
        !self.over.get() && agent.has_turns_left(&self.world)
    }

    /// An answer that must come (P4).
    pub async fn answer<T>(&self, what: &str, agent: &Agent, call: impl Future<Output = T>) -> Option<T> {
        let id = &agent.plan(&self.world).id;
        let answer = tokio::time::timeout(PATIENCE, call).await.ok();
        if answer.is_none() {
            self.world.broke("P4", id, format_args!("`{what}` was never answered"));
        }
        answer
    }

    /// What came of a turn's recovery: its end, or another try a little later.
    pub async fn settled(&self, agent: &Agent, result: Result<Option<Arc<Outcome>>, StopCause>) {
        let error = match result {
            Ok(None) => return agent.next_turn(),
            Ok(Some(outcome)) | Err(StopCause::Verdict(outcome)) => {
                self.world.verdict(&outcome);
                return agent.next_turn();
            }
            Err(StopCause::Engine(error)) => error,
        };
        let id = &agent.plan(&self.world).id;
        self.world.saw(id, format_args!("is refused: {error}"));
        if self.over.get() {
            return;
        }
        if matches!(error, EngineError::ShuttingDown) {
            self.world.broke("P4", id, "an engine that goes on said that it shuts down");
        }
        self.refused.set(self.refused.get() + 1);
        if self.refused.get() > TRIES {
            self.world.broke("P4", id, format_args!("is refused for ever: {error}"));
            return agent.next_turn();
        }
        let wait = agent.lock().dice.millis(100, 5_000);
        tokio::time::sleep(wait).await;
    }
}
