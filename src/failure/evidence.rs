use std::cell::OnceCell;
use std::sync::LazyLock;

use super::knowledge::knowledge;
use super::lexicon::Scan;
use super::search::Search;
use super::text::{head_and_tail, normalise};
use super::walk::Walk;
use super::{Report, Source, command};

/// How many bytes of text detection looks at unless told otherwise.
pub const DEFAULT_CAP: usize = 16 * 1024;
/// How many JSON values of one report are visited.
pub(crate) const MAX_NODES: usize = 4096;
/// How deep JSON is followed, JSON inside strings included.
pub(crate) const MAX_DEPTH: usize = 32;

/// What a value is, before any rule looks at its words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Something in it says that it is a failure: an error field, a status, an exit code.
    Failure,
    /// A bare text that somebody reported.
    Text,
    /// Ordinary output: only fixed frames of known tools may make it a failure (R1).
    Output,
    /// A reply without content.
    Empty,
    /// It says that it worked.
    Success,
    /// A person or the host stopped it.
    Cancelled,
}

/// The bounded facts and texts of one report.
#[derive(Debug, Clone)]
pub(crate) struct Evidence {
    pub(crate) shape: Shape,
    lines: String,
    flat: String,
    scan: OnceCell<Scan>,
    codes: Vec<String>,
    status: Option<u16>,
    pub(crate) headers: Vec<(String, String)>,
    /// Named numbers and durations: (name, text).
    pub(crate) numbers: Vec<(String, String)>,
    pub(crate) exit_code: Option<i64>,
    pub(crate) signal: Option<String>,
    pub(crate) tool: Option<String>,
    /// The command line, or a title that holds it.
    pub(crate) command: Option<String>,
    bare_text: bool,
    /// Byte ranges of `lines` that each came from one text, the outermost first.
    parts: Vec<std::ops::Range<usize>>,
}

impl Evidence {
    /// Reads a report; at most about `cap` bytes of its text are kept.
    pub(crate) fn of(report: &Report, cap: usize) -> Self {
        let mut walk = Walk::new(cap);
        walk.report(report);
        let is_command = report.source == Source::Command || (walk.has_streams && report.tool.is_none());
        if is_command && walk.tool.is_none() {
            command::read(&mut walk);
        }
        let shape = walk.shape();
        let mut lines = String::new();
        let mut parts = Vec::new();
        for text in walk.texts() {
            let clean = normalise(&unescape(&head_and_tail(&text, cap)));
            if clean.is_empty() || lines.len() >= cap.saturating_mul(2) {
                continue;
            }
            let start = lines.len();
            lines.push_str(&clean);
            parts.push(start..lines.len());
            lines.push('\n');
        }
        let status = report.status.or(walk.status).or_else(|| status_in(&lines));
        for code in &walk.codes {
            lines.push_str(code);
            lines.push('\n');
        }
        let flat = lines.replace('\n', " ");
        Self {
            shape,
            flat,
            lines,
            scan: OnceCell::new(),
            codes: walk.codes,
            status,
            headers: walk.headers,
            numbers: walk.numbers,
            exit_code: walk.exit_code,
            signal: walk.signal,
            tool: walk.tool,
            command: walk.command,
            bare_text: walk.bare_text,
            parts,
        }
    }

    /// All texts, a line feed between any two, then the codes.
    pub(crate) fn lines(&self) -> &str {
        &self.lines
    }

    /// The same, byte for byte, with blanks for line feeds.
    #[cfg(any(test, feature = "test-util"))]
    pub(crate) fn flat(&self) -> &str {
        &self.flat
    }

    /// Which of the words that anything built in looks for stand in the flat text, and where.
    pub(crate) fn scan(&self) -> &Scan {
        self.scan.get_or_init(|| knowledge().lexicon.scan(&self.flat))
    }

    /// The machine words, lower-case.
    pub(crate) fn codes(&self) -> &[String] {
        &self.codes
    }

    /// Whether this machine word, in lower case, was found.
    pub(crate) fn has_code(&self, word: &str) -> bool {
        self.codes.iter().any(|code| code == word)
    }

    /// The HTTP status; where several are told, the innermost that is an error.
    pub(crate) fn status(&self) -> Option<u16> {
        self.status
    }

    /// The failure's own words: the text that holds the place `at`, else the innermost text.
    pub(crate) fn message(&self, at: Option<usize>) -> &str {
        let holding = at.and_then(|at| self.parts.iter().find(|part| part.contains(&at)));
        match holding.or_else(|| self.parts.last()) {
            Some(part) => &self.lines[part.clone()],
            None => self.codes.last().map_or("", String::as_str),
        }
    }

