//! The outside of one simulated session: its turns, and what is known of them after a crash.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::dice::Dice;
use super::failures::CANARY;
use super::scenario::{Drive, SessionPlan};
use super::world::World;
use crate::failure::{Report, SessionId};
use crate::policy::Turn;
use crate::strategy::{ClientCall, ClientError, SessionClient};

/// What the world remembers of a session; no crash of the engine loses it.
pub(super) struct Agent {
    pub index: usize,
    state: Mutex<AgentState>,
}

pub(super) struct AgentState {
    /// Turns that came to an end, one way or the other.
    pub turns: u64,
    /// Tries of the current turn.
    pub tried: u64,
    /// How the last try ended; `None` while one runs.
    pub last: Option<Result<(), Report>>,
    /// The redo that an open-loop host was told to make, and what came of it.
    pub told: Option<(u64, Option<Result<(), Report>>)>,
    pub dice: Dice,
}

impl Agent {
    pub fn new(index: usize, plan: &SessionPlan) -> Self {
        let state = AgentState { turns: 0, tried: 0, last: None, told: None, dice: Dice::new(plan.seed, 3) };
        Self { index, state: Mutex::new(state) }
    }

    pub fn lock(&self) -> MutexGuard<'_, AgentState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn plan<'a>(&self, world: &'a World) -> &'a SessionPlan {
        &world.scenario.sessions[self.index]
    }

    pub fn has_turns_left(&self, world: &World) -> bool {
        self.lock().turns < self.plan(world).turns
    }

    /// The current turn is over.
    pub fn next_turn(&self) {
        let mut state = self.lock();
        (state.turns, state.tried, state.last, state.told) = (state.turns + 1, 0, None, None);
    }

    /// Does the turn, or does it again: the effect that P1 is about.
    pub async fn perform(&self, world: &World, turn: &Turn) -> Result<(), Report> {
        world.performs(self.plan(world), turn);
        let (takes, result) = {
            let mut state = self.lock();
            let outcome = self.plan(world).script.outcome(state.turns, state.tried);
            state.tried += 1;
            state.last = None;
            outcome
        };
        match takes {
            None => std::future::pending().await,
            Some(0) => {}
            Some(millis) => tokio::time::sleep(std::time::Duration::from_millis(millis)).await,
        }
        self.lock().last = Some(result.clone());
        result
    }
}

/// A session's client: it redoes turns, and carries remedies out or not.
pub(super) struct Remote {
    pub world: Arc<World>,
    pub index: usize,
}

impl Remote {
    fn agent(&self) -> &Agent {
        &self.world.agents[self.index]
    }

    fn can(&self) -> (bool, bool) {
        match self.agent().plan(&self.world).drive {
            Drive::Client { can_redo, can_help } => (can_redo, can_help),
            Drive::Closed | Drive::Open => (false, true),
        }
    }

    async fn helps(&self) -> Result<(), ClientError> {
        if !self.can().1 {
            return Err(ClientError::Unsupported);
        }
        let (how, takes) = {
            let mut state = self.agent().lock();
            (state.dice.below(10), state.dice.millis(0, 4_000))
        };
        tokio::time::sleep(takes).await;
        match how {
            0 => panic!("{}", super::SCRIPTED_PANIC),
            1 => std::future::pending().await,
            2 => Err(ClientError::failed(format!("refused: sk-ant-api03-{CANARY}0123456789abcdef"))),
            _ => Ok(()),
        }
    }
}

impl SessionClient for Remote {
    fn compact<'a>(&'a self, _: &'a SessionId, _: &'a [Arc<str>]) -> ClientCall<'a, ()> {
        Box::pin(self.helps())
    }

    fn switch_model<'a>(&'a self, _: &'a SessionId, _: &'a str) -> ClientCall<'a, ()> {
        Box::pin(self.helps())
    }

    fn truncate<'a>(&'a self, _: &'a SessionId, _: f64) -> ClientCall<'a, ()> {
        Box::pin(self.helps())
    }

    fn can_redo(&self) -> bool {
        self.can().0
    }

    fn redo<'a>(&'a self, turn: &'a Turn) -> ClientCall<'a, ()> {
        Box::pin(async move {
            let result = self.agent().perform(&self.world, turn).await;
            if self.agent().lock().dice.chance(3) {
                panic!("{}", super::SCRIPTED_PANIC);
            }
            result.map_err(|report| ClientError::TurnFailed(Box::new(report)))
        })
    }

    fn last_turn<'a>(&'a self, _: &'a SessionId) -> ClientCall<'a, ()> {
        Box::pin(async move {
            match self.agent().lock().last.clone() {
                None => Err(ClientError::Unsupported),
                Some(result) => result.map_err(|report| ClientError::TurnFailed(Box::new(report))),
            }
        })
    }
}
