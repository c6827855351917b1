//! Facts in numbers: stated waits and token counts.

use std::sync::LazyLock;
use std::time::Duration;

use regex::Captures;

use super::evidence::Evidence;
use super::http_date::http_date;
use super::knowledge::knowledge;
use super::lexicon::{Scan, WordId, Words};
use super::search::Search;
use super::{Details, Kind, Timestamp, TokenCounts};

/// A stated wait longer than this is a mistake of whoever stated it.
const MAX_WAIT: Duration = Duration::from_secs(400 * 24 * 3600);

/// Reads the details that a failure of this kind can state.
pub(crate) fn read(kind: &Kind, evidence: &Evidence, now: Timestamp) -> Details {
    let waits = matches!(
        kind,
        Kind::RateLimit
            | Kind::Overloaded
            | Kind::QuotaExhausted
            | Kind::ServerError
            | Kind::ServiceUnavailable
            | Kind::Timeout
            | Kind::Other
            | Kind::Custom(_)
    );
    let tokens = match kind {
        Kind::ContextOverflow => overflow(evidence),
        Kind::RateLimit | Kind::QuotaExhausted => throttle(evidence),
        _ => TokenCounts::default(),
    };
    let retry_after = if waits { retry_after(evidence, now) } else { None };
    Details { retry_after: retry_after.filter(|wait| *wait <= MAX_WAIT), tokens, status: evidence.status() }
}

fn retry_after(evidence: &Evidence, now: Timestamp) -> Option<Duration> {
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
        Err(_) => span(text).or_else(|| {
            let at = http_date(text)?;
            Some(Timestamp::from_millis(at).since(now)).filter(|wait| !wait.is_zero())
        }),
    }
}

const SPAN: &str = concat!(
    r"(?:\d+(?:\.\d+)?\s*(?:milliseconds?|msecs?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d",
    r"|秒钟|秒間|秒|分钟|分間|分鐘|分|小时|小時|時間|天|日|초|분|시간|일)\b?[\s,]*(?:and )?)+",
);

