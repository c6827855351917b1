//! How to recover: the strategy and client traits, and the built-in strategies.

mod attempt;
mod client;
mod traits;

pub use attempt::{Attempt, AttemptParts, EarlierAttempt};
pub use client::{ClientCall, ClientError, Prompt, SessionClient};
pub(crate) use traits::Decide;
pub use traits::{Execution, RecoveryStrategy};
