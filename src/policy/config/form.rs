use std::fmt;

use serde_json::{Value as Json, json};

use super::node::{Found, Node};

/// The form that a value must have; parser, messages and schema are made from it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Form {
    /// `true` or `false`.
    Flag,
    /// A whole number from the first to the second.
    Whole(i64, i64),
    /// A number from the first to the second.
    Number(f64, f64),
    /// A number above 0 and at most 1.
    Share,
    /// Any text.
    Text,
    /// A text that is not empty.
    Name,
    /// A name or a list of names.
    Names,
    /// One of these words.
    Word(&'static [&'static str]),
}

impl Form {
    /// The value, in one spelling; fails at the node that has another form.
    ///
    /// The parser lets `.nan`, `.inf` and negative numbers through; here they end.
    pub(super) fn check<'a>(&self, node: &'a Node) -> Result<Json, &'a Node> {
        let value = match (self, &node.value) {
            (Self::Flag, Found::Flag(flag)) => Some(json!(flag)),
            (Self::Whole(min, max), Found::Whole(number)) => {
                i64::try_from(*number).ok().filter(|number| (min..=max).contains(&number)).map(|number| json!(number))
            }
            // `3.0` is whole; beyond 2^53 a float no longer says which whole number it is.
            (Self::Whole(min, max), Found::Float(number)) if number.fract() == 0.0 && number.abs() < 9e15 => {
                let number = *number as i64;
                (min..=max).contains(&&number).then(|| json!(number))
            }
            (Self::Number(min, max), _) if number(node).is_some_and(|n| (*min..=*max).contains(&n)) => {
                node.to_json().ok()
            }
            (Self::Share, _) if number(node).is_some_and(|n| n > 0.0 && n <= 1.0) => node.to_json().ok(),
            (Self::Text, Found::Text(text)) => Some(json!(text)),
            (Self::Name | Self::Names, Found::Text(text)) if !text.is_empty() => Some(json!(text)),
            (Self::Names, Found::List(items)) => {
                let names = items.iter().map(|item| Self::Name.check(item));
                return names.collect::<Result<Vec<_>, _>>().map(Json::Array);
            }
            (Self::Word(words), Found::Text(text)) => words.contains(&text.as_str()).then(|| json!(text)),
            _ => None,
        };
        value.ok_or(node)
    }

    /// Advice for the usual slips.
    pub(super) fn advice(&self, found: &Found) -> Option<String> {
        let Found::Text(text) = found else { return None };
        match self {
            Self::Flag => match text.to_ascii_lowercase().as_str() {
                "yes" | "on" | "true" | "y" => Some("write `true`, without quotes".to_owned()),
                "no" | "off" | "false" | "n" => Some("write `false`, without quotes".to_owned()),
                _ => None,
            },
            Self::Whole(..) | Self::Number(..) | Self::Share => {
                text.parse::<f64>().is_ok_and(f64::is_finite).then(|| "write the number without quotes".to_owned())
            }
            Self::Word(words) => super::nearest(text, words.iter().copied()).map(super::did_you_mean),
            Self::Text | Self::Name | Self::Names => None,
        }
    }

    /// The JSON Schema that accepts the same values.
    pub(super) fn schema(&self) -> Json {
        match self {
            Self::Flag => json!({"type": "boolean"}),
            Self::Whole(min, max) => json!({"type": "integer", "minimum": min, "maximum": max}),
            Self::Number(min, max) => json!({"type": "number", "minimum": min, "maximum": max}),
            Self::Share => json!({"type": "number", "exclusiveMinimum": 0, "maximum": 1}),
            Self::Text => json!({"type": "string"}),
            Self::Name => json!({"type": "string", "minLength": 1}),
            Self::Names => {
                let name = Self::Name.schema();
                json!({"anyOf": [name, {"type": "array", "items": name}]})
            }
            Self::Word(words) => json!({"enum": words}),
        }
    }
}

fn number(node: &Node) -> Option<f64> {
    match node.value {
        Found::Whole(number) => Some(number as f64),
        Found::Float(number) => Some(number),
        _ => None,
    }
}

/// What is expected, for messages: `a number from 1 to 100`.
impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag => f.write_str("`true` or `false`"),
            Self::Whole(min, max) => write!(f, "a whole number from {min} to {max}"),
            Self::Number(min, max) => write!(f, "a number from {min} to {max}"),
            Self::Share => f.write_str("a number above 0 and at most 1"),
            Self::Text => f.write_str("a text"),
            Self::Name => f.write_str("a text that is not empty"),
            Self::Names => f.write_str("a text or a list of texts, none of them empty"),
            Self::Word(words) => write!(f, "one of `{}`", words.join("`, `")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepts(form: Form, value: Found) -> bool {
        form.check(&Node { value, place: None }).is_ok()
    }

    #[test]
    fn impossible_numbers_are_refused() {
        for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, 2.5, 1e300] {
            assert!(!accepts(Form::Whole(0, 1_000), Found::Float(number)), "{number}");
        }
        for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0] {
            assert!(!accepts(Form::Number(0.0, f64::MAX), Found::Float(number)), "{number}");
            assert!(!accepts(Form::Share, Found::Float(number)), "{number}");
        }
        assert!(!accepts(Form::Share, Found::Whole(0)));
        assert!(!accepts(Form::Whole(0, i64::MAX), Found::Whole(i128::from(u64::MAX))));
    }

    #[test]
    fn zero_and_whole_numbers_written_with_a_point_are_accepted() {
        assert!(accepts(Form::Whole(0, 10), Found::Whole(0)));
        assert!(accepts(Form::Whole(0, 10), Found::Float(3.0)));
        assert!(accepts(Form::Number(1.0, 100.0), Found::Whole(2)));
        assert!(accepts(Form::Share, Found::Whole(1)));
    }

    #[test]
    fn another_type_is_refused() {
        assert!(!accepts(Form::Flag, Found::Whole(0)));
        assert!(!accepts(Form::Flag, Found::Text("false".into())));
        assert!(!accepts(Form::Whole(0, 10), Found::Text("4".into())));
        assert!(!accepts(Form::Name, Found::Text(String::new())));
        assert!(!accepts(Form::Names, Found::List(vec![Node { value: Found::Whole(1), place: None }])));
    }
}
