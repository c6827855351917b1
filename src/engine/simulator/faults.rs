//! What goes wrong in a simulated world besides the turns themselves.

use std::time::Duration;

use super::dice::Dice;
use super::scenario::name;
use crate::engine::Target;
use crate::failure::LaneKey;

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
pub(super) const LANES: [&str; 2] = ["acme/large@team", "acme/small"];

/// Most things happen early, while much is under way.
pub(super) fn moment(dice: &mut Dice) -> Duration {
    let most = *dice.pick(&[1_000, 20_000, 200_000, 600_000]);
    dice.millis(0, most)
}

pub(super) fn fault(sessions: u64, dice: &mut Dice) -> Fault {
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

pub(super) fn trouble(dice: &mut Dice) -> Trouble {
    let from = moment(dice);
    let how = match dice.below(10) {
        0..=5 => HowBad::Fails,
        6..=8 => HowBad::Slow(dice.millis(100, 5_000)),
        // Slower than a shutdown may be.
        _ => HowBad::Slow(dice.millis(5_000, 60_000)),
    };
    Trouble { from, until: from + dice.millis(1, 60_000), how }
}
