use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::failure::is_hidden;

/// Text that the next turn gets in its system prompt: bounded, without control characters (R12).
///
/// ```
/// use backstop::policy::Injection;
///
/// let text = Injection::new("re-read the file\u{1b}[31m first\n");
/// assert_eq!(text.as_str(), "re-read the file[31m first\n");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct Injection(Arc<str>);

impl Injection {
    /// The longest text in characters: an instruction, not a document.
    pub const MAX_CHARS: usize = 4_000;

    /// Takes any text, drops control characters and those that nobody sees, and cuts it at
    /// [`Injection::MAX_CHARS`].
    pub fn new(text: impl AsRef<str>) -> Self {
        Self(text.as_ref().chars().filter(|c| is_visible(*c)).take(Self::MAX_CHARS).collect::<String>().into())
    }

    /// The cleaned text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn is_visible(c: char) -> bool {
    c == '\n' || c == '\t' || !(c.is_control() || is_hidden(c))
}

impl From<String> for Injection {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

impl From<Injection> for String {
    fn from(text: Injection) -> Self {
        text.0.as_ref().to_owned()
    }
}
