//! Decisions as lines for people.

use std::time::Duration;

use crate::RecoveryError;
use crate::cli::human;
use crate::client::command::{ChildOutcome, EndedBy};
use crate::policy::machine::NoteKind;

/// The longest text of a failure on one line.
const SHOWN: usize = 160;

/// What a failed try looks like: `try 2 failed (exit code 1): rate_limit: too many requests`.
pub(super) fn failed(number: u32, outcome: &ChildOutcome, error: Option<&RecoveryError>) -> String {
    let how = match (outcome.ended_by, outcome.limit) {
        (EndedBy::TurnTimeout, Some(limit)) => format!("ended after {}", human::span(limit)),
        (EndedBy::IdleTimeout, Some(limit)) => format!("silent for {}", human::span(limit)),
        _ => outcome.exit.to_string(),
    };
    match error {
        Some(error) if error.message.is_empty() => format!("try {number} failed ({how}): {}", error.kind),
        Some(error) => format!("try {number} failed ({how}): {}: {}", error.kind, brief(&error.message)),
        None => format!("try {number} failed ({how})"),
    }
}

/// A decision that people want to see; `verbose` shows the small print too. Waits are shown by their countdown.
pub(super) fn decision(what: &NoteKind, verbose: bool) -> Option<String> {
    Some(match what {
        NoteKind::ChainChosen { kind, pattern, chain, because, origin } if verbose => {
            format!("{kind} (pattern {pattern}) runs {chain}: {because} ({origin})")
        }
        NoteKind::NoChain { kind, reason } => format!("no chain for {kind}: {}", brief(reason)),
        NoteKind::StepSkipped { strategy, reason, .. } => format!("{strategy} is passed over: {}", brief(reason)),
        // Their words tell of what is done only now, or not done at all.
        NoteKind::Answered { strategy, .. } if matches!(&**strategy, "compact" | "summarize" | "rollback") => {
            format!("{strategy} is tried")
        }
        NoteKind::Answered { strategy, text, .. } => format!("{strategy}: {}", brief(text)),
        NoteKind::WaitRefused { delay, because } => {
            format!("a wait of {} is not begun: {because}", human::span(*delay))
        }
        NoteKind::Parked { lane, .. } => format!("the lane {} is closed", brief(lane.as_str())),
        NoteKind::RemedyFailed { reason } => format!("remedy not done: {}", brief(reason)),
        NoteKind::Remark { text } => brief(text),
        NoteKind::Redone { redo } if verbose => format!("try {}", u64::from(*redo) + 1),
        NoteKind::ChainChosen { .. }
        | NoteKind::Waits { .. }
        | NoteKind::Redone { .. }
        | NoteKind::FailedAgain { .. }
        | NoteKind::Ended { .. } => return None,
    })
}

/// A wait: `waiting 2 s before the next try (the server stated it)`.
pub(super) fn wait(left: Duration, because: &str) -> String {
    format!("waiting {} before the next try ({because})", human::span(left))
}

fn brief(text: &str) -> String {
    human::short(&human::escaped(text), SHOWN)
}
