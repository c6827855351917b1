use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A JSON pointer (RFC 6901), such as `/error/message`; empty means the whole value.
///
/// ```
/// use backstop::client::command::JsonPointer;
///
/// assert!(JsonPointer::parse("/error/message").is_ok());
/// assert!(JsonPointer::parse("error.message").is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct JsonPointer(String);

/// A text that is no JSON pointer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no JSON pointer: one starts with `/`, as in `/error/message`")]
pub struct InvalidPointer {
    /// The text.
    pub text: String,
}

impl JsonPointer {
    /// Takes an empty text or one that starts with `/`.
    ///
    /// # Errors
    ///
    /// [`InvalidPointer`] for anything else.
    pub fn parse(text: impl Into<String>) -> Result<Self, InvalidPointer> {
        let text = text.into();
        if text.is_empty() || text.starts_with('/') { Ok(Self(text)) } else { Err(InvalidPointer { text }) }
    }

    /// The value it points to.
    pub fn find<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        value.pointer(&self.0)
    }

    /// The object or array in which it points to something; for the empty pointer the value itself.
    pub(super) fn container<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        let container = value.pointer(self.0.rsplit_once('/').map_or("", |(container, _)| container))?;
        (container.is_object() || container.is_array()).then_some(container)
    }
}

impl TryFrom<String> for JsonPointer {
    type Error = InvalidPointer;

    fn try_from(text: String) -> Result<Self, InvalidPointer> {
        Self::parse(text)
    }
}

impl From<JsonPointer> for String {
    fn from(pointer: JsonPointer) -> Self {
        pointer.0
    }
}

impl fmt::Display for JsonPointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The JSON objects that a command printed, in order: a single value, one value a line, or values
/// over several lines, with anything else between them. An array stands for its elements.
pub(super) fn values(text: &str) -> Vec<Value> {
    let mut found = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let line_end = rest.find('\n').map_or(rest.len(), |end| end + 1);
        let line = &rest[..line_end];
        let mut next = line_end;
        if line.trim_start().starts_with(['{', '[']) {
            let mut stream = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
            if let Some(Ok(value)) = stream.next() {
                next = stream.byte_offset();
                match value {
                    Value::Array(items) => found.extend(items),
                    other => found.push(other),
                }
            }
        }
        rest = &rest[next..];
    }
    found
}

/// Whether a value found under an error pointer says that there is an error.
pub(super) fn is_set(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(set) => *set,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.trim().is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_found_line_by_line_over_lines_and_amid_noise() {
        let text =
            "ror\":1}\n{\"a\":1}\nnpm notice {x}\n{\n  \"b\": {\n    \"c\": 2\n  }\n}\n[{\"d\":3},{\"e\":4}]\nbye [1";
        assert_eq!(values(text), [json!({"a":1}), json!({"b":{"c":2}}), json!({"d":3}), json!({"e":4})]);
        assert_eq!(values("").len() + values("{\"cut\":").len() + values("plain words").len(), 0);
    }

    #[test]
    fn deep_nesting_is_refused_without_harm() {
        assert_eq!(values(&"[\n".repeat(2_000)), [] as [Value; 0]);
    }

    #[test]
    fn a_pointers_container_is_where_its_last_name_would_be() {
        let value = json!({"error": null, "message": {"x": 1}});
        let container = |text| JsonPointer::parse(text).unwrap().container(&value).cloned();
        assert_eq!(container("/error"), Some(value.clone()));
        assert_eq!(container("/message/errorMessage"), Some(json!({"x": 1})));
        assert_eq!(container("/error/message"), None);
    }
}
