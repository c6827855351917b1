//! The self-healing loop: iterations over a state of the host's, each a turn that is recovered like any other.

mod attempt;
mod budget;
mod builder;
mod checkpoints;
mod client;
mod events;
mod executor;
mod failure;
mod progress;
mod report;
mod run;

pub use budget::Budget;
pub use builder::{OnSpiral, SelfHealingLoop};
pub use checkpoints::CheckpointManager;
pub use events::{LoopEvent, LoopEvents};
pub use executor::{RecoveryExecutor, RecoveryResult};
pub use failure::{Failure, Step};
pub use report::{ActionTally, Ended, LeftOut, LoopReport, RecoverySummary};
