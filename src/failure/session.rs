use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The name of one agent conversation or run: any non-empty string that the host chooses.
///
/// A session id is data (R13): it never becomes a path as it is.
///
/// ```
/// use backstop::SessionId;
///
/// let id = SessionId::new("agent-7")?;
/// assert_eq!(id.as_str(), "agent-7");
/// assert!(SessionId::new("").is_err());
/// # Ok::<(), backstop::failure::EmptySessionId>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SessionId(Arc<str>);

/// A session needs a name; the empty string is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a session id must not be empty")]
pub struct EmptySessionId;

impl SessionId {
    /// Takes any non-empty string.
    ///
    /// # Errors
    ///
    /// [`EmptySessionId`] for the empty string.
    pub fn new(id: impl Into<Arc<str>>) -> Result<Self, EmptySessionId> {
        let id = id.into();
        if id.is_empty() { Err(EmptySessionId) } else { Ok(Self(id)) }
    }

    /// The name as the host wrote it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for SessionId {
    type Error = EmptySessionId;

    fn try_from(id: String) -> Result<Self, EmptySessionId> {
        Self::new(id)
    }
}

impl TryFrom<&str> for SessionId {
    type Error = EmptySessionId;

    fn try_from(id: &str) -> Result<Self, EmptySessionId> {
        Self::new(id)
    }
}

impl From<SessionId> for String {
    fn from(id: SessionId) -> Self {
        id.0.as_ref().to_owned()
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}
