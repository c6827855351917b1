//! Numbers, times and foreign texts as people read them.

use std::time::Duration;

use crate::failure::Timestamp;

const SECOND: u128 = 1_000;
const MINUTE: u128 = 60 * SECOND;
const HOUR: u128 = 60 * MINUTE;
const DAY: u128 = 24 * HOUR;

/// A span in its two largest units: `350 ms`, `2.5 s`, `5 min`, `1 h 30 min`, `3 d`.
pub(super) fn span(span: Duration) -> String {
    let millis = span.as_millis();
    let two = |big: u128, big_name: &str, small: u128, small_name: &str| match millis % big / small {
        0 => format!("{} {big_name}", millis / big),
        rest => format!("{} {big_name} {rest} {small_name}", millis / big),
    };
    match millis {
        0 => "0 s".to_owned(),
        1..SECOND => format!("{millis} ms"),
        SECOND..MINUTE if millis.is_multiple_of(SECOND) => format!("{} s", millis / SECOND),
        SECOND..MINUTE => format!("{:.1} s", (millis / 100) as f64 / 10.0),
        MINUTE..HOUR => two(MINUTE, "min", SECOND, "s"),
        HOUR..DAY => two(HOUR, "h", MINUTE, "min"),
        _ => two(DAY, "d", HOUR, "h"),
    }
}

/// How long ago: the largest unit is enough for a table.
pub(super) fn ago(then: Timestamp, now: Timestamp) -> String {
    let millis = now.since(then).as_millis();
    match millis {
        0..SECOND => "now".to_owned(),
        SECOND..MINUTE => format!("{} s ago", millis / SECOND),
        MINUTE..HOUR => format!("{} min ago", millis / MINUTE),
        HOUR..DAY => format!("{} h ago", millis / HOUR),
        _ => format!("{} d ago", millis / DAY),
    }
}

/// A moment in UTC: `2026-03-01 12:00:00 UTC`.
pub(super) fn moment(at: Timestamp) -> String {
    let seconds = at.as_millis() / 1_000;
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = date(days);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02} UTC", rest / 3_600, rest % 3_600 / 60, rest % 60)
}

/// The Gregorian date of a day counted from 1970-01-01.
fn date(days: u64) -> (u64, u64, u64) {
    /// Days of 400 years, after which the calendar repeats.
    const ERA: u64 = 146_097;
    // Counted from 1 March of the year 0, so that a leap day is the last of its year.
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / ERA, shifted % ERA);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

/// A text from outside on one line: nothing in it moves the cursor, colours, hides or reorders.
pub(super) fn escaped(text: &str) -> String {
    let shown = |c: char| match c {
        '"' | '\'' => c.to_string(),
        _ => c.escape_debug().to_string(),
    };
    text.chars().map(shown).collect()
}

/// At most this many characters of an escaped text.
pub(super) fn short(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some(_) => text.chars().take(most.saturating_sub(1)).chain(['…']).collect(),
    }
}

/// Rows under a head, every column as wide as its widest cell; the last one is left ragged.
pub(super) fn table<const N: usize>(head: [&str; N], rows: &[[String; N]]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([head[column].chars().count()]).max().unwrap_or_default()
    };
    let widths: [usize; N] = std::array::from_fn(width);
    let line = |cells: [&str; N]| {
        let padded: Vec<String> = cells.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        padded.join("  ").trim_end().to_owned() + "\n"
    };
    let rows = rows.iter().map(|row| line(std::array::from_fn(|column| row[column].as_str())));
    std::iter::once(line(head)).chain(rows).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_read_well() {
        let table = [
            (0, "0 s"),
            (350, "350 ms"),
            (2_000, "2 s"),
            (2_590, "2.5 s"),
            (300_000, "5 min"),
            (90_000, "1 min 30 s"),
            (5_400_000, "1 h 30 min"),
            (3 * 86_400_000 + 3_600_000, "3 d 1 h"),
        ];
        for (millis, text) in table {
            assert_eq!(span(Duration::from_millis(millis)), text);
        }
    }

    #[test]
    fn ages_have_one_unit_and_a_clock_that_went_back_gives_none() {
        let at = |millis: u64| ago(Timestamp::from_millis(1_000), Timestamp::from_millis(1_000 + millis));
        assert_eq!(at(999), "now");
        assert_eq!([at(1_000), at(61_000), at(7_200_000)], ["1 s ago", "1 min ago", "2 h ago"]);
        assert_eq!(at(400 * 86_400_000), "400 d ago");
        assert_eq!(ago(Timestamp::from_millis(9), Timestamp::default()), "now");
    }

    #[test]
    fn moments_are_dates_of_the_calendar() {
        let table = [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_399, "2000-02-28 23:59:59 UTC"),
            (951_782_400, "2000-02-29 00:00:00 UTC"),
            (1_700_000_000, "2023-11-14 22:13:20 UTC"),
            (4_107_542_400, "2100-03-01 00:00:00 UTC"),
        ];
        for (seconds, text) in table {
            assert_eq!(moment(Timestamp::from_millis(seconds * 1_000)), text);
        }
        moment(Timestamp::from_millis(u64::MAX));
    }

    #[test]
    fn what_could_move_hide_or_reorder_is_escaped() {
        assert_eq!(escaped("a\u{1b}[2J\n\u{202e}\u{200b}\\"), r"a\u{1b}[2J\n\u{202e}\u{200b}\\");
        assert_eq!(escaped("it's \"fine\" 多"), "it's \"fine\" 多");
    }

    #[test]
    fn long_texts_end_with_a_mark() {
        assert_eq!([short("abcd", 4), short("abcde", 4)], ["abcd", "abc…"]);
    }

    #[test]
    fn columns_are_aligned() {
        let rows = [["a".to_owned(), "1".to_owned()], ["long".to_owned(), "22".to_owned()]];
        assert_eq!(table(["ID", "N"], &rows), "ID    N\na     1\nlong  22\n");
    }
}
