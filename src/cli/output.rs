use std::fmt::Display;
use std::io::{self, Write};

use serde::Serialize;

/// Writes one line to stdout; tells whether somebody still reads.
pub(super) fn line(text: impl Display) -> bool {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}").and_then(|()| out.flush()).is_ok()
}

/// Writes one value as a line of JSON to stdout; tells whether somebody still reads.
pub(super) fn json_line(value: &impl Serialize) -> bool {
    match serde_json::to_string(value) {
        Ok(text) => line(text),
        Err(error) => {
            tracing::error!(%error, "cannot write this as JSON");
            false
        }
    }
}

/// Says on stderr what went wrong, with every cause.
pub(super) fn error(error: &(dyn std::error::Error + 'static)) {
    note(format_args!("error: {}", with_causes(error)));
}

/// An error and every cause below it, on one line.
pub(super) fn with_causes(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    text
}

/// Says why reading or writing stopped. A reader of stdout that went away is no trouble.
pub(super) fn stopped(cause: &io::Error) -> super::Exit {
    if cause.kind() == io::ErrorKind::BrokenPipe {
        return super::Exit::Done;
    }
    error(cause);
    super::Exit::Failed
}

/// Writes one line to stderr under the program's name. Nobody reading there is no reason to stop.
pub(super) fn note(text: impl Display) {
    let _nobody_reads = writeln!(io::stderr().lock(), "backstop: {text}");
}

/// Writes one value as a line of JSON to stderr.
pub(super) fn json_note(value: &impl Serialize) {
    match serde_json::to_string(value) {
        Ok(text) => {
            let _nobody_reads = writeln!(io::stderr().lock(), "{text}");
        }
        Err(error) => tracing::error!(%error, "cannot write this as JSON"),
    }
}

/// A text as a shell takes it for one word.
pub(super) fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=@%+,".contains(c);
    match text {
        "" => "''".to_owned(),
        text if text.chars().all(is_plain) => text.to_owned(),
        text => format!("'{}'", text.replace('\'', r"'\''")),
    }
}
