use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Captures;

use super::lexicon::{Lexicon, Scan, Words};
use super::search::Search;
use super::secret_shapes::{SHAPES, Shape};

/// What stands where a secret stood.
const MASK: &str = "[masked]";
/// Values that are no secrets although they stand where one could.
static HARMLESS: LazyLock<Search> = LazyLock::new(|| {
    Search::bare(concat!(
        r"(?i)^(?:\[masked\]|\*+|<[^>]*>|\$\{?\w+\}?|null|none|true|false|undefined|missing",
        r"|invalid|required|expired|incorrect|string|env(?:ironment)?|process\.env\.\w+",
        r"|os\.environ.*|config\.\w+|self\.\w+|not|is|was|string|optional\S*|your[_-].*|x{3,}.*",
        r"|\.{3}|error|empty|include|omit|same-origin|redacted|\[redacted\]?|[a-z_][\w.:]*\(.*)[.,;:)]*$"
    ))
});

/// The shapes, and the words without which none of them can match.
struct Shapes {
    each: Vec<(Search, &'static Shape)>,
    lexicon: Lexicon,
}

static COMPILED: LazyLock<Shapes> = LazyLock::new(|| {
    let mut words = Words::default();
    let each = SHAPES.iter().map(|shape| (Search::new(&shape.source(), &mut words), shape)).collect();
    Shapes { each, lexicon: words.finish() }
});

/// The same words in a lexicon that serves others too: they tell whether [`mask`] has anything to do.
#[derive(Debug)]
pub(crate) struct SecretMarks {
    /// By the word's number.
    marks: Vec<bool>,
}

impl SecretMarks {
    pub(crate) fn new(words: &mut Words) -> Self {
        let mut marks = Vec::new();
        for shape in SHAPES {
            let shape = Search::new(&shape.source(), words);
            for word in shape.words().expect("every shape of a secret has a fixed part") {
                let at = usize::from(*word);
                marks.resize(marks.len().max(at + 1), false);
                marks[at] = true;
            }
        }
        Self { marks }
    }

    /// Whether any shape can match a piece of the text that was scanned.
    pub(crate) fn any(&self, scan: &Scan) -> bool {
        scan.is_odd() || scan.found().any(|word| self.marks.get(usize::from(word)).is_some_and(|mark| *mark))
    }
}

/// Replaces secrets in a text: keys, tokens, passwords, cookies, credentials in URLs (R12).
///
/// ```
/// use backstop::failure::mask;
///
/// assert_eq!(mask("Authorization: Bearer abcdef0123456789"), "Authorization: Bearer [masked]");
/// assert_eq!(mask("the token limit is 4096"), "the token limit is 4096");
/// ```
pub fn mask(text: &str) -> Cow<'_, str> {
    let mut masked = Cow::Borrowed(text);
    let Shapes { each, lexicon } = &*COMPILED;
    let scan = lexicon.scan(text);
    if !scan.is_odd() && scan.found().next().is_none() {
        return masked;
    }
    for (search, shape) in each.iter().filter(|(search, _)| search.is_found(text, &scan)) {
        let next = search.replace_all(&masked, |found: &Captures<'_>| masked_part(shape, found));
        if let Cow::Owned(next) = next {
            masked = Cow::Owned(next);
        }
    }
    match masked {
        Cow::Owned(masked) => Cow::Owned(without_wrapped_ends(masked)),
        untouched => untouched,
    }
}

/// Where secrets stand in a text, each with the name that tells it.
pub(crate) fn secrets(text: &str) -> Vec<std::ops::Range<usize>> {
    let Shapes { each, lexicon } = &*COMPILED;
    let scan = lexicon.scan(text);
    let found = each.iter().flat_map(|(search, shape)| {
        let masked = search.captures(text, &scan).filter(|found| masked_part(shape, found) != found[0]);
        masked.filter_map(|found| found.get(0).map(|found| found.range())).collect::<Vec<_>>()
    });
    found.collect()
}

/// What stands where this was found.
fn masked_part(shape: &Shape, found: &Captures<'_>) -> String {
    let whole = &found[0];
    let keep = found.name("keep").map_or("", |keep| keep.as_str());
    let value = &whole[keep.len()..];
    let is_word = is_scheme(keep) && value.bytes().all(|byte| byte.is_ascii_lowercase());
    if HARMLESS.is_match(value) || is_word || shape.by_chance && !looks_like_chance(value) {
        return whole.to_owned();
    }
    let at = if keep.ends_with('/') && value.ends_with('@') { "@" } else { "" };
    format!("{keep}{MASK}{at}")
}

/// Words and numbers do not mix; keys do.
fn looks_like_chance(value: &str) -> bool {
    let has = |class: fn(&u8) -> bool| value.as_bytes().iter().any(class);
    has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic)
        || value.len() >= 24
            && has(u8::is_ascii_uppercase)
            && has(u8::is_ascii_lowercase)
            && !value.contains(['.', '/'])
}

