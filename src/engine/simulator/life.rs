//! One life of an engine, and one world of several lives.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::task::{JoinSet, LocalSet};
use tokio::time::Instant;

use super::agent::Remote;
use super::callers::{Life, PATIENCE};
use super::disk::Mounted;
use super::scenario::{Drive, End};
use super::strategies::{OWN, Own};
use super::trace::Trace;
use super::world::{BEGINNING, World};
use super::{chaos, client_loop, closed_loop, open_loop};
use crate::actors::{Runner, TokioClock};
use crate::engine::RecoveryEngine;
use crate::failure::{SessionId, Timestamp};
use crate::strategy::SessionClient;

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

/// Lives until the planned end, or until everybody is done; tells whether they are.
async fn live(world: &Arc<World>, born: Timestamp, end: Option<(Duration, End)>) -> bool {
    let clock = world.wind_up(born);
    let engine = start(world, clock).await;
    let life = Rc::new(Life::new(world, engine));
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
