use std::collections::BTreeMap;
use std::sync::Arc;

use super::limit_keys::LimitKey;
use super::{Durability, PatternSpec};
use crate::policy::{ChainKey, Origin, Step};

/// A value and where it was written.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sourced<T> {
    pub(super) value: T,
    pub(super) origin: Origin,
}

/// What one layer says; what it leaves out comes from the layers below.
#[derive(Default)]
pub(super) struct Patch {
    pub(super) enabled: Option<Sourced<bool>>,
    pub(super) persist_state: Option<Sourced<bool>>,
    pub(super) collect_metrics: Option<Sourced<bool>>,
    pub(super) durability: Option<Sourced<Durability>>,
    pub(super) limits: Vec<(&'static LimitKey, Sourced<u64>)>,
    pub(super) chains: BTreeMap<ChainKey, ChainPatch>,
    pub(super) known_strategies: Vec<Sourced<Arc<str>>>,
    pub(super) patterns: Vec<Sourced<PatternSpec>>,
}

/// What one layer says about one chain.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct ChainPatch {
    pub(super) steps: Option<Sourced<Vec<Step>>>,
    pub(super) enabled: Option<Sourced<bool>>,
}
