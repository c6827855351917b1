use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::block::{checked, find_block, read_block, read_known};
use super::limit_keys::LIMIT_KEYS;
use super::merge::merge;
use super::node::Node;
use super::patch::{ChainPatch, Patch, Sourced};
use super::problems::{Problems, Spot, no_help};
use super::steps::{Known, read_steps};
use super::{ConfigErrors, Diagnostic, Durability, PatternSpec, RecoveryConfig, document};
use crate::policy::{ChainKey, Layer, Limits, Step};

/// A valid configuration and what was dubious on the way to it.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// The configuration.
    pub config: RecoveryConfig,
    /// Unknown keys and strategies, slips that were mended, settings without effect.
    pub warnings: Vec<Diagnostic>,
}

/// What one role says over the file; what it leaves out stays as it is.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RoleOverrides {
    /// Switches recovery on or off.
    pub enabled: Option<bool>,
    /// Executions of an episode, over all its chains.
    pub max_total_attempts: Option<u32>,
    /// `false` keeps nothing on disk.
    pub persist_state: Option<bool>,
    /// Whether outcomes are aggregated.
    pub collect_metrics: Option<bool>,
    /// Chains that replace those of the layers below, or are switched.
    pub chains: BTreeMap<ChainKey, ChainOverride>,
}

/// What code says about one chain.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ChainOverride {
    /// The steps; `None` keeps those of the layers below.
    pub steps: Option<Vec<Step>>,
    /// The switch; steps without it are switched on.
    pub enabled: Option<bool>,
}

/// Puts the layers together: built-in ← texts ← roles ← the builder's own methods (R14).
///
/// The order of layers is fixed, whatever the order of calls; within a layer the later call wins.
///
/// ```
/// use backstop::failure::Category;
/// use backstop::policy::config::ConfigBuilder;
/// use backstop::{ChainKey, Step};
///
/// let loaded = ConfigBuilder::new()
///     .yaml("recovery.yaml", "edit_error: [my_fix, abort]")
///     .known_strategy("my_fix")
///     .limits(|limits| limits.max_recoveries = 5)
///     .chain(ChainKey::Category(Category::JsonError), vec![Step::new("escalate")])
///     .build()?;
/// assert!(loaded.warnings.is_empty());
/// assert_eq!(loaded.config.limits().max_recoveries, 5);
/// # Ok::<(), backstop::policy::config::ConfigErrors>(())
/// ```
#[derive(Default)]
#[must_use]
pub struct ConfigBuilder {
    texts: Vec<(Arc<str>, String)>,
    roles: Vec<RoleOverrides>,
    own: RoleOverrides,
    durability: Option<Durability>,
    limits: Vec<ChangeLimits>,
    known_strategies: Vec<Arc<str>>,
    patterns: Vec<PatternSpec>,
}

type ChangeLimits = Box<dyn FnOnce(&mut Limits) + Send>;

impl ConfigBuilder {
    /// A builder with the built-in layer alone.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a YAML text: a role file with a `recovery:` block, or the block alone. `name` is how
    /// messages call it.
    pub fn yaml(mut self, name: impl Into<Arc<str>>, text: impl Into<String>) -> Self {
        self.texts.push((name.into(), text.into()));
        self
    }

    /// The texts added so far with their names: a [`Diagnostic`] is shown with its line of one.
    pub fn texts(&self) -> &[(Arc<str>, String)] {
        &self.texts
    }

    /// Adds a role's overrides.
    pub fn role_overrides(mut self, role: RoleOverrides) -> Self {
        self.roles.push(role);
        self
    }

    /// Switches recovery on or off.
    pub fn enabled(mut self, enabled: bool) -> Self {
        self.own.enabled = Some(enabled);
        self
    }

    /// Bounds the executions of an episode, over all its chains.
    pub fn max_total_attempts(self, attempts: u32) -> Self {
        self.limits(move |limits| limits.max_total_attempts = attempts)
    }

    /// Whether outcomes are aggregated.
    pub fn collect_metrics(mut self, collect: bool) -> Self {
        self.own.collect_metrics = Some(collect);
        self
    }

