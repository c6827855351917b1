//! The outside world: session clients for the agents that Backstop can drive.

pub mod command;
