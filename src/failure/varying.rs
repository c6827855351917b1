//! What differs between two occurrences of one failure.

use std::ops::Range;

/// Days and months, in full and cut.
const DATES: &[&str] = &[
    "mon",
    "monday",
    "tue",
    "tues",
    "tuesday",
    "wed",
    "wednesday",
    "thu",
    "thur",
    "thurs",
    "thursday",
    "fri",
    "friday",
    "sat",
    "saturday",
    "sun",
    "sunday",
    "jan",
    "january",
    "feb",
    "february",
    "mar",
    "march",
    "apr",
    "april",
    "may",
    "jun",
    "june",
    "jul",
    "july",
    "aug",
    "august",
    "sep",
    "sept",
    "september",
    "oct",
    "october",
    "nov",
    "november",
    "dec",
    "december",
];
/// What follows a number and changes with it.
const UNITS: &[&str] = &[
    "ms", "msec", "s", "sec", "secs", "second", "seconds", "m", "min", "mins", "minute", "minutes", "h", "hr", "hrs",
    "hour", "hours", "d", "day", "days", "week", "weeks", "am", "pm", "utc", "gmt", "b", "kb", "mb", "gb", "kib",
    "mib", "gib", "bytes",
];
/// Files named without their folder.
const FILES: &[&str] = &[
    "c", "cc", "cpp", "cs", "css", "csv", "go", "h", "hpp", "html", "java", "js", "json", "jsonl", "jsx", "kt", "lock",
    "log", "lua", "md", "mjs", "php", "py", "rb", "rs", "sh", "sql", "svelte", "swift", "toml", "ts", "tsx", "txt",
    "vue", "xml", "yaml", "yml", "zig",
];
/// Starts of ids that machines give out, before a run of letters without any digit.
const ID_STARTS: &[&str] =
    &["req", "resp", "call", "toolu", "msg", "chatcmpl", "run", "thread", "sess", "ses", "trace"];
/// Words around a slash that are no folders.
const NO_FOLDERS: &[&str] = &[
    "and/or",
    "client/server",
    "i/o",
    "input/output",
    "n/a",
    "read/write",
    "request/response",
    "search/replace",
    "stdin/stdout",
    "tcp/ip",
    "yes/no",
];
/// Kinds of media: names, although they look like paths.
const MEDIA: &[&str] = &["application/", "audio/", "font/", "image/", "multipart/", "text/", "video/"];

/// The longest quoted text that is looked at as a whole, in bytes.
const MAX_QUOTED: usize = 240;

/// Which quoted texts vary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quoted {
    /// Code, paths, single characters and texts that were cut: a name in quotes says what failed.
    Snippets,
    /// All: what quotes pieces of a file or of a model's output says nothing by them.
    All,
}

/// Ids, numbers, paths, hashes, times and quoted snippets, in their order. They never touch a text's
/// characters outside ASCII, which are no part of any but a quoted one.
pub(crate) fn varying(text: &str, quoted: Quoted) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut all = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        match end_of_varying(text, at, quoted) {
            Some((from, end)) => {
                all.push(from..end);
                at = end;
            }
            // Inside a word nothing begins.
            None if is_word(bytes[at]) => at = run(bytes, at, is_word),
            None => at += 1,
        }
    }
    all
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn is_slash(byte: u8) -> bool {
    matches!(byte, b'/' | b'\\')
}

/// The end of the run that starts here.
fn run(text: &[u8], at: usize, belongs: impl Fn(u8) -> bool) -> usize {
    text[at..].iter().position(|byte| !belongs(*byte)).map_or(text.len(), |length| at + length)
}

fn is_one_of(words: &[&str], word: &str) -> bool {
    words.iter().any(|one| one.eq_ignore_ascii_case(word))
}

/// Where a varying part lies that is told by what stands here.
fn end_of_varying(text: &str, at: usize, quoted: Quoted) -> Option<(usize, usize)> {
    let bytes = text.as_bytes();
    if let Some(inside) = quoted_part(text, at, quoted) {
        return Some(inside);
    }
    let end = url(bytes, at).or_else(|| path(text, at)).or_else(|| number_or_word(text, at))?;
    Some((at, end))
}

