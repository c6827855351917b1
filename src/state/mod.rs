//! What is remembered of sessions, and its files.

mod error;
mod metrics;
mod store;
mod summary;

pub use error::StateError;
pub use metrics::{Percentiles, RecoveryMetricsSnapshot, Tally};
pub use store::{RecoveryStateStore, StateRecord};
pub use summary::SessionSummary;
