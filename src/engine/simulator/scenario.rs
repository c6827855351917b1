//! A world before it begins: everything that a seed decides in advance.

use std::time::Duration;

use super::configs::config;
use super::dice::Dice;
use super::failures::Script;
use crate::engine::Target;
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

/// What goes wrong, or is asked from outside, at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fault {
    Panic(Target),
    Kill(Target),
    Cancel(usize),
    Reset(usize),
    TurnWorked(usize),
    Reload(usize),
    /// Somebody else reports a failure of the session, with this turn number.
    Bystander(usize, Option<u64>),
    /// A result of an attempt that never was.
    Stray(usize),
    HoldLane(LaneKey, Duration),
}

/// A time in which the disk is not well.
#[derive(Debug, Clone, Copy)]
pub(super) struct Trouble {
    pub from: Duration,
    pub until: Duration,
    pub how: HowBad,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum HowBad {
    Fails,
    Slow(Duration),
}

/// Lanes that sessions share.
const LANES: [&str; 2] = ["acme/large@team", "acme/small"];

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

/// Most things happen early, while much is under way.
fn moment(dice: &mut Dice) -> Duration {
    let most = *dice.pick(&[1_000, 20_000, 200_000, 600_000]);
    dice.millis(0, most)
}

fn fault(sessions: u64, dice: &mut Dice) -> Fault {
    let session = dice.below(sessions) as usize;
    match dice.below(14) {
        0..=3 => Fault::Panic(target(session, dice)),
        4..=5 => Fault::Kill(target(session, dice)),
        6 => Fault::Cancel(session),
        7 => Fault::Reset(session),
        8 => Fault::TurnWorked(session),
        9 => Fault::Reload(dice.below(3) as usize),
        10..=11 => Fault::Bystander(session, dice.chance(50).then(|| dice.below(6))),
        12 => Fault::Stray(session),
        _ => Fault::HoldLane(LaneKey::new(*dice.pick(&LANES)), dice.millis(1, 400_000)),
    }
}

/// An actor that fails: mostly a session's.
fn target(session: usize, dice: &mut Dice) -> Target {
    match dice.below(10) {
        0 => Target::Persistence,
        1 => Target::Detector,
        2 => Target::Metrics,
        3 => Target::Sessions,
        4 => Target::Lane(LaneKey::new(*dice.pick(&LANES))),
        _ => Target::Session(name(session as u64)),
    }
}

fn name(session: u64) -> SessionId {
    SessionId::new(format!("s{session}")).expect("it is not empty")
}

fn trouble(dice: &mut Dice) -> Trouble {
    let from = moment(dice);
    let how = match dice.below(10) {
        0..=5 => HowBad::Fails,
        6..=8 => HowBad::Slow(dice.millis(100, 5_000)),
        // Slower than a shutdown may be.
        _ => HowBad::Slow(dice.millis(5_000, 60_000)),
    };
    Trouble { from, until: from + dice.millis(1, 60_000), how }
}
