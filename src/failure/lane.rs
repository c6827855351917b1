use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{fingerprint, mask};

/// Everything that shares a fate: provider, model and account, as one key.
///
/// Keys are shown and kept, so a secret in one is masked; a number made from it keeps two accounts apart (R12).
///
/// ```
/// use backstop::LaneKey;
///
/// assert_eq!(LaneKey::of("anthropic", "sonnet", "team-a").as_str(), "anthropic/sonnet@team-a");
/// assert_eq!(LaneKey::new("my-lane").as_str(), "my-lane");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct LaneKey(Arc<str>);

impl LaneKey {
    /// A lane under the host's own name.
    pub fn new(key: impl Into<Arc<str>>) -> Self {
        let key = key.into();
        match mask(&key) {
            Cow::Borrowed(_) => Self(key),
            Cow::Owned(masked) => Self(format!("{masked}#{:08x}", fingerprint::plain(key.as_bytes()) as u32).into()),
        }
    }

    /// The lane of a provider's model as used by one account; parts that are not known stay empty.
    pub fn of(provider: &str, model: &str, account: &str) -> Self {
        match account {
            "" => Self::new(format!("{provider}/{model}")),
            account => Self::new(format!("{provider}/{model}@{account}")),
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

impl From<String> for LaneKey {
    fn from(key: String) -> Self {
        Self::new(key)
    }
}

impl From<LaneKey> for String {
    fn from(key: LaneKey) -> Self {
        key.0.as_ref().to_owned()
    }
}

impl fmt::Display for LaneKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_in_a_key_is_masked_and_two_accounts_stay_two() {
        let lane = |key: &str| LaneKey::of("acme", "large", &format!("sk-ant-api03-{key}"));
        let (one, other) = (lane("a1B2c3D4e5F6g7H8"), lane("z1Y2x3W4v5U6t7S8"));
        assert!(one.as_str().starts_with("acme/large@sk-ant-[masked]#"), "{one}");
        assert_ne!(one, other);
        assert_eq!(one, lane("a1B2c3D4e5F6g7H8"));
        assert_eq!(LaneKey::new(one.as_str()), one);
    }
}
