use std::sync::Arc;

use super::patch::{ChainPatch, Patch, Sourced};
use super::problems::{Problems, Spot};
use super::{Durability, RecoveryConfig, built_in_chains};
use crate::policy::{Chain, ChainKey};

/// Lays the patches over the built-in layer, the later over the earlier.
pub(super) fn merge(patches: Vec<Patch>, problems: &mut Problems) -> RecoveryConfig {
    let mut config = RecoveryConfig::default();
    for patch in patches {
        lay_over(&mut config, patch, problems);
    }
    config
}

fn lay_over(config: &mut RecoveryConfig, patch: Patch, problems: &mut Problems) {
    durability(config, &patch);
    if let Some(Sourced { value, origin }) = patch.enabled {
        config.enabled = value;
        config.origins.insert("enabled".to_owned(), origin);
    }
    if let Some(Sourced { value, origin }) = patch.collect_metrics {
        config.collect_metrics = value;
        config.origins.insert("collect_metrics".to_owned(), origin);
    }
    for (key, Sourced { value, origin }) in patch.limits {
        (key.set)(&mut config.limits, value);
        config.origins.insert(key.name.to_owned(), origin);
    }
    for (key, chain) in patch.chains {
        lay_chain(config, key, chain, problems);
    }
    for Sourced { value, origin } in patch.known_strategies {
        config.origins.insert(format!("known_strategies.{value}"), origin);
        config.known_strategies.insert(value);
    }
    for Sourced { value, origin } in patch.patterns {
        config.origins.insert(format!("patterns.{}", value.name()), origin);
        match config.patterns.iter_mut().find(|before| before.name() == value.name()) {
            Some(before) => *before = value,
            None => config.patterns.push(value),
        }
    }
}

/// `persist_state` and `durability` say one thing in two ways; within a layer, off is stronger.
fn durability(config: &mut RecoveryConfig, patch: &Patch) {
    let (said, origin) = match (&patch.persist_state, &patch.durability) {
        (Some(Sourced { value: false, origin }), _) => (Durability::Off, origin),
        (_, Some(Sourced { value, origin })) => (*value, origin),
        (Some(Sourced { value: true, origin }), None) if config.durability == Durability::Off => {
            (Durability::default(), origin)
        }
        (Some(Sourced { value: true, origin }), None) => (config.durability, origin),
        (None, None) => return,
    };
    config.durability = said;
    config.origins.insert("durability".to_owned(), origin.clone());
}

/// Steps replace the steps below and, unless the layer says otherwise, switch the chain on; a
/// switch alone keeps the steps below.
fn lay_chain(config: &mut RecoveryConfig, key: ChainKey, patch: ChainPatch, problems: &mut Problems) {
    let chain = match (patch.steps, patch.enabled) {
        (None, None) => return,
        (Some(Sourced { value: steps, origin }), switch) => {
            let enabled = switch.is_none_or(|switch| switch.value);
            Chain { key: key.clone(), steps, enabled, origin }
        }
        (None, Some(Sourced { value: false, origin })) => {
            let steps = config.chains.get(&key).map(|below| below.steps.clone()).unwrap_or_default();
            Chain { key: key.clone(), steps, enabled: false, origin }
        }
        (None, Some(Sourced { value: true, origin })) => {
            let Some(below) = config.chains.get(&key).filter(|below| !below.steps.is_empty()) else {
                let at = Spot::at_origin(&origin, &key.to_string());
                problems.warning(&at, "there is no chain to switch on", || Some("write its steps".to_owned()));
                config.chains.remove(&key);
                return;
            };
            if below.enabled {
                return;
            }
            // Who only switches a built-in chain back on has written no chain (R3).
            let back = built_in_chains().into_iter().find(|chain| chain.key == key && chain.steps == below.steps);
            back.unwrap_or_else(|| Chain { enabled: true, origin, ..Chain::clone(below) })
        }
    };
    config.chains.insert(key, Arc::new(chain));
}
