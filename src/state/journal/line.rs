use std::borrow::Cow;
use std::collections::HashSet;

use serde::Serialize;
use serde_json::Value;

use super::super::view::clip;
use crate::failure::{SessionId, Timestamp, mask};
use crate::policy::Verdict;
use crate::policy::machine::{Note, NoteKind};

/// Something to be written about a session, as it was handed over: made into text by the writer.
pub(super) enum Entry {
    /// Decisions of an episode.
    Decided { session: SessionId, episode: u64, notes: Vec<Note> },
    /// A strategy that acts by itself begins: what it does is not known before it answers.
    Begun { session: SessionId, episode: u64, seq: u64, strategy: std::sync::Arc<str>, attempt: u32, at: Timestamp },
    /// A failure opened no episode.
    Refused { session: SessionId, notes: Vec<Note>, verdict: Verdict, at: Timestamp },
}

#[derive(Serialize)]
struct Line<'a, T> {
    at: Timestamp,
    session: &'a str,
    episode: u64,
    seq: u64,
    #[serde(flatten)]
    what: &'a T,
}

#[derive(Serialize)]
#[serde(tag = "decision", rename_all = "snake_case")]
enum Begun<'a> {
    Begun { strategy: &'a str, attempt: u32 },
}

/// Texts up to this long, in bytes, are not cut.
const SHORT: usize = 2_000;

impl Entry {
    /// How many lines it becomes.
    pub fn lines(&self) -> usize {
        match self {
            Self::Decided { notes, .. } => notes.len(),
            Self::Begun { .. } => 1,
            Self::Refused { notes, .. } => notes.len() + 1,
        }
    }

    /// When the last of it happened.
    pub fn at(&self) -> Timestamp {
        match self {
            Self::Decided { notes, .. } => notes.last().map_or(Timestamp::default(), |note| note.at),
            Self::Begun { at, .. } | Self::Refused { at, .. } => *at,
        }
    }

    /// Adds its lines to a text.
    pub fn write(&self, to: &mut Vec<u8>, known: &mut Known) {
        let note = |session: &SessionId, episode, note: &Note, to: &mut Vec<u8>, known: &mut Known| {
            let is_clean = known.all_clean(texts(&note.what));
            let line = Line { at: note.at, session: session.as_str(), episode, seq: note.seq, what: &note.what };
            add(&line, is_clean, to);
        };
        match self {
            Self::Decided { session, episode, notes } => {
                notes.iter().for_each(|one| note(session, *episode, one, to, known));
            }
            Self::Begun { session, episode, seq, strategy, attempt, at } => {
                let what = Begun::Begun { strategy, attempt: *attempt };
                let line = Line { at: *at, session: session.as_str(), episode: *episode, seq: *seq, what: &what };
                add(&line, known.all_clean([Some(&**strategy), None, None, None]), to);
            }
            Self::Refused { session, notes, verdict, at } => {
                let ended = Note { at: *at, seq: 0, what: NoteKind::Ended { verdict: verdict.clone() } };
                notes.iter().chain([&ended]).for_each(|one| note(session, 0, one, to, known));
            }
        }
    }
}

/// Says how many lines are missing here.
pub(super) fn add_gap(at: Timestamp, gap: u64, to: &mut Vec<u8>) {
    to.extend_from_slice(format!("{{\"at\":{},\"gap\":{gap}}}\n", at.as_millis()).as_bytes());
}

fn add<T: Serialize>(line: &Line<'_, T>, is_clean: bool, to: &mut Vec<u8>) {
    let start = to.len();
    // Maps have text keys and nothing else can fail; a line that could not be made is left out.
    let written = if is_clean {
        serde_json::to_writer(&mut *to, line)
    } else {
        serde_json::to_value(line).and_then(|mut line| {
            for (key, value) in line.as_object_mut().into_iter().flatten() {
                // The id is the session's name, here as in every state file.
                if key != "session" {
                    clean(value);
                }
            }
            serde_json::to_writer(&mut *to, &line)
        })
    };
    match written {
        Ok(()) => to.push(b'\n'),
        Err(_) => to.truncate(start),
    }
}

