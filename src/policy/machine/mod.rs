//! The chain machine: one session's way from a failure to a verdict.
//!
//! Pure. An [`Episode`] takes an [`Event`] and answers with [`Command`]s; time and randomness are
//! arguments. The same machine runs in production, under paused time and in the simulator.

mod acting;
mod command;
mod episode;
mod event;
mod executor;
mod note;
mod plan;
mod reading;
mod redoing;
mod resume;
mod waiting;

#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod tests;

pub use command::{Command, Execute, Record, Redo};
pub use episode::Episode;
pub use event::{Carrier, Event};
pub use executor::{ChainOutcome, Hands, RecoveryChainExecutor};
pub(crate) use note::millis;
pub use note::{Note, NoteKind};
pub use plan::{Fence, Moment, Opening, Plan, Redoer};
pub use reading::PhaseName;
pub use resume::Looked;
