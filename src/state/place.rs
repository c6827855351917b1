//! Directories and files that nobody else can read, redirect or replace unnoticed.

use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use super::StateError;

#[cfg(unix)]
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};

/// `O_NOFOLLOW` of Linux (`asm-generic/fcntl.h`; ARM and PowerPC have their own): a link that appears
/// between the check and the open is refused by the kernel. Elsewhere only the check protects.
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "x86", target_arch = "riscv64")))]
const NO_FOLLOW: i32 = 0o400_000;
#[cfg(all(target_os = "linux", any(target_arch = "aarch64", target_arch = "arm")))]
const NO_FOLLOW: i32 = 0o100_000;
#[cfg(all(
    unix,
    not(all(
        target_os = "linux",
        any(
            target_arch = "x86_64",
            target_arch = "x86",
            target_arch = "riscv64",
            target_arch = "aarch64",
            target_arch = "arm"
        )
    ))
))]
const NO_FOLLOW: i32 = 0;

const DIR_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// Makes sure of the state directory and of our own inside it, creating what is missing; only ours is
/// ever made stricter.
pub(super) fn prepare(state: &Path, own: &str) -> Result<PathBuf, StateError> {
    create_dir(state).map_err(|source| StateError::Open { path: state.to_owned(), source })?;
    check(state)?;
    let own = state.join(own);
    create_dir(&own).map_err(|source| StateError::Open { path: own.clone(), source })?;
    check(&own)?;
    tighten_dir(&own).map_err(|source| StateError::Open { path: own.clone(), source })?;
    Ok(own)
}

/// Refuses a directory through which others could act on us.
pub(super) fn check(dir: &Path) -> Result<(), StateError> {
    let open = |source| StateError::Open { path: dir.to_owned(), source };
    let meta = dir.symlink_metadata().map_err(open)?;
    let refuse = |why| Err(StateError::Unsafe { path: dir.to_owned(), why });
    if meta.is_symlink() {
        return refuse("it is a symbolic link");
    }
    if !meta.is_dir() {
        return Err(open(io::ErrorKind::NotADirectory.into()));
    }
    if is_open_to_all(&meta) {
        return refuse("everybody may write there, and it belongs to somebody else");
    }
    Ok(())
}

/// Creates a directory and its missing parents, private from the beginning and durable.
pub(super) fn create_dir(dir: &Path) -> io::Result<()> {
    if dir.symlink_metadata().is_ok() {
        return Ok(());
    }
    let parent = dir.parent().filter(|parent| !parent.as_os_str().is_empty());
    if let Some(parent) = parent {
        // A parent may be a link that its owner set up: only the last part has to be real.
        if !parent.exists() {
            create_dir(parent)?;
        }
    }
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    builder.mode(DIR_MODE);
    match builder.create(dir) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
        Ok(()) => sync_dir(parent.unwrap_or(Path::new("."))),
    }
}

/// Makes the names in a directory durable.
pub(super) fn sync_dir(dir: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(dir)?.sync_all() } else { Ok(()) }
}

/// Makes the names on the way to a directory durable: a killed process may have created them, and not come
/// to sync them. What lies above its parent may be another's and closed to us.
pub(super) fn sync_way(dir: &Path) -> io::Result<()> {
    let mut above = dir.ancestors().skip(1).map(|dir| if dir.as_os_str().is_empty() { Path::new(".") } else { dir });
    above.next().map_or(Ok(()), sync_dir)?;
    for dir in above {
        let _ = sync_dir(dir);
    }
    Ok(())
}

/// Creates a file that must not exist yet, to append to.
pub(super) fn create_file(path: &Path) -> io::Result<File> {
    let file = private(OpenOptions::new().append(true).create_new(true)).open(path)?;
    private_mode(&file)?;
    Ok(file)
}

/// Opens a regular file to append to.
pub(super) fn open_to_append(path: &Path) -> io::Result<File> {
    regular(path)?;
    private(OpenOptions::new().append(true)).open(path)
}

/// Opens a regular file to read.
pub(super) fn open_to_read(path: &Path) -> io::Result<File> {
    regular(path)?;
    private(OpenOptions::new().read(true)).open(path)
}

/// Opens a regular file to read and write, or creates it.
pub(super) fn open_or_create(path: &Path) -> io::Result<File> {
    match regular(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        checked => checked?,
    }
    let file = private(OpenOptions::new().read(true).write(true).create(true).truncate(false)).open(path)?;
    private_mode(&file)?;
    Ok(file)
}

/// Whether other users may read or change what is ours; what is not there any more is no matter.
pub(super) fn is_open_to_others(path: &Path) -> io::Result<bool> {
    match path.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        meta => Ok(grants_others(&meta?)),
    }
}

/// Takes the rights of others to what is ours away.
pub(super) fn close_to_others(path: &Path) -> io::Result<()> {
    if path.symlink_metadata()?.is_dir() { tighten_dir(path) } else { private_mode(&open_to_read(path)?) }
}

/// Whether the open file is still the one that the path names.
pub(super) fn is_named(file: &File, path: &Path) -> io::Result<bool> {
    let (open, named) = (file.metadata()?, path.symlink_metadata()?);
    Ok(same_file(&open, &named))
}

fn regular(path: &Path) -> io::Result<()> {
    if path.symlink_metadata()?.is_file() {
        Ok(())
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"))
    }
}

#[cfg(unix)]
fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    options.mode(FILE_MODE).custom_flags(NO_FOLLOW)
}

#[cfg(not(unix))]
fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

/// An odd umask may take our own rights away, an older file may grant others theirs.
#[cfg(unix)]
fn private_mode(file: &File) -> io::Result<()> {
    let mut mode = file.metadata()?.permissions();
    if mode.mode() & 0o777 == FILE_MODE {
        return Ok(());
    }
    mode.set_mode(FILE_MODE);
    file.set_permissions(mode)
}

#[cfg(unix)]
fn tighten_dir(dir: &Path) -> io::Result<()> {
    let meta = dir.symlink_metadata()?;
    let mut mode = meta.permissions();
    if mode.mode() & 0o777 == DIR_MODE || own_uid().is_some_and(|uid| uid != meta.uid()) {
        return Ok(());
    }
    mode.set_mode(DIR_MODE);
    std::fs::set_permissions(dir, mode)
}

#[cfg(unix)]
fn is_open_to_all(meta: &Metadata) -> bool {
    meta.mode() & 0o002 != 0 && own_uid().is_some_and(|uid| uid != meta.uid())
}

#[cfg(unix)]
fn grants_others(meta: &Metadata) -> bool {
    !meta.is_symlink() && meta.mode() & 0o077 != 0
}

/// Our user, where the system shows it as a file; elsewhere it is not known, and owners not compared.
#[cfg(unix)]
fn own_uid() -> Option<u32> {
    std::fs::metadata("/proc/self").ok().map(|meta| meta.uid())
}

#[cfg(unix)]
fn same_file(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

#[cfg(not(unix))]
fn private_mode(_: &File) -> io::Result<()> {
    Ok(())
}

#[cfg(not(unix))]
fn tighten_dir(_: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(not(unix))]
fn is_open_to_all(_: &Metadata) -> bool {
    false
}

#[cfg(not(unix))]
fn grants_others(_: &Metadata) -> bool {
    false
}

#[cfg(not(unix))]
fn same_file(_: &Metadata, _: &Metadata) -> bool {
    true
}