/// The inside of a quoted text that varies.
fn quoted_part(text: &str, at: usize, quoted: Quoted) -> Option<(usize, usize)> {
    let bytes = text.as_bytes();
    let quote = *bytes.get(at).filter(|byte| matches!(byte, b'"' | b'\'' | b'`'))?;
    // An apostrophe stands behind a letter.
    if at.checked_sub(1).is_some_and(|before| is_word(bytes[before]) || !bytes[before].is_ascii()) {
        return None;
    }
    let from = at + 1;
    let near = &bytes[from..bytes.len().min(from + MAX_QUOTED)];
    let closes = |place: &usize| {
        near[*place] == quote && bytes.get(from + place + 1).is_none_or(|next| !is_word(*next) && next.is_ascii())
    };
    let length = (1..near.len()).take_while(|place| near[*place] != b'\n').find(closes)?;
    let (inside, end) = (&text[from..from + length], from + length);
    let is_code = || {
        let marks = ["()", "->", "=>", "::", "</", "==", "!=", "&&", "||"];
        inside.contains(['{', '}', ';', '=']) || marks.iter().any(|mark| inside.contains(mark))
    };
    let is_place = || {
        let rest = inside.trim_start_matches(['.', '~']);
        rest.starts_with(['/', '\\']) || rest.get(1..3).is_some_and(|drive| drive == ":\\" || drive == ":/")
    };
    let is_cut = || text[end + 1..].starts_with("...") || text[end + 1..].starts_with('…');
    let varies = quoted == Quoted::All || inside.chars().count() == 1 || is_cut() || is_code() || is_place();
    varies.then_some((from, end))
}

