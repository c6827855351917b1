use std::collections::BTreeMap;
use std::sync::Arc;

use regex::RegexBuilder;
use serde_json::Value as Json;

use crate::failure::{Category, Kind};

/// The compiled size that one expression may reach: it stops those that blow up.
pub(super) const MAX_REGEX_BYTES: usize = 1024 * 1024;

/// The compiled sizes that are tried in turn: the first that has room tells roughly how large an
/// expression is.
const REGEX_BYTES: [usize; 4] = [16 * 1024, 64 * 1024, 256 * 1024, MAX_REGEX_BYTES];

/// Fields that one pattern may ask for.
pub(super) const MAX_FIELDS: usize = 32;

/// An own pattern of detection as data: what a failure looks like and what it then is.
///
/// It matches where its regular expression and all its fields match, and wins over built-in
/// patterns; among own ones the higher priority wins, then the one written first.
///
/// ```
/// use backstop::failure::Kind;
/// use backstop::policy::config::PatternSpec;
///
/// let spec = PatternSpec::regex("queue-full", Kind::Overloaded, r"(?i)queue .* full").unwrap();
/// assert_eq!(spec.category().as_str(), "session_error");
/// assert!(PatternSpec::regex("broken", Kind::Overloaded, "(").is_err());
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct PatternSpec {
    name: Arc<str>,
    category: Category,
    kind: Kind,
    regex: Option<Arc<str>>,
    fields: BTreeMap<Arc<str>, Json>,
    priority: i32,
    /// Room that the compiled expression needs, in bytes.
    size: usize,
}

/// Why a pattern cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidPattern {
    /// The name is empty.
    #[error("the pattern has no name")]
    NoName,
    /// Neither a regular expression nor a field: it would match everything.
    #[error("the pattern has neither a `regex` nor `fields`")]
    NoCondition,
    /// The regular expression compiles to more than 1 MiB.
    #[error("the expression compiles to more than 1 MiB")]
    TooLarge,
    /// The regular expression has a mistake.
    #[error("{0}")]
    Regex(String),
    /// A field's value is a list or a map, or too many fields are asked for.
    #[error("the field `{0}` cannot be compared")]
    Field(String),
}

impl PatternSpec {
    /// A pattern that searches a failure's text.
    ///
    /// The category is the kind's usual one; own kinds are `session_error` unless
    /// [`in_category`](Self::in_category) says otherwise.
    ///
    /// # Errors
    ///
    /// [`InvalidPattern`]: the name is empty, or the expression cannot be used.
    pub fn regex(name: impl Into<Arc<str>>, kind: Kind, regex: &str) -> Result<Self, InvalidPattern> {
        Self::new(name.into(), None, kind, Some(regex.into()), BTreeMap::new(), 0)
    }

    /// A pattern that compares a failure's fields: paths such as `error.code` with plain values.
    ///
    /// # Errors
    ///
    /// [`InvalidPattern`]: the name is empty, or there is no field, or one cannot be compared.
    pub fn fields<P: Into<Arc<str>>>(
        name: impl Into<Arc<str>>,
        kind: Kind,
        fields: impl IntoIterator<Item = (P, Json)>,
    ) -> Result<Self, InvalidPattern> {
        let fields = fields.into_iter().map(|(path, value)| (path.into(), value)).collect();
        Self::new(name.into(), None, kind, None, fields, 0)
    }

    pub(super) fn new(
        name: Arc<str>,
        category: Option<Category>,
        kind: Kind,
        regex: Option<Arc<str>>,
        fields: BTreeMap<Arc<str>, Json>,
        priority: i32,
    ) -> Result<Self, InvalidPattern> {
        if name.is_empty() {
            return Err(InvalidPattern::NoName);
        }
        if regex.is_none() && fields.is_empty() {
            return Err(InvalidPattern::NoCondition);
        }
        let size = regex.as_deref().map_or(Ok(0), compile)?;
        let incomparable = fields.iter().find(|(path, value)| path.is_empty() || value.is_array() || value.is_object());
        if let Some((path, _)) = incomparable.or_else(|| fields.iter().nth(MAX_FIELDS)) {
            return Err(InvalidPattern::Field(path.to_string()));
        }
        let category = category.or(kind.usual_category()).unwrap_or(Category::SessionError);
        Ok(Self { name, category, kind, regex, fields, priority, size })
    }

    /// The same pattern for failures of another category.
    #[must_use]
    pub fn in_category(self, category: Category) -> Self {
        Self { category, ..self }
    }

    /// The same pattern with another priority; 0 is usual, the higher wins.
    #[must_use]
    pub fn with_priority(self, priority: i32) -> Self {
        Self { priority, ..self }
    }

    /// The pattern's name; a later layer's pattern of the same name replaces it.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// The category of what it matches.
    pub fn category(&self) -> Category {
        self.category
    }

    /// The kind of what it matches.
    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    /// The regular expression, in the syntax of the `regex` crate; it compiles within 1 MiB.
    pub fn expression(&self) -> Option<&Arc<str>> {
        self.regex.as_ref()
    }

    /// Paths of fields and the plain values that they must have.
    pub fn field_values(&self) -> &BTreeMap<Arc<str>, Json> {
        &self.fields
    }

    /// The higher wins among own patterns.
    pub fn priority(&self) -> i32 {
        self.priority
    }

    /// Room that the compiled expression needs, in bytes.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    pub(super) fn to_json(&self) -> Json {
        let mut json = serde_json::json!({
            "name": &*self.name,
            "category": self.category.as_str(),
            "kind": self.kind.as_str(),
            "priority": self.priority,
        });
        if let Some(regex) = &self.regex {
            json["regex"] = Json::from(&**regex);
        }
        for (path, value) in &self.fields {
            json["fields"][&**path] = value.clone();
        }
        json
    }
}

/// Compiles an expression; the answer is the size in which it has room.
fn compile(regex: &str) -> Result<usize, InvalidPattern> {
    for size in REGEX_BYTES {
        match RegexBuilder::new(regex).size_limit(size).build() {
            Ok(_) => return Ok(size),
            Err(regex::Error::CompiledTooBig(_)) => {}
            Err(error) => {
                // The crate draws the expression over several lines; the last says what is wrong.
                let text = error.to_string();
                let last = text.lines().last().unwrap_or_default().trim();
                let reason = last.strip_prefix("error: ").unwrap_or(last);
                return Err(InvalidPattern::Regex(format!("not a regular expression: {reason}")));
            }
        }
    }
    Err(InvalidPattern::TooLarge)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_that_blows_up_is_refused() {
        assert_eq!(PatternSpec::regex("bomb", Kind::Other, r"\w{1000}{100}"), Err(InvalidPattern::TooLarge));
    }

    #[test]
    fn a_broken_expression_says_what_is_wrong() {
        let error = PatternSpec::regex("broken", Kind::Other, "a(b").unwrap_err();
        assert_eq!(error.to_string(), "not a regular expression: unclosed group");
    }

    #[test]
    fn a_pattern_without_a_condition_is_refused() {
        let none: [(&str, Json); 0] = [];
        assert_eq!(PatternSpec::fields("all", Kind::Other, none), Err(InvalidPattern::NoCondition));
    }

    #[test]
    fn a_field_must_be_a_plain_value() {
        let fields = [("error.codes", serde_json::json!([1]))];
        assert!(matches!(PatternSpec::fields("list", Kind::Other, fields), Err(InvalidPattern::Field(_))));
    }
}
