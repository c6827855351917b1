//! The failure value that a verb is given: an argument, standard input, a line.

use std::io::{self, BufRead, IsTerminal, Read};

use serde_json::Value;

use super::config::STDIN;
use super::output;

/// The most that is read of one value. Detection looks at a few kilobytes of it, from both ends.
pub(super) const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// The value that was given, else all of standard input; a person at a terminal is told that it is
/// waited for.
pub(super) fn value_or_stdin(value: Option<&str>) -> io::Result<Value> {
    if let Some(value) = value.filter(|value| *value != STDIN) {
        return Ok(loose(value));
    }
    let stdin = io::stdin();
    if stdin.is_terminal() {
        output::note("reading from the terminal; Ctrl-D ends the input");
    }
    let mut bytes = vec![];
    stdin.lock().take(MAX_BYTES).read_to_end(&mut bytes)?;
    Ok(loose(&String::from_utf8_lossy(&bytes)))
}

/// What a person typed or piped: a JSON object, list or quoted string is that value; anything else is a
/// text, numbers and `null` too, since nobody means a bare number by `429`.
fn loose(text: &str) -> Value {
    match serde_json::from_str(text) {
        Ok(value @ (Value::Object(_) | Value::Array(_) | Value::String(_))) => value,
        _ => Value::String(text.trim_end_matches(['\n', '\r']).to_owned()),
    }
}

/// What a line of a JSON Lines file holds; `None` if it is blank. A line that is no JSON is a text: logs
/// are mixed so, and an answer is owed for every line.
fn strict(line: &[u8]) -> Option<Value> {
    if line.iter().all(u8::is_ascii_whitespace) {
        return None;
    }
    let as_text = || Value::String(String::from_utf8_lossy(line).trim_end_matches(['\n', '\r']).to_owned());
    Some(serde_json::from_slice(line).unwrap_or_else(|_| as_text()))
}

/// The next value of a JSON Lines input; `None` at its end. What goes beyond [`MAX_BYTES`] of a line is
/// dropped, and the rest is then a text.
pub(super) fn next_line(from: &mut impl BufRead) -> io::Result<Option<Value>> {
    loop {
        let mut line = vec![];
        if from.by_ref().take(MAX_BYTES).read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        if line.len() as u64 == MAX_BYTES && !line.ends_with(b"\n") {
            from.skip_until(b'\n')?;
        }
        if let Some(value) = strict(&line) {
            return Ok(Some(value));
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_bare_word_or_number_is_a_text_and_a_structure_is_json() {
        assert_eq!(loose("429\n"), json!("429"));
        assert_eq!(loose("null"), json!("null"));
        assert_eq!(loose("{oops"), json!("{oops"));
        assert_eq!(loose(" {\"status\": 429}\n"), json!({"status": 429}));
        assert_eq!(loose("\"quoted\""), json!("quoted"));
    }

    #[test]
    fn every_line_but_a_blank_one_is_a_value() {
        let mut lines = "null\n\n  \nnot json\r\n{\"a\":1}\n\"end\"".as_bytes();
        let mut values = vec![];
        while let Some(value) = next_line(&mut lines).unwrap() {
            values.push(value);
        }
        assert_eq!(values, [json!(null), json!("not json"), json!({"a": 1}), json!("end")]);
    }

    #[test]
    fn bytes_that_are_no_text_and_json_that_is_too_deep_are_texts() {
        assert!(strict(b"\xff\xfe").unwrap().is_string());
        assert!(strict("[".repeat(100_000).as_bytes()).unwrap().is_string());
    }
}
