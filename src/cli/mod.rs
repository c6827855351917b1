//! The command line: one file a verb, exit codes in one place.

mod args;
mod config;
mod exit;
mod logging;
mod output;
mod run;

pub use args::{Cli, Globals};
pub use exit::Exit;
pub use run::main;
