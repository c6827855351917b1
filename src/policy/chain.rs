use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::failure::{Category, Kind};

/// Which chain: the one of a category or, more specific, of a kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum ChainKey {
    /// A category's chain, written `session_error`.
    Category(Category),
    /// A kind's chain, written `kinds.auth`.
    Kind(Kind),
}

/// A chain's name in a state file that no chain can have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no chain is named `{0}`")]
pub struct UnknownChain(String);

impl fmt::Display for ChainKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Category(category) => write!(f, "{category}"),
            Self::Kind(kind) => write!(f, "kinds.{kind}"),
        }
    }
}

impl From<ChainKey> for String {
    fn from(key: ChainKey) -> Self {
        key.to_string()
    }
}

impl TryFrom<String> for ChainKey {
    type Error = UnknownChain;

    fn try_from(text: String) -> Result<Self, UnknownChain> {
        if let Some(kind) = text.strip_prefix("kinds.") {
            return Ok(Self::Kind(Kind::parse(kind)));
        }
        Category::parse(&text).map(Self::Category).ok_or(UnknownChain(text))
    }
}

/// The layer that a value comes from; the later wins (R14).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    /// Backstop's own defaults.
    BuiltIn,
    /// A configuration file.
    File,
    /// Overrides at the level of a role.
    Role,
    /// The host's code.
    Builder,
}

/// Where a configured value comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The layer.
    pub layer: Layer,
    /// `file:line:column` for values of a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Arc<str>>,
}

impl Origin {
    /// The origin of a built-in value.
    pub const BUILT_IN: Self = Self { layer: Layer::BuiltIn, place: None };

    /// Whether a user wrote it: every layer but the built-in one (R3).
    pub const fn is_users(&self) -> bool {
        !matches!(self.layer, Layer::BuiltIn)
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.layer, &self.place) {
            (_, Some(place)) => f.write_str(place),
            (Layer::BuiltIn, None) => f.write_str("built in"),
            (Layer::File, None) => f.write_str("file"),
            (Layer::Role, None) => f.write_str("role override"),
            (Layer::Builder, None) => f.write_str("builder"),
        }
    }
}

/// A step's settings as written; each strategy reads its own.
///
/// Built-in strategies' settings were checked when the configuration was loaded, so reading them
/// falls back to the default only for values that a host's code put there.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StepConfig(Map<String, Value>);

impl StepConfig {
    /// Settings from a JSON object.
    pub fn new(settings: Map<String, Value>) -> Self {
        Self(settings)
    }

    /// The setting as it was written.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    /// A whole number, if the setting is one that is not negative.
    pub fn integer(&self, name: &str) -> Option<u64> {
        let value = self.0.get(name)?;
        value.as_u64().or_else(|| {
            let number = value.as_f64()?;
            (number >= 0.0 && number <= u32::MAX as f64).then_some(number as u64)
        })
    }

    /// A finite number.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.0.get(name)?.as_f64().filter(|number| number.is_finite())
    }

    /// A span given in milliseconds.
    pub fn millis(&self, name: &str) -> Option<Duration> {
        self.integer(name).map(Duration::from_millis)
    }

    /// A text.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.as_str()
    }

    /// A yes or no.
    pub fn flag(&self, name: &str) -> Option<bool> {
        self.0.get(name)?.as_bool()
    }

    /// A list of texts; a single text counts as a list of one.
    pub fn texts(&self, name: &str) -> Vec<&str> {
        match self.0.get(name) {
            Some(Value::String(one)) => vec![one],
            Some(Value::Array(many)) => many.iter().filter_map(Value::as_str).collect(),
            _ => vec![],
        }
    }

    /// All settings.
    pub fn as_map(&self) -> &Map<String, Value> {
        &self.0
    }
}

impl FromIterator<(String, Value)> for StepConfig {
    fn from_iter<I: IntoIterator<Item = (String, Value)>>(settings: I) -> Self {
        Self(settings.into_iter().collect())
    }
}

/// One step of a chain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// The strategy's name.
    pub strategy: Arc<str>,
    /// Its settings.
    #[serde(default)]
    pub config: Arc<StepConfig>,
}

impl Step {
    /// A step without settings.
    pub fn new(strategy: impl Into<Arc<str>>) -> Self {
        Self { strategy: strategy.into(), config: Arc::default() }
    }

    /// Adds a setting.
    ///
    /// ```
    /// use backstop::Step;
    ///
    /// let step = Step::new("retry").with("max_retries", 3).with("backoff_ms", 500);
    /// assert_eq!(step.config.integer("max_retries"), Some(3));
    /// ```
    #[must_use]
    pub fn with(mut self, setting: impl Into<String>, value: impl Into<Value>) -> Self {
        Arc::make_mut(&mut self.config).0.insert(setting.into(), value.into());
        self
    }

    /// The step's own time limit, if it sets `timeout_ms`.
    pub fn timeout(&self) -> Option<Duration> {
        self.config.millis("timeout_ms")
    }
}

/// The ordered steps for a category or kind.
#[derive(Debug, Clone, PartialEq)]
pub struct Chain {
    /// What the chain is for.
    pub key: ChainKey,
    /// The steps, in order; empty only where a chain that has no built-in steps is switched off, or where
    /// the host can carry out none of them.
    pub steps: Vec<Step>,
    /// `false` switches it off.
    pub enabled: bool,
    /// Where it was written.
    pub origin: Origin,
}

impl Chain {
    /// A stable number of the steps' content: a stored place is valid only for the same chain (R10).
    pub fn hash(&self) -> u64 {
        let text = serde_json::to_string(&self.steps).unwrap_or_default();
        text.bytes()
            .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
    }
}
