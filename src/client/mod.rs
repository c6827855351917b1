//! The outside world: session clients for the agents that Backstop can drive.

#[cfg(feature = "cli")]
pub mod command;
#[cfg(feature = "reqwest")]
pub mod http;
