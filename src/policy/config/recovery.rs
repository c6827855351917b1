use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::built_in_chains;
use crate::policy::{Chain, ChainKey, Limits};

/// What a record of the log has to be before its effect can be seen (R10).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// On disk: a crash loses nothing that anybody saw.
    #[default]
    Ahead,
    /// On its way to disk: a crash can lose the last moments.
    Behind,
    /// Never on disk: a crash loses everything.
    Off,
}

/// A valid configuration: every value was checked when it was made.
///
/// [`RecoveryConfig::default`] is the built-in layer alone.
#[derive(Debug, Clone, PartialEq)]
pub struct RecoveryConfig {
    pub(in crate::policy) enabled: bool,
    pub(in crate::policy) collect_metrics: bool,
    pub(in crate::policy) durability: Durability,
    pub(in crate::policy) limits: Limits,
    pub(in crate::policy) chains: BTreeMap<ChainKey, Arc<Chain>>,
}

impl Default for RecoveryConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            collect_metrics: true,
            durability: Durability::default(),
            limits: Limits::default(),
            chains: built_in_chains().into_iter().map(|chain| (chain.key.clone(), Arc::new(chain))).collect(),
        }
    }
}

impl RecoveryConfig {
    /// Whether recovery is switched on.
    pub fn enabled(&self) -> bool {
        self.enabled
    }

    /// Whether outcomes are aggregated.
    pub fn collect_metrics(&self) -> bool {
        self.collect_metrics
    }

    /// What an acknowledgement means; `persist_state: false` is [`Durability::Off`].
    pub fn durability(&self) -> Durability {
        self.durability
    }

    /// Every bound.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The chain configured under this key, the user's or the built-in one, enabled or not.
    pub fn chain(&self, key: &ChainKey) -> Option<&Arc<Chain>> {
        self.chains.get(key)
    }

    /// All chains, the user's and the built-in ones that none of the user's replaces.
    pub fn chains(&self) -> impl Iterator<Item = &Arc<Chain>> {
        self.chains.values()
    }
}

#[cfg(test)]
impl RecoveryConfig {
    /// The built-in layer with these chains and limits over it.
    pub(crate) fn with_chains(chains: impl IntoIterator<Item = Chain>, limits: Limits) -> Self {
        let mut config = Self { limits, ..Self::default() };
        config.chains.extend(chains.into_iter().map(|chain| (chain.key.clone(), Arc::new(chain))));
        config
    }
}
