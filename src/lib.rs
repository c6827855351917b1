//! Backstop keeps AI-agent sessions alive.

#[cfg(feature = "cli")]
pub mod client;
pub mod failure;
pub mod policy;
pub mod strategy;

pub use failure::{Category, Kind, LaneKey, RecoveryError, Report, SessionId, Timestamp};
pub use policy::{Answer, Cause, Chain, ChainKey, Proof, RecoveryConfig, Remedy, Step, Unhandled, Verdict};
pub use strategy::{Attempt, RecoveryStrategy, SessionClient, Turn};
