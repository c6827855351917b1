use serde_json::{Value as Json, json};

use super::RecoveryConfig;
use super::limit_keys::LIMIT_KEYS;
use crate::policy::Origin;

/// A value that is in force, and which layer and line it comes from.
#[derive(Debug, Clone, PartialEq)]
pub struct EffectiveValue {
    /// Its path inside the recovery block.
    pub path: String,
    /// The value.
    pub value: Json,
    /// Where it was written.
    pub origin: Origin,
}

impl RecoveryConfig {
    /// Every value in force with its origin: switches, limits, chains, own strategies, own patterns.
    ///
    /// ```
    /// use backstop::RecoveryConfig;
    ///
    /// let loaded = RecoveryConfig::parse("recovery.yaml", "max_wait_ms: 5000").unwrap();
    /// let values = loaded.config.effective();
    /// let wait = values.iter().find(|value| value.path == "max_wait_ms").unwrap();
    /// assert_eq!(wait.origin.to_string(), "recovery.yaml:1:14");
    /// ```
    pub fn effective(&self) -> Vec<EffectiveValue> {
        let value = |path: &str, value: Json| {
            let origin = self.origins.get(path).cloned().unwrap_or(Origin::BUILT_IN);
            EffectiveValue { path: path.to_owned(), value, origin }
        };
        let mut values = vec![
            value("enabled", json!(self.enabled)),
            value("durability", json!(self.durability.as_str())),
            value("collect_metrics", json!(self.collect_metrics)),
        ];
        values.extend(LIMIT_KEYS.iter().map(|key| value(key.name, json!((key.get)(&self.limits)))));
        for chain in self.chains() {
            let steps = if chain.enabled { json!(chain.steps) } else { json!(false) };
            let path = chain.key.to_string();
            values.push(EffectiveValue { path, value: steps, origin: chain.origin.clone() });
        }
        for name in &self.known_strategies {
            let path = format!("known_strategies.{name}");
            values.push(EffectiveValue { value: json!(true), ..value(&path, Json::Null) });
        }
        for pattern in &self.patterns {
            values.push(value(&format!("patterns.{}", pattern.name()), pattern.to_json()));
        }
        values
    }
}