/// Where a terminal broke a secret, the rest of it starts the next line.
fn without_wrapped_ends(masked: String) -> String {
    /// A shorter rest says too little to be worth a word lost.
    const SHORTEST: usize = 9;
    if !masked.contains("[masked]\n") && !masked.contains("[masked]\r\n") && !masked.contains("[masked]\\n") {
        return masked;
    }
    let mut out = String::with_capacity(masked.len());
    let mut pieces = masked.split(MASK);
    out.extend(pieces.next());
    for piece in pieces {
        out.push_str(MASK);
        let mut rest = piece;
        while let Some(line) = ["\r\n", "\n", "\\n"].iter().find_map(|end| rest.strip_prefix(end)) {
            let line = line.trim_start_matches([' ', '\t']);
            let of_key = |ch: char| ch.is_ascii_alphanumeric() || matches!(ch, '_' | '-' | '+' | '/');
            let after = line.trim_start_matches(of_key);
            let (end, after) = (&line[..line.len() - after.len()], after.trim_start_matches('='));
            let has = |class: fn(&u8) -> bool| end.as_bytes().iter().any(class);
            let mixed = has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase);
            let long = end.len() >= 2 * SHORTEST && has(u8::is_ascii_alphabetic);
            let is_key = end.len() >= SHORTEST
                && has(u8::is_ascii_digit)
                && (mixed || long)
                && !after.starts_with(|ch: char| ch.is_alphanumeric() || matches!(ch, ':' | '.' | '=' | '('));
            if !is_key {
                break;
            }
            rest = after;
        }
        out.push_str(rest);
    }
    out
}

