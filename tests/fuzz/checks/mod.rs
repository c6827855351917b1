//! What each fuzz target promises of any input, shared with the replay of the corpora.
// A target uses one of them.
#![allow(dead_code)]

pub mod config;
pub mod detect;
pub mod own_pattern;
pub mod quote;
pub mod response;
pub mod state_file;
pub mod state_log;
pub mod stem;
