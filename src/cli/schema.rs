use clap::Args;

use super::{Exit, output};
use crate::policy::config::schema_with;

/// Print the JSON Schema of the configuration.
///
/// Editors check and complete a file with it, for example by a first line
/// `# yaml-language-server: $schema=backstop.schema.json`.
#[derive(Debug, Args)]
pub(super) struct SchemaArgs {
    /// Take this own strategy's name for known; may be given several times.
    #[arg(long, value_name = "NAME")]
    known: Vec<String>,
}

pub(super) fn run(args: &SchemaArgs) -> Exit {
    let schema = schema_with(&args.known);
    output::line(format_args!("{schema:#}"));
    Exit::Done
}