    /// Sets what an acknowledgement means.
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = Some(durability);
        self
    }

    /// Sets the steps for a category or kind.
    pub fn chain(mut self, key: ChainKey, steps: Vec<Step>) -> Self {
        self.own.chains.insert(key, ChainOverride { steps: Some(steps), enabled: None });
        self
    }

    /// Switches the chain of a category or kind on or off.
    pub fn chain_enabled(mut self, key: ChainKey, enabled: bool) -> Self {
        self.own.chains.entry(key).or_default().enabled = Some(enabled);
        self
    }

    /// Changes limits, starting from those of the layers below.
    pub fn limits(mut self, change: impl FnOnce(&mut Limits) + Send + 'static) -> Self {
        self.limits.push(Box::new(change));
        self
    }

    /// Makes an own strategy's name known.
    pub fn known_strategy(mut self, name: impl Into<Arc<str>>) -> Self {
        self.known_strategies.push(name.into());
        self
    }

    /// Makes own strategies' names known.
    pub fn known_strategies<N: Into<Arc<str>>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.known_strategies.extend(names.into_iter().map(Into::into));
        self
    }

    /// Adds an own pattern of detection; one of the same name is replaced.
    pub fn pattern(mut self, pattern: PatternSpec) -> Self {
        self.patterns.push(pattern);
        self
    }

    /// Checks everything and puts the layers together.
    ///
    /// # Errors
    ///
    /// [`ConfigErrors`] holds every problem of every layer; nothing is applied.
    pub fn build(self) -> Result<Loaded, ConfigErrors> {
        let mut problems = Problems::default();
        let builder = Spot::layer("builder", Layer::Builder);
        let mut blocks = vec![];
        let mut known = Known::default();
        let mut names = vec![];
        for (name, text) in &self.texts {
            let Some((node, at)) = read_text(name, text, &mut problems) else { continue };
            names.extend(read_known(&node, &at, &mut problems));
            blocks.push((node, at));
        }
        names.extend(self.known_strategies.into_iter().map(|value| Sourced { value, origin: builder.origin() }));
        known.0.extend(names.iter().map(|name| Arc::clone(&name.value)));

        let mut patches: Vec<Patch> =
            blocks.iter().map(|(node, at)| read_block(node, at, &known, &mut problems)).collect();
        for role in &self.roles {
            let at = Spot::layer("role override", Layer::Role);
            patches.push(read_overrides(role, &at, &known, &mut problems));
        }
        let mut own = read_overrides(&self.own, &builder, &known, &mut problems);
        let sourced = |value| Sourced { value, origin: builder.origin() };
        own.durability = self.durability.map(sourced);
        own.patterns = self.patterns.into_iter().map(|value| Sourced { value, origin: builder.origin() }).collect();
        own.known_strategies = names;
        patches.push(own);

        let mut config = merge(patches, &mut problems);
        change_limits(&mut config, self.limits, &builder, &mut problems);
        let (diagnostics, refused) = problems.finish();
        if refused { Err(ConfigErrors(diagnostics)) } else { Ok(Loaded { config, warnings: diagnostics }) }
    }
}

impl fmt::Debug for ConfigBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<&Arc<str>> = self.texts.iter().map(|(name, _)| name).collect();
        f.debug_struct("ConfigBuilder").field("texts", &texts).field("own", &self.own).finish_non_exhaustive()
    }
}

fn read_text(name: &Arc<str>, text: &str, problems: &mut Problems) -> Option<(Node, Spot)> {
    let at = Spot::layer(Arc::clone(name), Layer::File);
    match document::read(text) {
        Ok(root) => find_block(root, &at, problems),
        Err(unreadable) => {
            let here = Spot { place: Some(unreadable.place), ..at };
            problems.error(&here, unreadable.message, no_help);
            None
        }
    }
}

fn read_overrides(role: &RoleOverrides, at: &Spot, known: &Known, problems: &mut Problems) -> Patch {
    let flag = |value: Option<bool>| value.map(|value| Sourced { value, origin: at.origin() });
    let mut patch = Patch {
        enabled: flag(role.enabled),
        persist_state: flag(role.persist_state),
        collect_metrics: flag(role.collect_metrics),
        ..Patch::default()
    };
    for limit in LIMIT_KEYS.iter().filter(|limit| limit.name == "max_total_attempts") {
        let Some(attempts) = role.max_total_attempts else { continue };
        let here = at.child(limit.name, None);
        if checked(limit.form(), &Node::from_json(&json!(attempts)), &here, problems).is_some() {
            patch.limits.push((limit, Sourced { value: attempts.into(), origin: at.origin() }));
        }
    }
    for (key, chain) in &role.chains {
        let here = at.child(&key.to_string(), None).child("chain", None);
        let steps = chain.steps.as_ref().map(|steps| {
            let nodes: Vec<Node> = steps.iter().map(step_node).collect();
            Sourced { value: read_steps(&nodes, &here, known, problems), origin: at.origin() }
        });
        patch.chains.insert(key.clone(), ChainPatch { steps, enabled: flag(chain.enabled) });
    }
    patch
}

/// A step that code gave goes through the same checks as one of a text.
fn step_node(step: &Step) -> Node {
    Node::from_json(&json!({"strategy": &*step.strategy, "config": Json::Object(step.config.as_map().clone())}))
}

fn change_limits(config: &mut RecoveryConfig, changes: Vec<ChangeLimits>, at: &Spot, problems: &mut Problems) {
    let before = config.limits.clone();
    for change in changes {
        change(&mut config.limits);
    }
    for key in LIMIT_KEYS {
        let value = (key.get)(&config.limits);
        if value == (key.get)(&before) {
            continue;
        }
        let here = at.child(key.name, None);
        checked(key.form(), &Node::from_json(&json!(value)), &here, problems);
        config.origins.insert(key.name.to_owned(), at.origin());
    }
}
