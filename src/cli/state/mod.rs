//! `backstop state`: the directory as a whole, where `backstop sessions` is about single sessions.

mod export;
mod import;
mod progress;
mod repair;
mod verify;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use super::exec::session::directories;
use super::human::escaped;
use super::{Exit, Globals, output};
use crate::state::{Finding, Keeper, StateError};

/// Verify, repair, export or import the state directory.
///
/// Each verb sees the directory itself, kept by hosts and `pipe`, and those of `exec` sessions inside it.
/// None touches other programs' files, and each can be stopped with Ctrl-C at any moment: the state is
/// then as it was, or as it was to be.
#[derive(Debug, Args)]
pub(super) struct StateArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Read everything, change nothing, and say what is wrong.
    ///
    /// Works beside a running process. Reads the log, every record in it, every readable copy and the
    /// journal, and compares them. A problem is what does not mend itself; a note is the rest: writes under
    /// way, copies that lag behind, files that were set aside earlier.
    ///
    /// Exit codes: 0 no problems; 1 problems, which `backstop state repair` sees to; 3 the directory cannot be
    /// used: it is not safe, cannot be read, or a newer version wrote it.
    Verify,
    /// Set aside what is damaged, and write the log anew from what is whole.
    ///
    /// Needs the directory for itself. Everything that is changed is copied to `backstop/backup-N` first, of
    /// which three are kept; what does not read is kept as `NAME.damaged-N`, three of each name. Where nothing is
    /// wrong nothing is changed.
    ///
    /// Exit codes: 0 nothing is wrong any more; 1 some problems are left; 3 the directory cannot be used;
    /// 4 another process has it.
    Repair,
    /// Write all sessions as one JSON document.
    ///
    /// Works beside a running process: the document is the state at one moment, as far as it is on disk. It has
    /// a session a line, and is read by `backstop state import`.
    ///
    /// Exit codes: 0 everything is in it; 1 something did not read and was left out; 3 the directory cannot be
    /// used.
    Export(export::ExportArgs),
    /// Put the sessions of an exported document into a directory, empty or not.
    ///
    /// Needs the directory for itself. All sessions of hosts are put in or none; those of `exec`, each in a
    /// directory of its own, one after the other. A session that is there already, equal in everything, is left
    /// alone; one that differs is a conflict, and then nothing is put in unless --replace says so.
    ///
    /// Exit codes: 0 done; 1 the document cannot be read, or there are conflicts: nothing was changed; 3 the
    /// directory cannot be used; 4 another process has it.
    Import(import::ImportArgs),
}

pub(super) fn run(args: &StateArgs, globals: &Globals) -> Exit {
    match &args.what {
        What::Verify => verify::run(globals),
        What::Repair => repair::run(globals),
        What::Export(args) => export::run(args, globals),
        What::Import(args) => import::run(args, globals),
    }
}

/// The state directory itself, and those of `exec` inside it.
fn places(state_dir: &Path) -> Vec<(Keeper, PathBuf)> {
    let own = std::iter::once((Keeper::Host, state_dir.to_owned()));
    own.chain(directories(state_dir).into_iter().map(|dir| (Keeper::Exec, dir))).collect()
}

/// Says why a directory was left alone.
fn refused(error: &StateError) -> Exit {
    output::error(error);
    match error {
        StateError::Locked { .. } => {
            output::note("stop that process and try again; `backstop state verify` and `export` work beside it");
            Exit::Busy
        }
        StateError::Newer { .. } => {
            output::note("use the version of backstop that wrote it, or a newer one");
            Exit::State
        }
        StateError::TooLarge { .. } => Exit::Problems,
        _ => Exit::State,
    }
}

/// The graver of two ends.
fn worse(one: Exit, other: Exit) -> Exit {
    if one.code() >= other.code() { one } else { other }
}

/// A finding on a line of its own; file names are other people's texts.
fn line(finding: &Finding) -> String {
    let word = if finding.kind.is_problem() { "problem" } else { "note" };
    format!("  {word:<8} {}", escaped(&finding.to_string()))
}

/// `1 session`, `2 sessions`.
fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}