/// How waits are told in words.
fn waits() -> Vec<String> {
    [
        // "Retrying in" is the client's own plan, not the server's word; so `retry` must end there.
        concat!(
            r"(?i)\b(?:try(?:ing)? again|retry(?: your requests?| the requests?| this)?|retry[- ]after|wait(?: for)?",
            r"|available(?: again)?|resets?|refreshe?s?|resets? (?:after|in)|come back|back off(?: for)?)[: ]*",
            r"(?:in|after|at least|about|approximately|another|for)?[: ]*(?:another |about |approximately )?",
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

/// The wordings of waits and token counts, compiled.
#[derive(Debug)]
pub(crate) struct Wordings {
    waits: Vec<Search>,
    overflow: Vec<Search>,
    throttle: Vec<Search>,
    /// The words without one of which no throttle speaks of tokens.
    token: [WordId; 3],
}

impl Wordings {
    pub(crate) fn new(words: &mut Words) -> Self {
        let mut all = |sources: Vec<String>| sources.iter().map(|source| Search::new(source, words)).collect();
        let (waits, overflow, throttle) = (all(waits()), all(sources(OVERFLOW)), all(sources(THROTTLE)));
        Self { waits, overflow, throttle, token: ["*token*", "*tpm*", "*tpd*"].map(|word| words.phrase(word)) }
    }

    #[cfg(test)]
    pub(crate) fn searches(&self) -> impl Iterator<Item = &Search> {
        self.waits.iter().chain(&self.overflow).chain(&self.throttle)
    }
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

/// A number that may have separators: `1,048,576`, `200_000`, `128k`.
const NUMBER: &str = r"\d[\d,_]*";

fn sources(all: &[&str]) -> Vec<String> {
    all.iter()
        .map(|text| {
            let text = text
                .replace("LIMIT", &format!("(?P<limit>{NUMBER})"))
                .replace("ACTUAL", &format!("(?P<actual>{NUMBER})"));
            format!("(?is){}", text.replace(" N ", &format!(" {NUMBER} ")))
        })
        .collect()
}

/// Wordings of overflows, those with both numbers first.
const OVERFLOW: &[&str] = &[
    // Anthropic, and whoever copies `N > M`.
    r"prompt is too long:? *\(?ACTUAL(?: tokens)? *> *LIMIT",
    r"input length and `?max_tokens`? exceed context limit: *(?P<part1>\d+) \+ (?P<part2>\d+) > LIMIT",
    r"(?:too long|too large):? *\(?ACTUAL(?: tokens)?\)?, ?[\w ]{0,60}?(?:length|limit|window|maximum|max):? *LIMIT",
    concat!(r"must be <= LIMIT\. given: (?P<part1>\d+) `?inputs`? tokens and", r" (?P<part2>\d+) `?max_new_tokens"),
    r"prompt contains ACTUAL tokens\b[^\n]{0,80}model with LIMIT maximum",
    r"n_keep:? ?\(?ACTUAL\)? ?>= ?n_ctx:? ?\(?LIMIT",
    r"\(length ACTUAL\)[^\n]{0,60}maximum model length of LIMIT",
    r"context length is LIMIT tokens and your request has ACTUAL",
    r"(?:passed|have) ACTUAL input tokens\b.{0,160}?(?:context length|context window|limit)\D{0,20}LIMIT",
    r"token count of ACTUAL exceeds the limit of LIMIT",
    r"input length \(?ACTUAL\b[^\n]{0,40}(?:exceeds?|longer)\D{0,60}LIMIT",
    r"total of ACTUAL tokens[^\n]{0,200}(?:maximum|limit|context)\D{0,40}LIMIT",
    r"context length of LIMIT tokens\. you requested a total of ACTUAL",
    r"too many tokens:? *\(?ACTUAL *> *LIMIT",
    concat!(
        r"(?:~|about )?ACTUAL tokens? ?(?:>|exceeds?|is (?:greater|larger|more) than|over|of)",
        r" ?(?:the )?(?:maximum |model'?s? |context |window |limit |allowed |of )*LIMIT"
    ),
    // OpenAI and its many followers.
    concat!(
        r"(?:maximum|max) context (?:length|window)(?: size)?(?: of this model)? (?:is|of|limit",
        r" is) LIMIT tokens?\W.{0,120}?(?:requested|resulted in|contains?|has|passed|used|sent",
        r"|provided|at least|you have|got)\D{0,40}?ACTUAL"
    ),
    r"maximum context length is LIMIT\b.{0,80}?(?:you sent|resulted in|requested(?: about)?) ACTUAL",
    r"(?:requested|have) ACTUAL tokens.{0,120}?(?:maximum|limit|context)\D{0,60}LIMIT",
    r"input token count \(?ACTUAL\)? exceeds the maximum number of tokens allowed \(?LIMIT",
    r"input token count of ACTUAL\D{1,80}LIMIT",
    r"\(total length ACTUAL\) is too long to fit into the model \(context length LIMIT",
    r"requested tokens \(ACTUAL\) exceed context window of LIMIT",
    r"must have less than LIMIT tokens\. given: ACTUAL",
    r"must be <= LIMIT\. given: ACTUAL",
    r"first ACTUAL tokens when .{0,80}context length of only LIMIT",
    r"request \(ACTUAL tokens\) exceeds the available context size \(LIMIT",
    r"n_prompt_tokens\D{1,6}ACTUAL\D{1,30}n_ctx\D{1,6}LIMIT",
    concat!(
        r"(?:prompt|input|request|messages?)\b[^.\n]{0,60}?\bACTUAL(?: input)?",
        r" tokens?\b[^\n]{0,80}?(?:limit|maximum|max|window|context|exceed|only",
        r"|allowed)[^\d\n]{0,60}LIMIT"
    ),
    concat!(
        r"(?:limit|maximum|window|context length|max)\D{0,30}LIMIT(?:",
        r" tokens)?\b[^\n]{0,60}?\b(?:but|got|given|actual|requested|received|current|your|prompt",
        r"|input|has|sent)\D{0,40}ACTUAL"
    ),
    r"prompt length \(?ACTUAL\)? exceeds max(?:imum)?\D{0,40}LIMIT",
    concat!(
        r"(?:prompt|input|request|conversation)\D{0,40}ACTUAL\D{0,60}(?:exceed|larger|greater",
        r"|longer|more than|over)\D{0,60}LIMIT"
    ),
    r"current length is ACTUAL while limit is LIMIT",
    r"token limit: LIMIT \(re ?quested: ACTUAL",
    r"n_ctx(?:_slot)? = LIMIT\b.{0,80}?n_prompt_tokens = ACTUAL",
    // The window alone.
    r"range of input length should be \[\d+, ?LIMIT",
    concat!(
        r"(?:maximum|max) (?:context|prompt|input|token|sequence) ?(?:length|window|limit",
        r"|tokens?)?(?: is| of|:| for this model is)? \(?LIMIT"
    ),
    concat!(
        r"exceed(?:s|ed)? (?:the )?(?:model'?s? )?(?:maximum )?(?:context|token|input) ?(?:length",
        r"|window|limit|size)?(?: limit)?(?: of| is|:|,)? \(?LIMIT"
    ),
    r"max(?:imum)? (?:request )?size:? LIMIT tokens",
    r"(?:limit|maximum|max)(?: of| is|:)? LIMIT (?:input |prompt |context )?tokens",
    r"context[_ ]window[_ ]tokens?=(?:Some\()?LIMIT",
    r"context (?:window|length|limit|size)(?: of| is|:|=)? (?:only )?LIMIT",
];

const THROTTLE: &[&str] = &[
    concat!(
        r"tokens? per (?:\\\s*)?(?:min(?:ute)?|day|hour|second)[^:\n]{0,30}:? *limit:? LIMIT(?:,",
        r" used \d+)?(?:, requested:? ACTUAL)?"
    ),
    r"limit:? LIMIT, used:? [\d,]+, requested:? ACTUAL",
    r"(?:request too large|too large)[^\n]{0,200}?limit:? LIMIT,? requested:? ACTUAL",
    r"(?:limit|rate limit) (?:is|of) LIMIT (?:\w+ )?(?:input |output )?tokens? per (?:min|day|hour|second)",
    r"rate limit of LIMIT (?:input |output )?tokens? per",
    r"token[_ ]count, limit: LIMIT",
    r"\bTPM rate limit, current: \d+, limit: LIMIT",
    r"\bTP[MD]\b[^\n]{0,60}\blimit:? LIMIT\b",
    r"\bLIMIT (?:input |output )?tokens? per (?:min|day|hour|second)",
    r"tokens?[^\n]{0,60}?limit:? LIMIT ?/ ?min",
];

fn overflow(evidence: &Evidence) -> TokenCounts {
    let named = |names: &[&str]| {
        names.iter().find_map(|name| evidence.numbers.iter().find(|(own, _)| own == name)?.1.parse::<u64>().ok())
    };
    let (limit, actual) =
        (named(&["nctx", "contextlength", "maxtokensallowed"]), named(&["nprompttokens", "prompttokens"]));
    if limit.is_some() && actual.is_some() {
        return TokenCounts { limit, actual };
    }
    counts(&knowledge().wordings.overflow, evidence)
}

fn throttle(evidence: &Evidence) -> TokenCounts {
    let wordings = &knowledge().wordings;
    if !wordings.token.iter().any(|word| evidence.scan().has(*word)) {
        return TokenCounts::default();
    }
    counts(&wordings.throttle, evidence)
}

fn counts(regexes: &[Search], evidence: &Evidence) -> TokenCounts {
    let mut best = TokenCounts::default();
    for regex in regexes {
        let Some(found) = regex.captures(evidence.lines(), evidence.scan()).next() else { continue };
        let limit = number(&found, "limit");
        let parts = number(&found, "part1").zip(number(&found, "part2")).map(|(one, two)| one.saturating_add(two));
        let actual = number(&found, "actual").or(parts);
        if limit.is_some() && actual.is_some() {
            return TokenCounts { limit, actual };
        }
        if best.limit.is_none() {
            best = TokenCounts { limit, actual };
        }
    }
    best
}

fn number(found: &Captures<'_>, name: &str) -> Option<u64> {
    let text: String = found.name(name)?.as_str().chars().filter(char::is_ascii_digit).collect();
    text.parse().ok()
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
        read(&Kind::RateLimit, &evidence, NOW).retry_after.map(|wait| u64::try_from(wait.as_millis()).unwrap())
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
        assert_eq!(wait(json!({"status": 429, "headers": {"retry-after": "99999999999"}})), None);
    }

    #[test]
    fn token_numbers_keep_their_order_in_each_wording() {
        for (text, limit, actual) in [
            ("prompt is too long: 208310 tokens > 200000 maximum", 200_000, Some(208_310)),
            ("input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000", 200_000, Some(210_000)),
            (
                "maximum context length is 128000 tokens. However, your messages resulted in 140211 tokens.",
                128_000,
                Some(140_211),
            ),
            (
                "maximum context length is 8192 tokens. However, you requested 9000 tokens (5000 in the messages).",
                8_192,
                Some(9_000),
            ),
            (
                "The input token count (3475108) exceeds the maximum number of tokens allowed (1048576).",
                1_048_576,
                Some(3_475_108),
            ),
            ("Requested tokens (516) exceed context window of 512", 512, Some(516)),
            ("Range of input length should be [1, 983616]", 983_616, None),
        ] {
            let evidence = Evidence::of(&Report::text(text), DEFAULT_CAP);
            let found = read(&Kind::ContextOverflow, &evidence, NOW).tokens;
            assert_eq!((found.limit, found.actual), (Some(limit), actual), "{text}");
        }
    }
}