/// Whether what was found follows the name of a scheme: `basic authentication` is prose.
fn is_scheme(keep: &str) -> bool {
    let keep = keep.trim_end().to_ascii_lowercase();
    keep.ends_with("basic") || keep.ends_with("bearer")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// (a text that holds a secret, the part that must disappear)
    fn secrets() -> Vec<(String, String)> {
        let run = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8";
        let hex = "0123456789abcdef0123456789abcdef";
        let plain = [
            "sk-%",
            "sk-ant-api03-%",
            "sk-proj-%",
            "sk-or-v1-%",
            "sk_live_%",
            "rk_test_%",
            "whsec_%",
            "ghp_%",
            "gho_%",
            "ghs_%",
            "github_pat_%",
            "glpat-%",
            "hf_%",
            "AIza%",
            "ya29.%",
            "GOCSPX-%",
            "xoxb-%",
            "xoxp-%",
            "npm_%",
            "pypi-%",
            "SG.%.%",
            "gsk_%",
            "xai-%",
            "pplx-%",
            "nvapi-%",
            "r8_%",
            "lsv2_pt_%",
            "tvly-%",
            "hvs.%",
            "dckr_pat_%",
            "eyJhbGciOiJIUzI1NiJ9.%.%",
            "Bearer %",
            "Authorization: Basic %",
            "Authorization: token %",
            "Cookie: session=%",
            "Set-Cookie: sid=%; Path=/",
            "https://x.example/v1?key=%",
            "https://x.example/?a=1&api_key=%",
            "postgres://admin:%@db.example/x",
            "api_key=%",
            "\"apiKey\": \"%\"",
            "OPENAI_API_KEY=%",
            "password: %",
            "client_secret='%'",
            "x-api-key: %",
            "aws_secret_access_key = %",
            "AccountKey=%",
            "GITHUB_TOKEN=%",
            "-----BEGIN RSA PRIVATE KEY-----\n%\n-----END RSA PRIVATE KEY-----",
            "-----BEGIN PRIVATE KEY-----\n%",
        ];
        let mut all: Vec<_> = plain.iter().map(|text| (text.replace('%', run), run.to_owned())).collect();
        all.push(("AKIAIOSFODNN7EXAMPLE".to_owned(), "IOSFODNN7EXAMPLE".to_owned()));
        all.push((format!("dop_v1_{hex}"), hex.to_owned()));
        all.push((format!("key-{hex}"), hex.to_owned()));
        all
    }

    #[test]
    fn every_shape_of_secret_is_masked_wherever_it_stands() {
        for (secret, part) in secrets() {
            for text in [secret.clone(), format!("error: {secret}"), format!("{{\"m\": \"{secret}\"}} and more")] {
                assert!(!mask(&text).contains(&part), "{text} -> {}", mask(&text));
            }
        }
        assert!(secrets().len() >= 40);
    }

    /// As [`mask`], every shape over the whole text, whatever words it holds.
    fn mask_in_full(text: &str) -> String {
        static EACH: LazyLock<Vec<regex::Regex>> = LazyLock::new(|| {
            SHAPES.iter().map(|shape| regex::Regex::new(&shape.source()).expect("a constant")).collect()
        });
        let shapes = EACH.iter().zip(SHAPES).filter(|(regex, _)| regex.is_match(text)).collect::<Vec<_>>();
        let each = shapes.into_iter().fold(text.to_owned(), |masked, (regex, shape)| {
            regex.replace_all(&masked, |found: &Captures<'_>| masked_part(shape, found)).into_owned()
        });
        if each == text { each } else { without_wrapped_ends(each) }
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(24))]

        /// Texts made from every shape itself, so that a shape without a mark cannot be forgotten.
        #[test]
        fn no_secret_is_missed_for_want_of_a_word(
            secrets in SHAPES.iter().map(|shape| {
                let bare = shape.source().replace(r"(?-u:\b)", "");
                proptest::string::string_regex(&bare).expect("a constant")
            }).collect::<Vec<_>>(),
            before in "|[ -~]{0,4}|[é…ſ\u{212a}错]{1,2}|\n",
            after in "|[ -~]{0,4}|[é…ſ\u{212a}错]{1,2}|\n",
        ) {
            let marks = crate::failure::knowledge::knowledge();
            for secret in secrets {
                let text = format!("{before}{secret}{after}");
                let want = mask_in_full(&text);
                assert_eq!(mask(&text), want);
                assert!(want == text || marks.secrets.any(&marks.lexicon.scan(&text)), "{text}");
            }
        }
    }

    #[test]
    fn real_failures_are_masked_as_by_every_shape_over_the_whole_text() {
        for line in include_str!("../../tests/data/corpus/dev.jsonl").lines() {
            assert_eq!(mask(line), mask_in_full(line));
        }
    }

    #[test]
    fn ordinary_text_stays_as_it_is() {
        for text in [
            "Rate limit reached on tokens per min (TPM): Limit 30000, Used 29937, Requested 385.",
            "commit 3f2a9c1d8b7e6f5a4c3b2a1d0e9f8c7b6a5d4e3f is missing",
            "/home/dev/project/src/failure/redaction.rs:120:14",
            "req_011CFakeFakeFakeFakeFakeFa 00000000-0000-4000-8000-000000000001",
            "You must specify the GEMINI_API_KEY environment variable.",
            "api_key: missing",
            "password: required",
            "basic authentication is off",
            "bearer token missing",
            "max_tokens=4096, token limit: 128000",
            "https://platform.openai.com/account/api-keys.",
            "the key-value store",
            "task-force sk-learn risk-averse",
            "call_Fake0001 toolu_01Fake",
        ] {
            assert_eq!(mask(text), text);
        }
    }
}
