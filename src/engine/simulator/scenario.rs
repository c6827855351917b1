//! A world before it begins: everything that a seed decides in advance.

use std::time::Duration;

use super::configs::config;
use super::dice::Dice;
use super::failures::Script;
use super::faults::{Fault, LANES, Trouble, fault, moment, trouble};
use crate::failure::{LaneKey, SessionId};
use crate::policy::{Durability, RecoveryConfig};

/// Everything that a seed decides in advance; times are since the world's beginning.
pub(super) struct Scenario {
    pub seed: u64,
    pub sessions: Vec<SessionPlan>,
    /// The first is loaded at the beginning, the others by [`Fault::Reload`].
    pub configs: Vec<RecoveryConfig>,
    pub durability: Durability,
    /// How each life of the engine ends; the last one lasts until everybody is done.
    pub ends: Vec<(Duration, End)>,
    pub faults: Vec<(Duration, Fault)>,
    pub troubles: Vec<Trouble>,
    /// What an append costs on a good day.
    pub latency: Duration,
}

pub(super) struct SessionPlan {
    pub id: SessionId,
    pub drive: Drive,
    pub script: Script,
    pub turns: u64,
    pub lane: Option<LaneKey>,
    pub deadline: Option<Duration>,
    pub seed: u64,
}

/// Who redoes the session's turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Drive {
    Closed,
    Client { can_redo: bool, can_help: bool },
    Open,
}

/// How a life of the engine ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// The power goes off.
    Crash,
    Shutdown,
}

impl Scenario {
    pub fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed, 1);
        let count = dice.between(1, 8);
        let sessions: Vec<SessionPlan> = (0..count).map(|index| session(index, &mut dice)).collect();
        let durability = *dice.pick(&[Durability::Ahead, Durability::Ahead, Durability::Behind, Durability::Off]);
        let configs = (0..3).map(|_| config(durability, &mut dice)).collect();
        let mut ends = vec![];
        let mut at = Duration::ZERO;
        for _ in 0..dice.below(4) {
            let most = *dice.pick(&[500, 8_000, 40_000, 120_000]);
            at += dice.millis(1, most);
            ends.push((at, if dice.chance(70) { End::Crash } else { End::Shutdown }));
        }
        let mut faults: Vec<_> = (0..dice.below(12)).map(|_| (moment(&mut dice), fault(count, &mut dice))).collect();
        faults.sort_by_key(|(at, _)| *at);
        let troubles = (0..dice.below(4)).map(|_| trouble(&mut dice)).collect();
        let latency = Duration::from_millis(if dice.chance(50) { 0 } else { dice.between(1, 20) });
        Self { seed, sessions, configs, durability, ends, faults, troubles, latency }
    }
}

fn session(index: u64, dice: &mut Dice) -> SessionPlan {
    let drive = match dice.below(3) {
        0 => Drive::Closed,
        1 => Drive::Client { can_redo: dice.chance(70), can_help: dice.chance(60) },
        _ => Drive::Open,
    };
    let deadline = dice.chance(30).then(|| dice.millis(1, 300_000));
    // The caller's own turn is bounded by nothing but its deadline.
    let hangs = match drive {
        Drive::Closed => deadline.is_some(),
        Drive::Client { .. } => true,
        Drive::Open => false,
    };
    SessionPlan {
        id: name(index),
        drive,
        script: Script::new(dice, hangs),
        turns: dice.between(1, 5),
        lane: dice.chance(50).then(|| LaneKey::new(*dice.pick(&LANES))),
        deadline,
        seed: dice.roll(),
    }
}

pub(super) fn name(session: u64) -> SessionId {
    SessionId::new(format!("s{session}")).expect("it is not empty")
}
