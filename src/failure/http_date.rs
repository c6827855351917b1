//! Dates as HTTP headers tell them.

/// `Tue, 03 Jun 2025 10:00:00 GMT` as milliseconds since the epoch.
pub(crate) fn http_date(text: &str) -> Option<u64> {
    const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let mut words = text.split([' ', '-', ':', ',']).filter(|word| !word.is_empty()).skip(1);
    let day: i64 = words.next()?.parse().ok()?;
    let month = words.next()?.to_ascii_lowercase();
    let month = i64::try_from(MONTHS.iter().position(|name| month.starts_with(name))?).ok()? + 1;
    let year: i64 = words.next()?.parse().ok().filter(|year| (1970..10_000).contains(year))?;
    let mut clock = [0_i64; 3];
    for part in &mut clock {
        *part = words.next()?.parse().ok().filter(|value| (0..=60).contains(value))?;
    }
    // Days from civil, counting years from March.
    let year = if month <= 2 { year - 1 } else { year };
    let era = year / 400;
    let of_era = year - era * 400;
    let of_year = (153 * (if month > 2 { month - 3 } else { month + 9 }) + 2) / 5 + day - 1;
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468;
    let seconds = days * 86_400 + clock[0] * 3600 + clock[1] * 60 + clock[2];
    u64::try_from(seconds).ok()?.checked_mul(1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_read_and_a_mere_word_is_not() {
        assert_eq!(http_date("Tue, 03 Jun 2025 10:00:00 GMT"), Some(1_748_944_800_000));
        assert_eq!(http_date("soon"), None);
    }
}
