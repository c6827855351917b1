//! Backstop keeps AI-agent sessions alive.

pub mod actors;
#[cfg(feature = "cli")]
pub mod cli;
#[cfg(feature = "cli")]
pub mod client;
pub mod engine;
pub mod failure;
pub mod policy;
pub mod state;
pub mod strategy;

pub use actors::{Directive, EngineError, EngineEvent, Outcome, RecoveryMsg, Runner};
pub use engine::{Done, Recovered, RecoveryEngine, Stopped, ToReport};
pub use failure::{
    Category, Detection, ErrorPattern, Kind, LaneKey, PatternRegistry, RecoveryError, Report, SessionId, Timestamp,
};
pub use policy::{Answer, Cause, Chain, ChainKey, Proof, RecoveryConfig, Remedy, Step, Turn, Unhandled, Verdict};
pub use strategy::{Attempt, RecoveryStrategy, SessionClient, StrategyRegistry};
