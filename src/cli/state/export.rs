use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::Args;

use super::{count, places, refused, worse};
use crate::actors::{Clock, SystemClock};
use crate::cli::config::STDIN;
use crate::cli::human::escaped;
use crate::cli::{Exit, Globals, output};
use crate::state::{Archive, FileStore};

#[derive(Debug, Args)]
pub(super) struct ExportArgs {
    /// Write to this file, which must not exist yet; without it, and for `-`, to stdout.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(super) fn run(args: &ExportArgs, globals: &Globals) -> Exit {
    let mut archive = Archive { exported_at: SystemClock.now(), ..Archive::default() };
    let mut exit = Exit::Done;
    for (of, dir) in places(&globals.state_dir) {
        match FileStore::inspect(&dir) {
            Ok(look) => {
                if look.unreadable_bytes() > 0 {
                    let (bytes, dir) = (look.unreadable_bytes(), dir.display());
                    output::note(format_args!("warning: {bytes} bytes of the log in {dir} do not read"));
                    exit = worse(exit, Exit::Problems);
                }
                for (session, error) in archive.add(&look, of) {
                    let (id, why) = (escaped(session.as_str()), output::with_causes(&error));
                    output::note(format_args!("warning: session \"{id}\" is left out: {why}"));
                    exit = worse(exit, Exit::Problems);
                }
            }
            // What cannot be read at all would be missed without a word.
            Err(error) => return refused(&error),
        }
    }
    let file = args.output.as_deref().filter(|path| *path != Path::new(STDIN));
    let written = match file {
        Some(path) => save(&archive, path),
        None => print(&archive),
    };
    match written {
        Ok(()) => {
            if let Some(path) = file.filter(|_| !globals.quiet) {
                let sessions = count(archive.sessions.len(), "session");
                output::note(format_args!("{sessions} written to {}", path.display()));
            }
            exit
        }
        Err(error) => match file {
            None => output::stopped(&error),
            Some(path) => {
                output::note(format_args!("error: cannot write {}: {error}", path.display()));
                Exit::Failed
            }
        },
    }
}

fn print(archive: &Archive) -> io::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    archive.write(&mut out)?;
    out.flush()
}

/// Writes it under another name first: the file is there whole or not at all.
fn save(archive: &Archive, path: &Path) -> io::Result<()> {
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    let part = PathBuf::from(part);
    match fs::remove_file(&part) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let saved = write_to(archive, private(&part)?).and_then(|()| take_name(&part, path));
    // It has its name, or is of no use.
    let _ = fs::remove_file(&part);
    saved
}

fn write_to(archive: &Archive, file: File) -> io::Result<()> {
    let mut to = BufWriter::new(file);
    archive.write(&mut to)?;
    to.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()
}

/// Never in another file's place.
fn take_name(part: &Path, path: &Path) -> io::Result<()> {
    match fs::hard_link(part, path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Err(io::Error::new(error.kind(), "it exists already; choose another name, or remove it"))
        }
        // No second names on this file system.
        Err(_) if path.symlink_metadata().is_err() => fs::rename(part, path),
        linked => linked,
    }
}

/// A new file that nobody else can read: it holds what agents said.
fn private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}
