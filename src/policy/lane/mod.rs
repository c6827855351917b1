//! Lanes: what a provider's failures say about everybody who uses it, and who may start a call when.
//!
//! Pure, like the chain machine: a [`Lane`] is told what happened and when, and answers. Evidence of all
//! its sessions opens the [circuit](Standing), a stated wait holds it, throttling narrows it, and after an
//! outage a ramp lets those who waited go one by one.

mod budget;
mod circuit;
mod evidence;
mod gate;
mod machine;
mod note;
mod rate;
mod settings;
mod suspicion;
#[cfg(test)]
mod tests;
mod thaw;

pub use evidence::{Blame, CallEnd};
pub use machine::{Lane, Start};
pub use note::{LaneNote, LaneNoteKind, Standing};
pub use settings::LaneSettings;
