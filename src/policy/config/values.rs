use std::fmt;

use serde::de::{
    Deserialize, Deserializer, EnumAccess, Error, IgnoredAny, MapAccess, SeqAccess, VariantAccess, Visitor,
};

use super::Place;
use super::marks::Unreadable;

/// A document's values, without positions and with keys in their order.
///
/// `serde_yaml::Value` refuses whole numbers over 64 bits without a reason that a user could
/// follow; here they are floats, and the form of the value says what is wrong.
#[derive(Debug, PartialEq)]
pub(super) enum Raw {
    Nothing,
    Flag(bool),
    Whole(i128),
    Float(f64),
    Text(String),
    List(Vec<Raw>),
    Map(Vec<(Raw, Raw)>),
    Tagged,
}

/// The only place that `serde_yaml` is called from.
pub(super) fn read(text: &str) -> Result<Raw, Unreadable> {
    serde_yaml::from_str(text).map_err(|error| {
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX).max(1);
        let place =
            error.location().map_or(Place::START, |at| Place { line: number(at.line()), column: number(at.column()) });
        let said = error.to_string();
        let message = said.split(" at line ").next().unwrap_or(&said).to_owned();
        Unreadable { place, message }
    })
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(RawVisitor)
    }
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = Raw;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_unit<E: Error>(self) -> Result<Raw, E> {
        Ok(Raw::Nothing)
    }

    fn visit_none<E: Error>(self) -> Result<Raw, E> {
        Ok(Raw::Nothing)
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<Raw, E> {
        Ok(Raw::Flag(flag))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Raw, E> {
        Ok(Raw::Whole(number.into()))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Raw, E> {
        Ok(Raw::Whole(number.into()))
    }

    fn visit_i128<E: Error>(self, number: i128) -> Result<Raw, E> {
        Ok(Raw::Float(number as f64))
    }

    fn visit_u128<E: Error>(self, number: u128) -> Result<Raw, E> {
        Ok(Raw::Float(number as f64))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Raw, E> {
        Ok(Raw::Float(number))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Raw, E> {
        Ok(Raw::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Raw, A::Error> {
        let mut items = vec![];
        while let Some(item) = from.next_element()? {
            items.push(item);
        }
        Ok(Raw::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Raw, A::Error> {
        let mut pairs = vec![];
        while let Some(pair) = from.next_entry()? {
            pairs.push(pair);
        }
        Ok(Raw::Map(pairs))
    }

    fn visit_enum<A: EnumAccess<'de>>(self, from: A) -> Result<Raw, A::Error> {
        let (_tag, value): (String, _) = from.variant()?;
        value.newtype_variant::<IgnoredAny>()?;
        Ok(Raw::Tagged)
    }
}
