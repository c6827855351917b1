use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Everything that shares a fate: provider, model and account, as one key.
///
/// ```
/// use backstop::LaneKey;
///
/// assert_eq!(LaneKey::of("anthropic", "sonnet", "team-a").as_str(), "anthropic/sonnet@team-a");
/// assert_eq!(LaneKey::new("my-lane").as_str(), "my-lane");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LaneKey(Arc<str>);

impl LaneKey {
    /// A lane under the host's own name.
    pub fn new(key: impl Into<Arc<str>>) -> Self {
        Self(key.into())
    }

    /// The lane of a provider's model as used by one account; parts that are not known stay empty.
    pub fn of(provider: &str, model: &str, account: &str) -> Self {
        match account {
            "" => Self(format!("{provider}/{model}").into()),
            account => Self(format!("{provider}/{model}@{account}").into()),
        }
    }

    /// The lane of another model, written `provider/name` or `name`, as used by the same account.
    ///
    /// ```
    /// use backstop::LaneKey;
    ///
    /// let lane = LaneKey::of("acme", "large", "team-a");
    /// assert_eq!(lane.with_model("small").as_str(), "acme/small@team-a");
    /// assert_eq!(lane.with_model("other/tiny").as_str(), "other/tiny@team-a");
    /// assert_eq!(LaneKey::new("my-lane").with_model("small").as_str(), "my-lane/small");
    /// ```
    #[must_use]
    pub fn with_model(&self, model: &str) -> Self {
        let (path, account) = self.0.rsplit_once('@').unwrap_or((&self.0, ""));
        let own_provider = path.split_once('/').map_or(path, |(provider, _)| provider);
        let (provider, name) = model.split_once('/').unwrap_or((own_provider, model));
        Self::of(provider, name, account)
    }

    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for LaneKey {
    fn from(key: &str) -> Self {
        Self::new(key)
    }
}

impl fmt::Display for LaneKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
