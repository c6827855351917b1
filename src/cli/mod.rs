//! The command line: one file a verb, exit codes in one place.

mod args;
mod check;
mod classify;
mod color;
mod completions;
mod config;
mod exec;
mod exit;
mod explain;
mod human;
mod input;
mod journal;
mod logging;
mod output;
mod pipe;
mod run;
mod schema;
mod sessions;
#[cfg(feature = "simulate")]
mod simulate;
mod state;
mod unversioned;

pub use args::{Cli, Globals};
pub use exit::Exit;
pub use run::main;
