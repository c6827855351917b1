//! Spans as a scenario writes them: `250ms`, `30s`, `3m`, `8h`.

use std::time::Duration;

use serde::{Deserialize, Deserializer, de};

pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(from)?;
    parse(&text).ok_or_else(|| de::Error::custom(format_args!("`{text}` is no span: write 250ms, 30s, 3m or 8h")))
}

pub(super) fn optional<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    deserialize(from).map(Some)
}

fn parse(text: &str) -> Option<Duration> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(digits);
    let seconds = match unit.trim() {
        "ms" => 0.001,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3_600.0,
        _ => return None,
    };
    Duration::try_from_secs_f64(number.parse::<f64>().ok()? * seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_a_unit() {
        assert_eq!(parse("250ms"), Some(Duration::from_millis(250)));
        assert_eq!(parse("1.5m"), Some(Duration::from_secs(90)));
        assert_eq!(parse("8h"), Some(Duration::from_secs(28_800)));
        for wrong in ["", "30", "s", "-3s", "3 days", "1e400s"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
