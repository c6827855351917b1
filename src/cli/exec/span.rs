use std::time::Duration;

/// A span as the command line takes it: `90`, `90s`, `500ms`, `5m`, `1h30m`, `2d`; a bare number is in seconds.
pub(super) fn parse(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is no span of time: write 90s, 500ms, 5m, 1h30m or 2d");
    let mut total = Duration::ZERO;
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(wrong());
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, after) = rest.split_at(digits);
        let letters = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, after) = after.split_at(letters);
        let millis = match unit {
            "ms" => 1.0,
            "s" => 1e3,
            "" if number.len() == text.trim().len() => 1e3,
            "m" | "min" => 6e4,
            "h" => 3.6e6,
            "d" => 8.64e7,
            _ => return Err(wrong()),
        };
        let number: f64 = number.parse().map_err(|_| wrong())?;
        let part = Duration::try_from_secs_f64(number * millis / 1e3).map_err(|_| wrong())?;
        total = total.checked_add(part).ok_or_else(wrong)?;
        rest = after;
    }
    Ok(total)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn spans_read_with_and_without_units() {
        let cases = [
            ("90", 90_000),
            ("1.5", 1_500),
            ("500ms", 500),
            ("5m", 300_000),
            ("1h30m", 5_400_000),
            ("2d", 172_800_000),
            ("0", 0),
        ];
        for (text, millis) in cases {
            assert_eq!(parse(text).unwrap(), Duration::from_millis(millis), "{text}");
        }
    }

    #[test]
    fn what_is_no_span_is_refused() {
        for text in ["", "s", "-1s", "5x", "1h30", "inf", "1e99999d", "1..2s", "99999999999999999999999d"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
