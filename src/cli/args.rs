use std::path::PathBuf;

use clap::{ArgAction, Args, Parser, Subcommand};

use super::exec::ExecArgs;
use super::exit::EXIT_CODES;
use super::pipe::PipeArgs;
#[cfg(feature = "simulate")]
use super::simulate;
use super::{check, classify, completions, explain, schema, sessions, state};

/// Keeps AI-agent sessions alive: recovers failed turns.
#[derive(Debug, Parser)]
#[command(name = "backstop", version, about, after_help = EXIT_CODES, max_term_width = 100)]
pub struct Cli {
    #[command(flatten)]
    pub(super) globals: Globals,
    #[command(subcommand)]
    pub(super) verb: Verb,
}

/// Options that every verb takes.
#[derive(Debug, Clone, Args)]
pub struct Globals {
    /// Read this configuration (YAML); given again, the later file wins key by key.
    #[arg(long, global = true, help_heading = "Everywhere", value_name = "FILE")]
    pub config: Vec<PathBuf>,
    /// Keep state in this directory.
    #[arg(long, global = true, help_heading = "Everywhere", value_name = "DIR")]
    #[arg(default_value = crate::engine::DEFAULT_STATE_DIR)]
    pub state_dir: PathBuf,
    /// Write machine-readable output where the verb has one.
    #[arg(long, global = true, help_heading = "Everywhere")]
    pub json: bool,
    /// Say more on stderr: -v what happens, -vv everything.
    #[arg(short, long, global = true, help_heading = "Everywhere", action = ArgAction::Count)]
    #[arg(conflicts_with = "quiet")]
    pub verbose: u8,
    /// Say nothing on stderr but errors.
    #[arg(short, long, global = true, help_heading = "Everywhere")]
    pub quiet: bool,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(super) enum Verb {
    Exec(Box<ExecArgs>),
    Pipe(PipeArgs),
    Check(check::CheckArgs),
    Classify(classify::ClassifyArgs),
    Explain(explain::ExplainArgs),
    Sessions(sessions::SessionsArgs),
    State(state::StateArgs),
    Schema(schema::SchemaArgs),
    #[cfg(feature = "simulate")]
    Simulate(simulate::SimulateArgs),
    Completions(completions::CompletionsArgs),
}
