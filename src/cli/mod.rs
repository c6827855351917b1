//! The command line: one file a verb, exit codes in one place.

mod args;
mod color;
mod config;
mod exec;
mod exit;
mod human;
mod logging;
mod output;
mod pipe;
mod run;

pub use args::{Cli, Globals};
pub use exit::Exit;
pub use run::main;
