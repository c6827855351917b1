//! Stated waits: in headers, fields and words.

use std::sync::LazyLock;
use std::time::Duration;

use super::Timestamp;
use super::evidence::Evidence;
use super::http_date::http_date;
use super::knowledge::knowledge;
use super::lexicon::Scan;
use super::search::Search;

/// The relative wait that the server stated, whatever its length.
pub(crate) fn retry_after(evidence: &Evidence, now: Timestamp) -> Option<Duration> {
    let header = |name: &str| evidence.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str());
    let named = |wanted: &str| evidence.numbers.iter().find(|(own, _)| own == wanted).map(|(_, value)| value.as_str());
    let millis = header("retry-after-ms")
        .or_else(|| header("x-ms-retry-after-ms"))
        .or_else(|| named("retryafterms"))
        .or_else(|| named("retrydelayms"));
    let seconds =
        header("retry-after").or_else(|| header("x-retry-after")).or_else(|| header("x-ratelimit-reset-after"));
    millis
        .and_then(|text| positive(text.trim().parse::<f64>().ok()? / 1000.0))
        .or_else(|| seconds.and_then(|text| seconds_or_date(text, now)))
        .or_else(|| in_words(evidence.text(), evidence.scan()))
        .or_else(|| named("retrydelay").and_then(span))
        .or_else(|| {
            [
                "retryafter",
                "retryafterseconds",
                "retryaftersecs",
                "retryaftersec",
                "resetsinseconds",
                "resetinseconds",
                "resetafterseconds",
                "waitseconds",
                "cooldownseconds",
                "retryafters",
                "retryinseconds",
            ]
            .iter()
            .find_map(|key| named(key).and_then(|text| seconds_or_date(text, now)))
        })
}

fn positive(seconds: f64) -> Option<Duration> {
    // Rounded to milliseconds: nobody means the nanoseconds of a float.
    (seconds > 0.0).then(|| Duration::try_from_secs_f64((seconds * 1000.0).floor() / 1000.0).ok()).flatten()
}

/// `120`, `1.5`, `47s`, or an HTTP date.
fn seconds_or_date(text: &str, now: Timestamp) -> Option<Duration> {
    let text = text.trim();
    match text.parse::<f64>() {
        Ok(seconds) => positive(seconds),
        Err(_) => whole_span(text).or_else(|| {
            let at = http_date(text)?;
            Some(Timestamp::from_millis(at).since(now)).filter(|wait| !wait.is_zero())
        }),
    }
}

/// A span and nothing else: not the digits and letters of some other value.
fn whole_span(text: &str) -> Option<Duration> {
    static WHOLE: LazyLock<Search> = LazyLock::new(|| Search::bare(&format!(r"\A{SPAN}\z")));
    if WHOLE.is_match(text) { span(text) } else { None }
}

const SPAN: &str = concat!(
    r"(?:\d+(?:\.\d+)?\s*(?:milliseconds?|msecs?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d",
    r"|秒钟|秒間|秒|分钟|分間|分鐘|分|小时|小時|時間|天|日|초|분|시간|일)\b?[\s,]*(?:and )?)+",
);

/// How waits are told in words.
pub(crate) fn wordings() -> Vec<String> {
    [
        // "Retrying in" is the client's own plan, not the server's word; so `retry` must end there.
        concat!(
            r"(?i)\b(?:try(?:ing)? again|retry(?: your requests?| the requests?| this)?|retry[- ]after|wait(?: for)?",
            r"|available(?: again)?|resets?|refreshe?s?|resets? (?:after|in)|come back|back off(?: for)?)[:\s]*",
            r"(?:in|after|at least|about|approximately|another|for)?[:\s]*(?:another |about |approximately )?",
            r"(?P<span>SPAN)",
        ),
        concat!(
            r"(?i)(?P<span>SPAN)",
            r" ?(?:之?[后後]?,? ?(?:重试|再试|重試|再試|恢复)|[后後]に?(?:再試行|もう一度|再度|お試し)|お?待|후에? ?(?:다시|재시도)",
            r"|before (?:trying|retrying|sending|making|you)|until (?:the )?(?:reset|retry))",
        ),
        r"(?i)(?:请|請)(?:等待|等|在|于)(?:约)? ?(?P<span>SPAN)",
        r"(?i)\b(?:cool(?:ing)?[- ]?down|replenished|back ?off|suggested wait)(?: for| of| period| time)?[: ]*(?:in )?(?P<span>SPAN)",
        r"(?i)\breplenished in (?P<hours>\d+):(?P<minutes>\d\d):(?P<seconds>\d\d)\b",
        r"(?i)\bretry[-_ ]?after(?:[-_ ]sec(?:ond)?s)?[\x22']?\s*[:=]\s*[\x22']?(?P<seconds>\d+(?:\.\d+)?)\b",
        r"(?i)\bresets_in_seconds[\x22']?\s*[:=]\s*(?P<seconds>\d+)\b",
        r"(?i)\bretry[-_ ]?after[-_ ]?ms[\x22']?\s*[:=]\s*[\x22']?(?P<millis>\d+)\b",
        r"(?i)\bretryDelay[\x22']?\s*[:=]\s*[\x22']?(?P<seconds>\d+(?:\.\d+)?)s\b",
    ]
    .iter()
    .map(|regex| regex.replace("SPAN", SPAN))
    .collect()
}