/// Texts that were seen to be short and to hold no secret. Decisions say much the same again and again, and
/// looking for secrets costs far more than all the rest of a line.
#[derive(Default)]
pub(super) struct Known(HashSet<Box<str>>);

impl Known {
    /// Texts kept: far more than a configuration's decisions have.
    const MOST: usize = 2_048;
    /// Longer ones are somebody's words, which seldom come twice.
    const LONGEST: usize = 256;

    fn all_clean(&mut self, texts: [Option<&str>; 4]) -> bool {
        texts.into_iter().flatten().all(|text| self.is_clean(text))
    }

    fn is_clean(&mut self, text: &str) -> bool {
        if self.0.contains(text) {
            return true;
        }
        let is_clean = text.len() <= SHORT && matches!(mask(text), Cow::Borrowed(_));
        if is_clean && text.len() <= Self::LONGEST {
            if self.0.len() >= Self::MOST {
                self.0.clear();
            }
            self.0.insert(text.into());
        }
        is_clean
    }
}

/// Every text of a decision.
fn texts(what: &NoteKind) -> [Option<&str>; 4] {
    match what {
        NoteKind::ChainChosen { kind, pattern, because, origin, .. } => {
            // A chain's key is a category or this kind.
            [Some(kind.as_str()), Some(pattern), Some(because), Some(origin)]
        }
        NoteKind::NoChain { kind, reason } => [Some(kind.as_str()), Some(reason), None, None],
        NoteKind::StepSkipped { strategy, reason, .. } => [Some(strategy), Some(reason), None, None],
        NoteKind::Answered { strategy, status, text, .. } => [Some(strategy), Some(status), Some(text), None],
        NoteKind::Waits { because, .. } | NoteKind::WaitRefused { because, .. } => [Some(because), None, None, None],
        NoteKind::Parked { lane, .. } => [Some(lane.as_str()), None, None, None],
        NoteKind::RemedyFailed { reason } => [Some(reason), None, None, None],
        NoteKind::FailedAgain { kind } => [Some(kind.as_str()), None, None, None],
        NoteKind::Remark { text } => [Some(text), None, None, None],
        NoteKind::Ended { verdict: Verdict::Aborted { reason } | Verdict::Escalated { reason } } => {
            [Some(reason), None, None, None]
        }
        NoteKind::Ended { .. } | NoteKind::Redone { .. } => [None; 4],
    }
}

/// Masks and cuts every text (R12).
fn clean(value: &mut Value) {
    match value {
        Value::String(text) => {
            let clean = clip(text);
            if *clean != **text {
                *text = clean.as_ref().to_owned();
            }
        }
        Value::Array(all) => all.iter_mut().for_each(clean),
        Value::Object(all) => all.values_mut().for_each(clean),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn line(text: &str) -> Value {
        let what = NoteKind::Remark { text: text.into() };
        let note = Note { at: Timestamp::from_millis(7), seq: 2, what };
        let session = SessionId::new("s-1").unwrap();
        let mut to = vec![];
        Entry::Decided { session, episode: 3, notes: vec![note] }.write(&mut to, &mut Known::default());
        assert_eq!(to.iter().filter(|byte| **byte == b'\n').count(), 1, "one line each");
        serde_json::from_slice(&to).unwrap()
    }

    #[test]
    fn a_line_says_when_who_and_what() {
        let expected = serde_json::json!(
            {"at": 7, "session": "s-1", "episode": 3, "seq": 2, "decision": "remark", "text": "resumed"});
        assert_eq!(line("resumed"), expected);
    }

    #[test]
    fn a_secret_is_masked_whatever_stands_around_it() {
        const SECRET: &str = "sk-ant-api03-a1B2c3D4e5F6g7H8i9J0k1L2m3";
        for around in ["%", "key % refused", "a \"quoted\"\n%", "{\"authorization\":\"Bearer %\"}", "\\u0041 %"] {
            let text = around.replace('%', SECRET);
            assert!(!line(&text)["text"].as_str().unwrap().contains("a1B2c3"), "{around}");
        }
    }

    #[test]
    fn a_long_text_is_cut() {
        assert!(line(&"word ".repeat(50_000))["text"].as_str().unwrap().len() <= SHORT);
    }
}
