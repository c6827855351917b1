//! The journal's lines of one session, as people read them.

use serde_json::Value;

use super::exec::session::directories;
use super::human::{escaped, moment};
use super::sessions::{foreign, refused};
use super::{Exit, Globals, output};
use crate::failure::{SessionId, Timestamp};
use crate::state::JournalReader;

/// Prints what was decided for a session, wherever it is kept: a host and `exec` may use the same id.
pub(super) fn run(id: &str, globals: &Globals) -> Exit {
    let Ok(session) = SessionId::new(id) else {
        output::note("error: a session id must not be empty");
        return Exit::Usage;
    };
    let (mut found, mut exit) = (0, Exit::Done);
    for dir in std::iter::once(globals.state_dir.clone()).chain(directories(&globals.state_dir)) {
        let print = |line: Value| {
            if globals.json {
                output::json_line(&line);
            } else {
                output::line(in_words(&line));
            }
        };
        match JournalReader::open(&dir).and_then(|journal| journal.lines_of(&session, print)) {
            Ok(lines) => found += lines,
            Err(error) => exit = refused(&error),
        }
    }
    if found == 0 && exit == Exit::Done {
        let dir = globals.state_dir.display();
        output::note(format_args!("error: the journal in {dir} has no lines of session \"{}\"", escaped(id)));
        return Exit::Problems;
    }
    exit
}

/// What stands in a column of its own.
const COLUMNS: [&str; 5] = ["at", "session", "episode", "seq", "decision"];

/// One line: when, which episode and attempt, what was decided, and on what grounds.
fn in_words(line: &Value) -> String {
    let number = |key: &str| line[key].as_u64().unwrap_or(0);
    let at = moment(Timestamp::from_millis(number("at")));
    if let Some(gap) = line["gap"].as_u64() {
        return format!("{at}  (about here {gap} decisions of this or other sessions were not written down)");
    }
    let decision = line["decision"].as_str().unwrap_or("?");
    let head = format!("{at}  {:>3}.{:<3} {:<13}", number("episode"), number("seq"), escaped(decision));
    let grounds = line.as_object().into_iter().flatten().filter(|(key, _)| !COLUMNS.contains(&key.as_str()));
    let grounds = grounds.map(|(key, value)| match value {
        Value::String(text) => format!("  {}: {}", escaped(key), foreign(text)),
        other => format!("  {}: {}", escaped(key), foreign(&other.to_string())),
    });
    head + &grounds.collect::<String>()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_line_in_words_moves_no_cursor_and_keeps_every_ground() {
        let line = serde_json::json!({"at": 1_000, "session": "s", "episode": 2, "seq": 3, "decision": "waits",
            "because": "retry\u{1b}[2J", "delay_ms": 2_000});
        let shown = in_words(&line);
        assert_eq!(shown, "1970-01-01 00:00:01 UTC    2.3   waits          because: retry\\u{1b}[2J  delay_ms: 2000");
        assert!(in_words(&serde_json::json!({"at": 1, "gap": 7})).contains("7 decisions"));
    }
}