fn in_words(text: &str, scan: &Scan) -> Option<Duration> {
    knowledge().wordings.waits.iter().find_map(|regex| {
        regex.captures(text, scan).find_map(|found| {
            if let Some(whole) = found.name("span") {
                return span(whole.as_str());
            }
            let number = |name: &str| found.name(name)?.as_str().parse::<f64>().ok();
            if let Some((hours, minutes)) = number("hours").zip(number("minutes")) {
                return positive(hours * 3600.0 + minutes * 60.0 + number("seconds")?);
            }
            number("seconds").and_then(positive).or_else(|| positive(number("millis")? / 1000.0))
        })
    })
}

static PART: LazyLock<Search> = LazyLock::new(|| Search::bare(r"(\d+(?:\.\d+)?)\s*([a-zA-Z]+|[^\sa-zA-Z\d]+)"));

/// `9m38.016s`, `45.8s`, `2 hours and 5 minutes`.
fn span(text: &str) -> Option<Duration> {
    let mut seconds = 0.0;
    let mut any = false;
    for part in PART.captures_iter(text) {
        let number: f64 = part[1].parse().ok()?;
        let unit = match part[2].to_ascii_lowercase().trim_end_matches([',', '.']) {
            "ms" | "msec" | "msecs" | "millisecond" | "milliseconds" => 0.001,
            "s" | "sec" | "secs" | "second" | "seconds" | "秒" | "秒钟" | "秒間" | "초" => 1.0,
            "m" | "min" | "mins" | "minute" | "minutes" | "分" | "分钟" | "分鐘" | "分間" | "분" => 60.0,
            "h" | "hr" | "hrs" | "hour" | "hours" | "小时" | "小時" | "時間" | "시간" => 3600.0,
            "d" | "day" | "days" | "天" | "日" | "일" => 86_400.0,
            _ => continue,
        };
        any = true;
        seconds += number * unit;
    }
    if any { positive(seconds + 1e-7) } else { None }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::failure::Report;
    use crate::failure::evidence::DEFAULT_CAP;
    use serde_json::json;

    const NOW: Timestamp = Timestamp::from_millis(1_748_944_800_000); // Tue, 03 Jun 2025 10:00:00 GMT

    fn wait(value: serde_json::Value) -> Option<u64> {
        let evidence = Evidence::of(&Report::from_value(value), DEFAULT_CAP);
        retry_after(&evidence, NOW).map(|wait| u64::try_from(wait.as_millis()).unwrap())
    }

    #[test]
    fn stated_waits_are_read_in_every_unit() {
        for (text, want) in [
            ("Please try again in 6ms.", 6),
            ("Please try again in 9m38.016s. Need more", 578_016),
            ("Please retry after 86400 seconds.", 86_400_000),
            ("Please retry in 47.434392449s.", 47_434),
            ("Try again in 5 minutes", 300_000),
            ("Please wait 2 hours and 5 minutes before retrying", 7_500_000),
            ("Your quota will reset after 3h20m1s.", 12_001_000),
            ("请在 30 秒后重试", 30_000),
            ("30秒後に再試行してください", 30_000),
            ("retry_after: 12", 12_000),
        ] {
            assert_eq!(wait(text.into()), Some(want), "{text}");
        }
    }

    #[test]
    fn a_clients_own_plan_and_clock_times_are_no_stated_wait() {
        for text in [
            "Retrying in 2 seconds… (attempt 3/10)",
            "resets 3:30am (Europe/Moscow)",
            "timed out after 30 s",
            "retrying 1/5 in 193ms",
        ] {
            assert_eq!(wait(text.into()), None, "{text}");
        }
    }

    #[test]
    fn headers_come_before_words_and_dates_are_relative_to_now() {
        let with = |headers: serde_json::Value| json!({"status": 429, "headers": headers, "body": "try again in 1s"});
        assert_eq!(wait(with(json!({"retry-after": "7"}))), Some(7_000));
        assert_eq!(wait(with(json!({"retry-after-ms": "250", "retry-after": "7"}))), Some(250));
        assert_eq!(wait(with(json!({"Retry-After": "Tue, 03 Jun 2025 10:01:30 GMT"}))), Some(90_000));
        assert_eq!(wait(with(json!({"retry-after": "Tue, 03 Jun 2025 09:00:00 GMT"}))), Some(1_000));
        assert_eq!(wait(with(json!({"x-ratelimit-reset-tokens": "28ms"}))), Some(1_000));
        assert_eq!(wait(with(json!({"retry-after": "-5"}))), Some(1_000));
        assert_eq!(wait(with(json!({"retry-after": "1e300"}))), Some(1_000));
        assert_eq!(wait(json!({"status": 429, "headers": {"retry-after": "key-4d6F7g-2h"}})), None, "no span");
    }
}
