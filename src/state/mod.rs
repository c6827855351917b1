//! What is remembered of sessions, and its files.
//!
//! A [`RecoveryStateStore`] keeps one [`StateRecord`] for each session: [`FileStore`] in a log with
//! readable views beside it, [`MemoryStore`] for the life of the process, [`NullStore`] not at all.

mod archive;
mod collector;
#[cfg(any(test, feature = "test-util"))]
pub mod conformance;
mod disk;
mod error;
mod file;
mod frame;
mod histogram;
mod import;
mod index;
mod inspect;
mod journal;
mod lock;
mod log;
mod metrics;
mod note;
mod place;
mod plain;
mod prometheus;
mod repair;
mod replay;
mod restore;
mod sha256;
mod stem;
mod store;
mod summary;
mod verify;
mod view;
mod views;

#[cfg(test)]
mod faults;
#[cfg(test)]
mod platter;
#[cfg(test)]
mod played;
#[cfg(test)]
mod power;

pub use archive::{Archive, ArchiveError, Archived, Keeper};
pub use collector::{EpisodeOutcome, RecoveryMetricsCollector};
pub use error::StateError;
pub use file::{FileStore, FileStoreOptions};
pub use inspect::Inspection;
pub(crate) use journal::Journal;
pub use journal::JournalReader;
pub use metrics::{Percentiles, RecoveryMetricsSnapshot, Tally};
pub use note::StateNote;
pub use plain::{MemoryStore, NullStore};
pub use prometheus::to_prometheus;
pub use repair::Repaired;
pub use restore::{OnConflict, RestoreError, Restored};
pub use stem::file_stem;
pub use store::{Lease, RecoveryStateStore, StateRecord};
pub use summary::SessionSummary;
pub use verify::{Finding, FindingKind, Verification};
pub use view::{ActiveChain, EpisodeView, RecoveryState, VerdictView};
