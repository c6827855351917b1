use std::borrow::Cow;
use std::ops::Range;

use super::redaction::secrets;

/// Keeps the head and the tail of a long text, cut at character boundaries and through no secret:
/// half of one could no longer be told.
///
/// Causes stand at the end of logs and at the start of messages; the middle is noise.
pub(crate) fn head_and_tail(text: &str, cap: usize) -> Cow<'_, str> {
    if text.len() <= cap {
        return Cow::Borrowed(text);
    }
    let head = floor(text, cap / 2);
    let tail = ceil(text, text.len() - cap / 2);
    let head = secret_around(text, head).map_or(head, |secret| secret.start);
    let tail = secret_around(text, tail).map_or(tail, |secret| secret.end);
    Cow::Owned(format!("{}\n…\n{}", &text[..head], &text[tail..]))
}

/// The secret that a cut at this place would go through.
fn secret_around(text: &str, at: usize) -> Option<Range<usize>> {
    /// Longer than keys and most tokens are.
    const NEAR: usize = 2 * 1024;
    let from = floor(text, at.saturating_sub(NEAR));
    let near = &text[from..ceil(text, (at + NEAR).min(text.len()))];
    let all = secrets(near).into_iter().map(|secret| from + secret.start..from + secret.end);
    all.filter(|secret| (secret.start + 1..secret.end).contains(&at))
        .reduce(|one, other| one.start.min(other.start)..one.end.max(other.end))
}

/// The first `cap` bytes at most, cut at a character boundary.
pub(crate) fn head(text: &str, cap: usize) -> &str {
    &text[..floor(text, cap.min(text.len()))]
}

fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn ceil(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at += 1;
    }
    at
}

/// White space runs become one blank, line feeds stay; terminal colours, control and box-drawing
/// characters go; typographic quotes become plain ones; `[object Object]` disappears.
pub(crate) fn normalise(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut blank = true;
    let mut rest = text;
    loop {
        // Most of a text is as it should be.
        let (fine, next) = rest.split_at(undisturbed(rest, blank));
        if let Some(last) = fine.as_bytes().last() {
            out.push_str(fine);
            blank = *last <= b' ';
        }
        let mut chars = next.chars();
        let Some(ch) = chars.next() else { break };
        match ch {
            '\u{1b}' => skip_escape(&mut chars),
            '\n' | '\r' | '\u{2028}' | '\u{2029}' => {
                out.truncate(out.trim_end_matches(' ').len());
                if !out.is_empty() && !out.ends_with('\n') {
                    out.push('\n');
                }
                blank = true;
            }
            '\u{2500}'..='\u{259f}' => push_blank(&mut out, &mut blank),
            ch if is_hidden(ch) => {}
            ch if ch.is_whitespace() || ch.is_control() => push_blank(&mut out, &mut blank),
            ch => {
                out.push(match ch {
                    '\u{2018}' | '\u{2019}' => '\'',
                    '\u{201c}' | '\u{201d}' => '"',
                    other => other,
                });
                blank = false;
            }
        }
        rest = chars.as_str();
    }
    out.truncate(out.trim_end().len());
    if out.contains("[object Object]") { out.replace("[object Object]", "") } else { out }
}

/// What a person does not see and a model reads: marks of width and direction, tags, fillers.
pub(crate) fn is_hidden(ch: char) -> bool {
    matches!(ch,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e0fff}')
}

/// How many bytes at the start are visible ASCII with single blanks or line feeds between.
fn undisturbed(text: &str, mut blank: bool) -> usize {
    /// So many bytes are judged at once, and the one after them.
    const BLOCK: usize = 32;
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(block) = bytes.get(at..at + BLOCK + 1) {
        let pairs = block.iter().zip(&block[1..]);
        let bad = pairs.fold(blank && block[0] <= b' ', |bad, (byte, next)| {
            let strange = !matches!(*byte, b' '..=b'~' | b'\n');
            bad | strange | ((*byte <= b' ') & (*next <= b' '))
        });
        if bad {
            break;
        }
        blank = block[BLOCK - 1] <= b' ';
        at += BLOCK;
    }
    let disturbs = |byte: &u8| {
        let doubled = *byte <= b' ' && blank;
        blank = *byte <= b' ';
        doubled || !matches!(byte, b' '..=b'~' | b'\n')
    };
    bytes[at..].iter().position(disturbs).map_or(text.len(), |step| at + step)
}

fn push_blank(out: &mut String, blank: &mut bool) {
    if !*blank {
        out.push(' ');
        *blank = true;
    }
}

/// Leaves out a terminal control sequence: `ESC [ … letter`, or `ESC` and one character.
fn skip_escape(chars: &mut std::str::Chars<'_>) {
    if chars.as_str().starts_with('[') {
        chars.next();
        for ch in chars.by_ref() {
            if ('\u{40}'..='\u{7e}').contains(&ch) {
                return;
            }
        }
    } else {
        chars.next();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_boxes_and_blanks_disappear() {
        let framed = "\u{1b}[91m\u{1b}[1mError: \u{1b}[0mno\t  way │\n│  here  │";
        assert_eq!(normalise(framed), "Error: no way\nhere");
    }

    #[test]
    fn long_runs_are_kept_and_what_disturbs_them_is_mended_wherever_it_stands() {
        let line = "word and word, number 12\n".repeat(9);
        for at in 0..line.len() {
            let (start, end) = line.split_at(at);
            for between in ["  ", " \n ", "\n\n", "\t", "\r\n", "\u{7f}", "\u{2028}", "\u{1b}[1m"] {
                let text = format!("{start}{between}{end}");
                let lines = between.contains(['\n', '\u{2028}']);
                let parts = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>().join(" ");
                let want = if between == "\u{1b}[1m" { line.clone() } else { format!("{start} {end}") };
                let got = normalise(&text);
                assert_eq!(parts(&got), parts(&want), "{text:?}");
                assert!(!["  ", " \n", "\n ", "\n\n"].iter().any(|double| got.contains(double)), "{text:?} {got:?}");
                assert!(!lines || start.trim().is_empty() || end.trim().is_empty() || got.lines().count() >= 9);
            }
        }
    }

    #[test]
    fn an_objects_default_text_is_never_a_message() {
        assert_eq!(normalise("[object Object]"), "");
    }

    #[test]
    fn long_text_keeps_head_and_tail_at_character_boundaries() {
        let long = "é".repeat(1000) + "end";
        let cut = head_and_tail(&long, 101);
        assert!(cut.len() < 120 && cut.starts_with('é') && cut.ends_with("end"));
    }

    #[test]
    fn no_cut_goes_through_a_secret() {
        let secret = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8";
        for text in [format!("api_key = {secret} "), format!("sk-ant-{secret} "), format!("https://u:{secret}@h ")] {
            let long = text.repeat(40);
            for cap in 300..400 {
                let cut = crate::failure::mask(&head_and_tail(&long, cap)).into_owned();
                assert!(!cut.contains("a1B2") && !cut.contains("k1L2") && !cut.contains("q7R8"), "{cap}: {cut}");
            }
        }
    }
}
