use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::{Cli, Exit, output};

/// Print a completion script for a shell.
///
/// For example: `backstop completions bash > ~/.local/share/bash-completion/completions/backstop`.
#[derive(Debug, Args)]
pub(super) struct CompletionsArgs {
    /// The shell.
    shell: Shell,
}

pub(super) fn run(args: &CompletionsArgs) -> Exit {
    // Into memory first: writing to a closed pipe would panic in there.
    let mut script = vec![];
    clap_complete::generate(args.shell, &mut Cli::command(), "backstop", &mut script);
    output::line(String::from_utf8_lossy(&script).trim_end());
    Exit::Done
}