    /// Each text, the outermost first.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().map(|part| &self.lines[part.clone()])
    }

    /// Whether a reply says how it ended.
    pub(crate) fn has_finish_fact(&self) -> bool {
        self.codes.iter().any(|code| code.starts_with("finish:") || code.contains("blocked"))
    }

    /// Whether somebody reported a mere text.
    pub(crate) fn is_bare_text(&self) -> bool {
        self.bare_text
    }

    /// All texts together, without the codes.
    pub(crate) fn text(&self) -> &str {
        self.parts.last().map_or("", |last| &self.lines[..last.end])
    }
}

/// Line feeds and quotes that were escaped once too often.
fn unescape(text: &str) -> std::borrow::Cow<'_, str> {
    // Nearly no text holds a backslash at all.
    if !text.contains('\\') {
        return text.into();
    }
    if text.contains("\\n") || text.contains("\\\"") || text.contains("\\r") {
        text.replace("\\r", " ").replace("\\n", "\n").replace("\\\"", "\"").into()
    } else {
        text.into()
    }
}

static STATUS: LazyLock<Search> = LazyLock::new(|| {
    Search::bare(concat!(
        r"(?im)(?:^(?:error:? )?|api error:? \(?|\[api error: |error code:? |status(?:[",
        r" _]?code)?\x22?'?[:=]? ?'?\x22?\(?",
        r"|\bhttp(?:/\d(?:\.\d)?)?(?: error| status)?:? |\bhttp_|\bfailed \(|\blast status: ",
        r"|\bcode\x22?'?: ?'?\x22?|",
        r"^\[|^\(|\) ?status: |\berror \(|unexpected status |: )(?P<status>[1-5]\d\d)\b(?P<after>.?)",
    ))
});

/// A status told in words. `: 503` counts only before a reason phrase.
fn status_in(lines: &str) -> Option<u16> {
    // No match goes over the end of a line.
    let all = numbered_lines(lines).flat_map(|(start, line)| STATUS.captures_iter(line).map(move |it| (start, it)));
    all.take(32).find_map(|(start, found)| {
        let status: u16 = found.name("status")?.as_str().parse().ok()?;
        let whole = found.get(0)?;
        let vague = whole.as_str().starts_with(": ") || whole.start() == found.name("status")?.start();
        let rest = &lines[start + found.name("status")?.end()..];
        let named =
            ["", "\n", " {", ": ", "]", ")"].iter().any(|end| match *end {
                "" => rest.is_empty(),
                end => rest.starts_with(end),
            }) || rest.trim_start_matches([' ', ':', '<']).starts_with(|ch: char| ch.is_ascii_uppercase() || ch == '4');
        (status >= 400 && (!vague || named)).then_some(status)
    })
}

/// The lines, with their starts, that hold three digits where [`STATUS`] could find them.
fn numbered_lines(lines: &str) -> impl Iterator<Item = (usize, &str)> {
    let bytes = lines.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        while let Some(step) = bytes.get(at..)?.iter().position(|byte| (b'1'..=b'5').contains(byte)) {
            at += step + 1;
            if !may_be_status(bytes, at - 1) {
                continue;
            }
            let start = lines[..at].rfind('\n').map_or(0, |end| end + 1);
            let end = lines[at..].find('\n').map_or(lines.len(), |step| at + step);
            at = end;
            return Some((start, &lines[start..end]));
        }
        None
    })
}

/// Whether a status can stand at this digit; what is outside ASCII may be anything.
fn may_be_status(bytes: &[u8], at: usize) -> bool {
    let digit = |at: usize| bytes.get(at).is_some_and(|byte| byte.is_ascii_digit() || !byte.is_ascii());
    let led = at.checked_sub(1).is_none_or(|before| {
        matches!(bytes[before], b'\n' | b' ' | b'(' | b'[' | b'"' | b'\'' | b':' | b'=' | b'_')
            || matches!(bytes[before].to_ascii_lowercase(), b's' | b'e')
            || !bytes[before].is_ascii()
    });
    let longer = bytes.get(at + 3).is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    led && digit(at + 1) && digit(at + 2) && (!longer || !bytes[at + 1..at + 3].is_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_in_words_is_read_and_a_mere_number_is_not() {
        assert_eq!(status_in("API Error: 529 Overloaded"), Some(529));
        assert_eq!(status_in("Error code: 429 - {'error': 1}"), Some(429));
        assert_eq!(status_in("[502]: fetch failed"), Some(502));
        assert_eq!(status_in("14 files changed, 403 insertions(+)"), None);
        assert_eq!(status_in("read 500 lines"), None);
    }
}