fn url(text: &[u8], at: usize) -> Option<usize> {
    let name = run(text, at, |byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'));
    let from = name + 3;
    let named = name > at && text[at].is_ascii_alphabetic() && text.get(name..from) == Some(b"://");
    let end = run(text, if named { from } else { text.len() }, |byte| {
        !byte.is_ascii_whitespace() && byte.is_ascii() && !matches!(byte, b'"' | b'\'' | b'`' | b'<' | b'>' | b')')
    });
    (named && end > from).then_some(end)
}

fn path(text: &str, at: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let drive = bytes[at].is_ascii_alphabetic()
        && bytes.get(at + 1) == Some(&b':')
        && bytes.get(at + 2).is_some_and(|byte| is_slash(*byte));
    let slash = if drive { at + 2 } else { run(bytes, at, |byte| is_word(byte) || matches!(byte, b'.' | b'~' | b'-')) };
    let from = slash + 1;
    // Behind a word stands the end of a name that is no path.
    let inside = slash == at && at.checked_sub(1).is_some_and(|before| is_word(bytes[before]));
    if inside || !bytes.get(slash).is_some_and(|byte| is_slash(*byte)) {
        return None;
    }
    let end = run(bytes, from, |byte| {
        is_word(byte) || is_slash(byte) || matches!(byte, b'.' | b'~' | b'@' | b'%' | b'+' | b'-')
    });
    let whole = text[at..end].trim_end_matches(['.', '-']);
    let is_name = is_one_of(NO_FOLDERS, whole)
        || MEDIA.iter().any(|start| whole.get(..start.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(start)))
            && !whole.contains('.');
    if end == from || is_name {
        return None;
    }
    // A place in the file belongs to it.
    Some(run(bytes, end, |byte| byte == b':' || byte.is_ascii_digit()).max(end)).map(|end| without_colon(bytes, end))
}

fn without_colon(text: &[u8], mut end: usize) -> usize {
    while text[end - 1] == b':' {
        end -= 1;
    }
    end
}

fn number_or_word(text: &str, at: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    if !is_word(bytes[at]) {
        return None;
    }
    let numbered = run(bytes, at, |byte| is_word(byte) || byte == b'-');
    if let Some(digit) = bytes[at..numbered].iter().rposition(u8::is_ascii_digit) {
        let from = at + digit + 1;
        let mut end = run(bytes, from, |byte| is_word(byte) || matches!(byte, b'.' | b':' | b'-'));
        while !is_word(bytes[end - 1]) {
            end -= 1;
        }
        return Some(with_unit(text, end));
    }
    let end = run(bytes, at, is_word);
    let word = &text[at..end];
    let is_hash = word.len() >= 8 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_hash || is_one_of(DATES, word) || is_id(&text[at..numbered]) {
        return Some(if is_hash { end } else { numbered.max(end) });
    }
    let dotted = run(bytes, at, |byte| is_word(byte) || matches!(byte, b'.' | b'-'));
    let name = text[at..dotted].trim_end_matches(['.', '-']);
    let is_file = name.rsplit_once('.').is_some_and(|(_, end)| is_one_of(FILES, end));
    // The numbers of line and column may follow.
    is_file.then(|| without_colon(bytes, run(bytes, at + name.len(), |byte| byte == b':' || byte.is_ascii_digit())))
}

/// The end of a number's unit, if one follows.
fn with_unit(text: &str, end: usize) -> usize {
    let bytes = text.as_bytes();
    let from = if bytes.get(end) == Some(&b' ') { end + 1 } else { end };
    let unit = run(bytes, from.min(bytes.len()), is_word);
    if unit > from && is_one_of(UNITS, &text[from..unit]) { unit } else { end }
}

/// A prefix of machines' ids, and letters that no language joins so.
fn is_id(word: &str) -> bool {
    let Some((start, rest)) = word.split_once(['_', '-']) else { return false };
    let has = |class: fn(&u8) -> bool| rest.as_bytes().iter().any(class);
    let mixed = has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase);
    is_one_of(ID_STARTS, start) && rest.len() >= 10 && mixed
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The text with `#` for what varies.
    fn blind(text: &str, quoted: Quoted) -> String {
        let mut out = String::new();
        let mut at = 0;
        for part in varying(text, quoted) {
            out += &text[at..part.start];
            out.push('#');
            at = part.end;
        }
        out + &text[at..]
    }

    #[test]
    fn what_varies_is_told_from_what_does_not() {
        for (text, want) in [
            ("try again in 9m38.016s", "try again in #"),
            ("wait 1 second or 2 seconds.", "wait # or #."),
            ("at 12:01:07 PM UTC, Mar 17th", "at # UTC, # #"),
            ("see https://a.example/b?c=d for I/O errors", "see # for I/O errors"),
            ("cannot open C:\\Users\\dev\\a.rs:12:5: gone", "cannot open #: gone"),
            ("main.rs:12:5: and src/main.rs: and ../x", "#: and #: and #"),
            ("req_AbCdEfGhIjKl and request_id", "# and request_id"),
            ("the model may decode what was declined", "the model # decode what was declined"),
            ("commit deadbeef of 0123abc", "commit # of #"),
            ("错误码401：密钥无效", "错误码#：密钥无效"),
            ("unsupported image/png and/or text/html", "unsupported image/png and/or text/html"),
            ("no `edit` in 'let x = 1;' or '/a b/c'", "no `edit` in '#' or '#'"),
            ("Unexpected token 'I', \"I will no\"... is not", "Unexpected token '#', \"#\"... is not"),
            ("it's the user's own", "it's the user's own"),
        ] {
            assert_eq!(blind(text, Quoted::Snippets), want, "{text}");
        }
        assert_eq!(blind("'two words' not found", Quoted::All), "'#' not found");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn parts_lie_in_their_order_at_characters_edges(
            parts in prop::collection::vec("[a-fx-zA-F0-9_.:~@%+/\\\\ -]{0,6}|https?://|['\"`é错]|[ -~]{0,4}|jan|\n", 0..12)
        ) {
            let text = parts.concat();
            for quoted in [Quoted::Snippets, Quoted::All] {
                let mut last = 0;
                for part in varying(&text, quoted) {
                    prop_assert!(last <= part.start && part.start < part.end);
                    prop_assert!(text.get(part.clone()).is_some(), "{text:?} {part:?}");
                    last = part.end;
                }
            }
        }
    }
}
