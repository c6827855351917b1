//! `backstop pipe`: reports in, directives out, for hosts in any language.

mod answer;
mod args;
mod lines;
mod permits;
mod request;
mod run;
mod serve;

pub(super) use args::PipeArgs;
pub(super) use run::run;
