//! Backstop keeps AI-agent sessions alive.

#[cfg(feature = "cli")]
pub mod client;
pub mod actors;
pub mod failure;
pub mod policy;
pub mod state;
pub mod strategy;

pub use failure::{
    Category, Detection, ErrorPattern, Kind, LaneKey, PatternRegistry, RecoveryError, Report, SessionId, Timestamp,
};
pub use policy::{Answer, Cause, Chain, ChainKey, Proof, RecoveryConfig, Remedy, Step, Turn, Unhandled, Verdict};
pub use strategy::{Attempt, RecoveryStrategy, SessionClient, StrategyRegistry};
