//! What is remembered of sessions, and its files.

mod metrics;

pub use metrics::{Percentiles, RecoveryMetricsSnapshot, Tally};
