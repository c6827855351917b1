//! Rust errors as reports: what is known of their types beside their words.

mod chain;
mod link;
#[cfg(feature = "async-openai")]
mod openai;
#[cfg(feature = "reqwest")]
mod request;
#[cfg(feature = "rig")]
mod rig;
mod standard;
mod task;
