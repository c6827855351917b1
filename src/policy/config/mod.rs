//! Configuration: layers, parsing with positions, diagnostics, schema (R14).

mod built_in;
mod recovery;

pub use built_in::{BUILT_IN_STRATEGIES, built_in_chains};
pub use recovery::{Durability, RecoveryConfig};
