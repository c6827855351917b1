use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;

use super::args::{Cli, Verb};
#[cfg(feature = "simulate")]
use super::simulate;
use super::{Exit, check, classify, completions, exec, explain, logging, pipe, schema, sessions, state};
use crate::client::command::{CHILD_VERB, become_command};

/// The whole program: arguments in, exit code out.
pub fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    if args.next().is_some_and(|verb| verb == CHILD_VERB) {
        return become_command(args);
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let _nobody_reads = error.print();
            return match error.kind() {
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Exit::Done,
                _ => Exit::Usage,
            }
            .into();
        }
    };
    logging::start(&cli.globals);
    run(cli).into()
}

fn run(cli: Cli) -> Exit {
    let Cli { globals, verb } = cli;
    match verb {
        Verb::Exec(args) => exec::run(&args, &globals),
        Verb::Pipe(args) => pipe::run(&args, &globals),
        Verb::Check(args) => check::run(&args, &globals),
        Verb::Classify(args) => classify::run(&args, &globals),
        Verb::Explain(args) => explain::run(&args, &globals),
        Verb::Sessions(args) => sessions::run(&args, &globals),
        Verb::State(args) => state::run(&args, &globals),
        Verb::Schema(args) => schema::run(&args),
        #[cfg(feature = "simulate")]
        Verb::Simulate(args) => simulate::run(&args, &globals),
        Verb::Completions(args) => completions::run(&args),
    }
}
