//! What a state directory survives: kills at any moment and at any call, errors of the system, disks that
//! are full, read-only, slow or gone. `docs/reliability.md` says what is promised and how to run more of it.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

mod child;
mod damage;
mod faults;
mod kills;
mod load;
mod shim;
mod slow;

/// How often to do something: `usual`, or what this variable of the environment asks for.
fn times(variable: &str, usual: usize) -> usize {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// A directory on a disk in memory, if there is one: a kill does not ask whether a sync was quick, and the
/// tests are over sooner. With `BACKSTOP_ON_DISK` set it is on the real one.
fn scratch() -> tempfile::TempDir {
    let quick = (std::env::var_os("BACKSTOP_ON_DISK").is_none()).then(|| tempfile::tempdir_in("/dev/shm").ok());
    quick.flatten().unwrap_or_else(|| tempfile::tempdir().unwrap())
}
