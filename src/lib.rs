//! Backstop keeps AI-agent sessions alive.
//!
//! When an agent's turn fails, it works out what kind of failure that was, runs a configured chain of
//! recovery strategies, has the turn redone, and stops when the turn is seen to work or when a person
//! must decide. It remembers where it was across crashes.
//!
//! # Three ways to drive it
//!
//! | your program | use |
//! | --- | --- |
//! | runs turns as async functions | [`engine.session(id).run(…)`](engine::SessionHandle::run): the *closed loop* |
//! | has an API that can compact, switch models and redo | [`engine.recover(…)`](RecoveryEngine::recover) with a [`SessionClient`]: the *client loop* |
//! | schedules its own turns | [`engine.report(…)`](RecoveryEngine::report) and its [`Directive`]s: the *open loop* |
//!
//! One machine decides in all three. A [`SelfHealingLoop`] runs many turns over one state, with checkpoints,
//! budgets and an eye on going round in circles. A larger actor system links the engine under its own supervisor and
//! talks to it by [`RecoveryMsg`].
//!
//! # From failure to verdict
//!
//! A value is reported → [`failure`] classifies it → [`policy`] chooses a chain and asks its strategies →
//! waits, remedies and redoes follow, each durable before it happens → a [`Verdict`].
//!
//! ```
//! use backstop::{RecoveryEngine, Report, SessionId, Verdict};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let engine = RecoveryEngine::builder().in_memory().spawn().await?;
//! let stopped = engine
//!     .session(SessionId::new("s1")?)
//!     .run(async |_| Err::<(), _>(Report::text("Permission denied by user")))
//!     .await
//!     .expect_err("nobody redoes what a person refused");
//! assert!(matches!(stopped.verdict(), Some(Verdict::Unhandled(_))));
//! # Ok(()) }
//! ```
//!
//! Panics are caught where they can happen (strategies, clients, hooks); a program built with
//! `panic = "abort"` gives that protection up.

pub mod actors;
#[cfg(feature = "cli")]
pub mod cli;
#[cfg(any(feature = "cli", feature = "reqwest"))]
pub mod client;
pub mod engine;
pub mod failure;
pub mod policy;
pub mod state;
pub mod strategy;

pub use actors::{Directive, EngineError, EngineEvent, Outcome, RecoveryMsg, Runner};
pub use engine::healing;
pub use engine::healing::{CheckpointManager, SelfHealingLoop};
pub use engine::{Done, Recovered, RecoveryEngine, Stopped, ToReport};
pub use failure::{
    Category, Detection, ErrorPattern, Kind, LaneKey, PatternRegistry, RecoveryError, Report, SessionId, Timestamp,
};
pub use policy::{Answer, Cause, Chain, ChainKey, Proof, RecoveryConfig, Remedy, Step, Turn, Unhandled, Verdict};
pub use strategy::{Attempt, RecoveryStrategy, SessionClient, StrategyRegistry};
