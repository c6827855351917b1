//! Token numbers: the window or the limit, and what the request needed.

use regex::Captures;

use super::TokenCounts;
use super::evidence::Evidence;
use super::knowledge::knowledge;
use super::search::Search;

/// A number that may have separators: `1,048,576`, `200_000`, `128k`.
const NUMBER: &str = r"\d[\d,_]*";

fn sources(all: &[&str]) -> Vec<String> {
    all.iter()
        .map(|text| {
            let text = text
                .replace("LIMIT", &format!("(?P<limit>{NUMBER})"))
                .replace("ACTUAL", &format!("(?P<actual>{NUMBER})"))
                .replace("PROMPT", &format!("(?P<prompt>{NUMBER})"));
            format!("(?is){}", text.replace(" N ", &format!(" {NUMBER} ")))
        })
        .collect()
}

/// Wordings of overflows, those with both numbers first.
const OVERFLOW: &[&str] = &[
    r"\bcannot exceed LIMIT\b[^\n]{0,20}\breceived ACTUAL",
    r"exceeds (?:the )?max(?:imum)? token count \(ACTUAL ?/ ?LIMIT\)",
    r"number of tokens \(?ACTUAL\)? exceed\w* (?:the )?maximum context length \(?LIMIT",
    r"context length is LIMIT tokens\b.{0,200}?\btotal of (?:at least )?ACTUAL tokens",
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
        r"tokens? per\s(?:\\\s*)?(?:min(?:ute)?|day|hour|second)[^:\n]{0,30}:? *limit:? LIMIT(?:,",
        r" used \d+)?(?:, requested:?\s+~?ACTUAL)?"
    ),
    r"limit:? LIMIT,\s+used:? [\d,]+,\s+requested:?\s+~?ACTUAL",
    r"(?:request too large|too large)[^\n]{0,200}?limit:? LIMIT,? requested:?\s+~?ACTUAL",
    r"(?:limit|rate limit) (?:is|of) LIMIT (?:\w+ )?(?:input |output )?tokens? per (?:min|day|hour|second)",
    r"rate limit of LIMIT (?:input |output )?tokens? per",
    r"token[_ ]count, limit: LIMIT",
    r"\bTPM rate limit, current: \d+, limit: LIMIT",
    r"\bTP[MD]\b[^\n]{0,60}\blimit:? LIMIT\b",
    r"\bLIMIT (?:input |output )?tokens? per (?:min|day|hour|second)",
    r"tokens?[^\n]{0,60}?limit:? LIMIT ?/ ?min",
];

/// How much of a request that is too long is its prompt.
const PROMPT: &[&str] = &[
    r"\(PROMPT (?:tokens )?(?:in (?:the|your) (?:messages?|prompt|input)|of (?:text )?(?:input|prompt)|from the input)\b",
    r"\byour (?:messages|prompt|input) (?:has|have|contains?|is) PROMPT (?:input )?tokens\b[^\n]{0,120}\bcompletion",
    r"\bprompt contains (?:at least )?PROMPT input tokens\b",
];

pub(crate) fn of_overflows() -> Vec<String> {
    sources(OVERFLOW)
}

pub(crate) fn of_throttles() -> Vec<String> {
    sources(THROTTLE)
}

pub(crate) fn of_prompts() -> Vec<String> {
    sources(PROMPT)
}

/// What an overflow states.
pub(crate) fn overflow(evidence: &Evidence) -> TokenCounts {
    let named = |names: &[&str]| {
        names.iter().find_map(|name| evidence.numbers.iter().find(|(own, _)| own == name)?.1.parse::<u64>().ok())
    };
    let (limit, actual) =
        (named(&["nctx", "contextlength", "maxtokensallowed"]), named(&["nprompttokens", "prompttokens"]));
    if limit.is_some() && actual.is_some() {
        return TokenCounts { limit, actual, prompt: actual };
    }
    let wordings = &knowledge().wordings;
    let found = counts(&wordings.overflow, evidence);
    let prompt = || {
        let told = wordings.prompt.iter().find_map(|regex| regex.captures(evidence.lines(), evidence.scan()).next())?;
        number(&told, "prompt")
    };
    TokenCounts { prompt: found.prompt.or_else(prompt), ..found }
}

/// What a throttle that counts tokens states.
pub(crate) fn throttle(evidence: &Evidence) -> TokenCounts {
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
        let prompt = number(&found, "part1");
        let parts = prompt.zip(number(&found, "part2")).map(|(one, two)| one.saturating_add(two));
        let actual = number(&found, "actual").or(parts);
        if limit.is_some() && actual.is_some() {
            return TokenCounts { limit, actual, prompt };
        }
        if best.limit.is_none() {
            best = TokenCounts { limit, actual, prompt };
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
            let found = overflow(&Evidence::of(&Report::text(text), DEFAULT_CAP));
            assert_eq!((found.limit, found.actual), (Some(limit), actual), "{text}");
        }
    }

    #[test]
    fn what_max_tokens_adds_is_told_from_the_prompt() {
        for (text, alone) in [
            ("input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000", true),
            ("input length and `max_tokens` exceed context limit: 210000 + 1000 > 200000", false),
            (
                "maximum context length is 8192 tokens. However, you requested 9000 tokens (5000 in the messages, 4000 in the completion).",
                true,
            ),
            (
                "maximum context length is 131072 tokens. However, you requested about 140000 tokens (139000 of text input, 1000 in the output).",
                false,
            ),
            ("prompt is too long: 208310 tokens > 200000 maximum", false),
        ] {
            let found = overflow(&Evidence::of(&Report::text(text), DEFAULT_CAP));
            assert_eq!(found.max_tokens_alone(), alone, "{text}: {found:?}");
        }
    }
}
