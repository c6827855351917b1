use std::fmt;

use serde_json::{Map, Number as JsonNumber, Value as Json};

use super::Place;

/// A value of a document together with its position.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    pub(super) value: Found,
    pub(super) place: Option<Place>,
}

/// What stands at a place.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Found {
    Nothing,
    Flag(bool),
    Whole(i128),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    Map(Vec<Entry>),
    /// A value with a tag of its own, such as `!secret x`.
    Tagged,
}

/// A key and its value.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) key_place: Option<Place>,
    pub(super) value: Node,
}

impl Node {
    /// Whether nothing is written here: the same as leaving the key out.
    pub(super) const fn is_nothing(&self) -> bool {
        matches!(self.value, Found::Nothing)
    }

    /// The value as JSON; fails at the part that JSON cannot say (`.nan`, `.inf`, own tags).
    pub(super) fn to_json(&self) -> Result<Json, &Self> {
        Ok(match &self.value {
            Found::Nothing => Json::Null,
            Found::Flag(flag) => Json::Bool(*flag),
            Found::Whole(number) => JsonNumber::from_i128(*number).map(Json::Number).ok_or(self)?,
            Found::Float(number) => JsonNumber::from_f64(*number).map(Json::Number).ok_or(self)?,
            Found::Text(text) => Json::String(text.clone()),
            Found::List(items) => Json::Array(items.iter().map(Self::to_json).collect::<Result<_, _>>()?),
            Found::Map(entries) => {
                let pairs = entries.iter().map(|entry| Ok((entry.key.clone(), entry.value.to_json()?)));
                Json::Object(pairs.collect::<Result<Map<_, _>, _>>()?)
            }
            Found::Tagged => return Err(self),
        })
    }

    /// A value that code gave, so without a place.
    pub(super) fn from_json(json: &Json) -> Self {
        let value = match json {
            Json::Null => Found::Nothing,
            Json::Bool(flag) => Found::Flag(*flag),
            Json::Number(number) => match number.as_i128() {
                Some(whole) => Found::Whole(whole),
                None => Found::Float(number.as_f64().unwrap_or(f64::NAN)),
            },
            Json::String(text) => Found::Text(text.clone()),
            Json::Array(items) => Found::List(items.iter().map(Self::from_json).collect()),
            Json::Object(map) => Found::Map(Self::entries(map)),
        };
        Self { value, place: None }
    }

    /// The entries of a map that code gave.
    pub(super) fn entries(map: &Map<String, Json>) -> Vec<Entry> {
        map.iter()
            .map(|(key, value)| Entry { key: key.clone(), key_place: None, value: Self::from_json(value) })
            .collect()
    }
}

/// What was found, for the end of a message: `.nan`, `-5`, `` `lots` ``, `a list`.
impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("nothing"),
            Self::Flag(flag) => write!(f, "{flag}"),
            Self::Whole(number) => write!(f, "{number}"),
            Self::Float(number) if number.is_nan() => f.write_str(".nan"),
            Self::Float(number) if number.is_infinite() => f.write_str(if *number > 0.0 { ".inf" } else { "-.inf" }),
            Self::Float(number) => write!(f, "{number:?}"),
            Self::Text(text) => write!(f, "{}", Quoted(text)),
            Self::List(_) => f.write_str("a list"),
            Self::Map(_) => f.write_str("a map"),
            Self::Tagged => f.write_str("a value with a tag"),
        }
    }
}

/// A text from a document inside backquotes, on one line and bounded.
pub(super) struct Quoted<'a>(pub(super) &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 48;
        f.write_str("`")?;
        for c in self.0.chars().take(SHOWN) {
            if c.is_control() { write!(f, "{}", c.escape_default())? } else { write!(f, "{c}")? }
        }
        f.write_str(if self.0.chars().nth(SHOWN).is_some() { "…`" } else { "`" })
    }
}
