use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{ConfigBuilder, ConfigErrors, Loaded, PatternSpec, built_in_chains};
use crate::policy::{Chain, ChainKey, Limits, Origin};

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

impl Durability {
    /// The word in configuration and output.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ahead => "ahead",
            Self::Behind => "behind",
            Self::Off => "off",
        }
    }

    /// The durability with this word.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Ahead, Self::Behind, Self::Off].into_iter().find(|durability| durability.as_str() == text)
    }
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
    pub(in crate::policy) patterns: Vec<PatternSpec>,
    pub(in crate::policy) known_strategies: BTreeSet<Arc<str>>,
    /// Where each value below a chain was written, by its path; built in where absent.
    pub(in crate::policy) origins: BTreeMap<String, Origin>,
}

impl Default for RecoveryConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            collect_metrics: true,
            durability: Durability::default(),
            limits: Limits::default(),
            chains: built_in_chains().into_iter().map(|chain| (chain.key.clone(), Arc::new(chain))).collect(),
            patterns: vec![],
            known_strategies: BTreeSet::new(),
            origins: BTreeMap::new(),
        }
    }
}

impl RecoveryConfig {
    /// The built-in layer with one YAML text over it.
    ///
    /// The text is a role file with a `recovery:` block, or the block alone. `name` is how
    /// messages call the text.
    ///
    /// # Errors
    ///
    /// [`ConfigErrors`] holds every problem of the text, each with its place: a text that is no
    /// YAML or over its bounds, a wrong type, an impossible number, a chain in which no step is
    /// left. Unknown keys and strategies are warnings in [`Loaded`].
    ///
    /// ```
    /// use backstop::RecoveryConfig;
    ///
    /// let text = "recovery:\n  max_total_attempts: 4\n  edit_error:\n    chain: [{strategy: abort}]\n";
    /// let loaded = RecoveryConfig::parse("role.yaml", text).unwrap();
    /// assert_eq!(loaded.config.limits().max_total_attempts, 4);
    /// assert!(loaded.warnings.is_empty());
    /// ```
    pub fn parse(name: &str, yaml: &str) -> Result<Loaded, ConfigErrors> {
        ConfigBuilder::new().yaml(name, yaml).build()
    }

    /// Own patterns of detection, in the order in which they were written.
    pub fn patterns(&self) -> &[PatternSpec] {
        &self.patterns
    }

    /// The names of own strategies that were made known.
    pub fn known_strategies(&self) -> impl Iterator<Item = &Arc<str>> {
        self.known_strategies.iter()
    }

    /// Whether anything is kept on disk.
    pub fn persist_state(&self) -> bool {
        self.durability != Durability::Off
    }

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
    /// Recovery switched off.
    pub(crate) fn disabled() -> Self {
        Self { enabled: false, ..Self::default() }
    }

    /// The built-in layer with these chains and limits over it.
    pub(crate) fn with_chains(chains: impl IntoIterator<Item = Chain>, limits: Limits) -> Self {
        let mut config = Self { limits, ..Self::default() };
        config.chains.extend(chains.into_iter().map(|chain| (chain.key.clone(), Arc::new(chain))));
        config
    }
}
