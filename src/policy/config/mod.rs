//! Configuration: layers, parsing with positions, diagnostics, schema (R14).
//!
//! A text becomes values with positions (`document`), the values become a layer's patch with every
//! problem noted (`block`, `steps`, `patterns_block`), and the patches become a
//! [`RecoveryConfig`] (`builder`, `merge`).

mod block;
mod builder;
mod built_in;
mod diagnostic;
mod document;
mod effective;
mod form;
mod limit_keys;
mod looped;
mod marks;
mod merge;
mod nearest;
mod node;
mod patch;
mod pattern;
mod patterns_block;
mod problems;
mod recovery;
mod schema;
mod settings;
mod steps;
mod values;

use nearest::{did_you_mean, nearest, snake_case};

pub use builder::{ChainOverride, ConfigBuilder, Loaded, RoleOverrides};
pub use built_in::{BUILT_IN_STRATEGIES, built_in_chains};
pub use diagnostic::{ConfigErrors, Diagnostic, Place, Severity};
pub use effective::EffectiveValue;
pub use pattern::{InvalidPattern, PatternSpec};
pub use recovery::{Durability, RecoveryConfig};
pub use schema::{schema, schema_with};
