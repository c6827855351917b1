use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;

use super::progress::Progress;
use super::{count, refused};
use crate::cli::config::STDIN;
use crate::cli::exec::session::directory;
use crate::cli::human::escaped;
use crate::cli::{Exit, Globals, output};
use crate::state::{Archive, Archived, FileStore, Keeper, OnConflict, RecoveryStateStore, RestoreError, Restored};

#[derive(Debug, Args)]
pub(super) struct ImportArgs {
    /// The document; `-` is standard input.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Put the document's sessions in the place of those that are there and differ.
    #[arg(long)]
    replace: bool,
}

/// A document is never longer: it is read as a whole.
const LONGEST: u64 = 4 * 1024 * 1024 * 1024;
/// Copies written between two words on the progress.
const AT_A_TIME: usize = 16;

pub(super) fn run(args: &ImportArgs, globals: &Globals) -> Exit {
    let archive = match read(&args.file) {
        Ok(archive) => archive,
        Err(why) => {
            output::note(format_args!("error: {}: {why}", args.file.display()));
            return Exit::Problems;
        }
    };
    let by_place = by_place(archive, &globals.state_dir);
    if !args.replace {
        // All of them before the first is touched.
        for (dir, sessions) in &by_place {
            match FileStore::inspect(dir).map(|look| look.conflicts(sessions)) {
                Ok(conflicts) if conflicts.is_empty() => {}
                Ok(conflicts) => return in_conflict(&RestoreError::Exists(conflicts), dir),
                Err(error) => return refused(&error),
            }
        }
    }
    let on_conflict = if args.replace { OnConflict::Replace } else { OnConflict::Refuse };
    let mut done = Restored::default();
    for (dir, sessions) in &by_place {
        match import(dir, sessions, on_conflict, globals) {
            Ok(one) => {
                done.added += one.added;
                done.replaced += one.replaced;
                done.unchanged += one.unchanged;
            }
            Err(error) => {
                tell(done, globals);
                return match &error {
                    RestoreError::State(error) => refused(error),
                    _ => in_conflict(&error, dir),
                };
            }
        }
    }
    tell(done, globals);
    Exit::Done
}

fn read(path: &Path) -> Result<Archive, String> {
    let mut text = vec![];
    let read = match path == Path::new(STDIN) {
        true => io::stdin().lock().take(LONGEST).read_to_end(&mut text),
        false => File::open(path).and_then(|file| file.take(LONGEST).read_to_end(&mut text)),
    };
    match read {
        Ok(bytes) if bytes as u64 == LONGEST => return Err("it is larger than any document may be".to_owned()),
        Ok(_) => {}
        Err(error) => return Err(error.to_string()),
    }
    Archive::read(&text).map_err(|error| escaped(&output::with_causes(&error)))
}

/// The sessions by the directory that each goes to; the hosts' are one batch.
fn by_place(archive: Archive, state_dir: &Path) -> BTreeMap<PathBuf, Vec<Archived>> {
    let mut places: BTreeMap<PathBuf, Vec<Archived>> = BTreeMap::new();
    for one in archive.sessions {
        let dir = match one.of {
            Keeper::Host => state_dir.to_owned(),
            Keeper::Exec => directory(state_dir, &one.session),
        };
        places.entry(dir).or_default().push(one);
    }
    places
}

fn import(
    dir: &Path,
    sessions: &[Archived],
    on_conflict: OnConflict,
    globals: &Globals,
) -> Result<Restored, RestoreError> {
    let (mut store, notes) = FileStore::open(dir, Default::default())?;
    for note in notes {
        output::note(format_args!("warning: {}", escaped(&note.to_string())));
    }
    let done = store.restore(sessions, on_conflict)?;
    let progress = Progress::of("writing state files", globals);
    let all = store.refresh_views(0).unwrap_or_default();
    loop {
        match store.refresh_views(AT_A_TIME) {
            Ok(0) => break,
            Ok(left) => progress.at(all.saturating_sub(left), all),
            // The log alone counts; the next start sees to them.
            Err(error) => {
                output::note(format_args!("warning: {}", output::with_causes(&error)));
                break;
            }
        }
    }
    store.close()?;
    Ok(done)
}

fn in_conflict(error: &RestoreError, dir: &Path) -> Exit {
    output::note(format_args!("error: {}: {error}", dir.display()));
    output::note("--replace puts the document's sessions in their place; without it nothing is changed");
    Exit::Problems
}

fn tell(done: Restored, globals: &Globals) {
    let Restored { added, replaced, unchanged } = done;
    if globals.json {
        output::json_line(&json!(done));
    } else {
        let all = count(added + replaced, "session");
        output::line(format_args!(
            "{all} imported: {added} new, {replaced} in another's place; {unchanged} were there already"
        ));
    }
}
