use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::sync::watch::Receiver;
use tokio::task::{JoinSet, LocalSet};
use tokio::time::Instant;

use super::measure::{Call, Log, Measured};
use super::policy::{Policy, Way};
use super::provider::{Answer, Model};
use super::scenario::Scenario;
use super::{baseline, session};
use crate::actors::{LanePressure, Runner, TokioClock};
use crate::engine::RecoveryEngine;
use crate::failure::{LaneKey, Timestamp};
use crate::policy::seed::mix;

/// When every fleet begins to work.
const BEGINNING: Timestamp = Timestamp::from_millis(1_700_000_000_000);

/// Lets a scenario happen under a policy, on virtual time, and tells what was seen.
///
/// # Panics
///
/// Within a tokio runtime: it has its own, whose clock is paused.
pub fn simulate(scenario: &Scenario, policy: &Policy, seed: u64) -> Measured {
    let mut builder = Builder::new_current_thread();
    let runtime = builder.enable_time().start_paused(true).build().expect("one without the system's drivers");
    let fleet = LocalSet::new();
    fleet.block_on(&runtime, happen(scenario, policy, seed))
}

/// What the sessions share.
pub(super) struct World {
    pub scenario: Rc<Scenario>,
    began: Instant,
    provider: RefCell<Model>,
    pub log: RefCell<Log>,
}

impl World {
    /// The time since the beginning.
    pub fn at(&self) -> Duration {
        self.began.elapsed()
    }

    /// One call of a session to the provider.
    pub async fn call(&self, session: usize, tokens: u64) -> Answer {
        let at = self.at();
        let (answer, took) = self.provider.borrow_mut().begin(at, session, tokens);
        self.log.borrow_mut().calls.push(Call { at, session, worked: answer == Answer::Worked, took });
        tokio::time::sleep(took).await;
        self.provider.borrow_mut().end();
        answer
    }
}

async fn happen(scenario: &Scenario, policy: &Policy, seed: u64) -> Measured {
    let scenario = Rc::new(scenario.clone());
    let world = Rc::new(World {
        scenario: Rc::clone(&scenario),
        began: Instant::now(),
        provider: RefCell::new(Model::new(Rc::clone(&scenario), seed)),
        log: RefCell::default(),
    });
    let mut sessions = JoinSet::new();
    let mut watching = None;
    let engine = match &policy.way {
        Way::BackOff(back_off) => {
            for number in 0..scenario.sessions {
                sessions.spawn_local(baseline::work(Rc::clone(&world), *back_off, number, mix(seed, number as u64)));
            }
            None
        }
        Way::Engine { config, lane } => {
            let clock = TokioClock::starting_at(BEGINNING);
            let builder = RecoveryEngine::builder().config((**config).clone()).in_memory().runner(Runner::Inline);
            let engine = builder.clock(clock).seed(seed).spawn().await.expect("built-in strategies have names");
            let lane = lane.then(|| LaneKey::new("acme/large"));
            watching = Some(tokio::task::spawn_local(watch(Rc::clone(&world), engine.pressure())));
            for number in 0..scenario.sessions {
                let work =
                    session::Work { world: Rc::clone(&world), engine: engine.clone(), lane: lane.clone(), number };
                sessions.spawn_local(work.go_on(mix(seed, number as u64)));
            }
            Some(engine)
        }
    };
    while let Some(ended) = sessions.join_next().await {
        ended.expect("a simulated session does not panic");
    }
    if let Some(watching) = watching {
        watching.abort();
        let _aborted = watching.await;
    }
    if let Some(engine) = engine {
        engine.shutdown().await;
    }
    let world = Rc::into_inner(world).expect("every session has ended");
    let collapses = world.provider.into_inner().collapses;
    Measured::new(&scenario, policy.name.clone(), seed, world.log.into_inner(), collapses)
}

/// Notes when the lane closes and opens.
async fn watch(world: Rc<World>, mut pressure: Receiver<Arc<Vec<LanePressure>>>) {
    while pressure.changed().await.is_ok() {
        let closed = pressure.borrow_and_update().iter().any(|lane| lane.closed_until.is_some());
        let mut log = world.log.borrow_mut();
        if log.lane.last().is_some_and(|(_, was)| *was) != closed {
            log.lane.push((world.at(), closed));
        }
    }
}
