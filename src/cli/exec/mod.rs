//! `backstop exec`: one agent command under recovery.

mod agent;
mod args;
mod chains;
mod dry_run;
mod escalation;
mod exits;
mod input;
mod lines;
mod narrator;
mod plan;
mod report;
mod run;
mod samples;
pub(super) mod session;
mod span;
mod turns;

pub(super) use args::ExecArgs;
pub(super) use run::run;
