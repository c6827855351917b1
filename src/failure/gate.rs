//! Whether a value is a failure at all (R1), before any rule names it.

use std::sync::LazyLock;

use super::evidence::{Evidence, Shape};
use super::knowledge::knowledge;
use super::search::Search;
use super::text::head;

/// How much of a first line tells what a text is.
const MAX_FIRST_LINE: usize = 600;

/// The gate's answer, with the name of the rule that gave it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gate {
    /// Rules may name it; without one it is of kind `other`.
    Failure,
    /// Rules may name it; without one it is a failure only if it sounds like one.
    Reported,
    /// Nothing came back.
    Empty(&'static str),
    /// Stopped by a person or the host.
    Cancelled(&'static str),
    /// Ordinary output.
    Ordinary(&'static str),
}

/// Machine words of a stop that was wanted.
const STOPPED: &[&str] = &[
    "aborterror",
    "messageabortederror",
    "apiuseraborterror",
    "apiuseraborted",
    "abort_err",
    "cancellederror",
    "cancelederror",
    "operationcancelled",
    "operationcancelledexception",
    "operationcanceledexception",
    "operationcanceled",
    "cancellationexception",
    "jobcancellationexception",
    "agentaborterror",
    "usercancellederror",
    "usercancelederror",
    "user_cancelled",
    "user_canceled",
    "user_interrupt",
    "user_aborted",
    "turn_aborted",
    "finish:cancelled",
    "finish:canceled",
    "finish:user_cancelled",
    "-32800",
    "taskcanceledexception",
    "request_cancelled",
    "finish:aborted",
    "err_canceled",
    "keyboardinterrupt",
];

/// Tools whose output is somebody else's text.
const READERS: &[&str] = &[
    "read",
    "read_file",
    "readfile",
    "cat",
    "grep",
    "search",
    "glob",
    "webfetch",
    "web_fetch",
    "cat_file",
    "fetch",
    "websearch",
    "view",
    "list",
    "ls",
    "find",
    "query",
];

/// Programs that answer with exit code 1 for "no", as the last of a command line.
static ASKS: LazyLock<Search> = LazyLock::new(|| {
    let patterns = [
        concat!(
            r"(?:^|[|;&(] ?|\bthen )(?:sudo |command |env |! )*(?:rg|grep|egrep|fgrep|zgrep|ag|ack",
            r"|diff|cmp|test|pgrep|",
            r"git (?:--no-pager )?(?:diff|grep)|which|type|command -v|find|expr|git merge-base)\b[^|;&]*$"
        ),
        r"(?:^|[|;&(] ?)\[{1,2} [^|;&]*\]\s*$",
    ];
    Search::bare(&format!("(?im){}", patterns.join("|")))
});

/// Judges a report's evidence.
pub(crate) fn judge(evidence: &Evidence) -> Gate {
    let (marks, text, scan) = (&knowledge().gate, evidence.text(), evidence.scan());
    match evidence.shape {
        Shape::Cancelled => return Gate::Cancelled("stopped_command"),
        Shape::Empty => return Gate::Empty("empty"),
        Shape::Success => return Gate::Ordinary("success"),
        Shape::Failure | Shape::Text | Shape::Output => {}
    }
    if evidence.shape == Shape::Output {
        let reader = evidence.tool.as_deref().is_some_and(|tool| READERS.contains(&tool.to_ascii_lowercase().as_str()));
        if text.starts_with("[Request interrupted by user") {
            return Gate::Cancelled("stopped");
        }
        let framed = marks.tool_frame.is_found(text, scan) || marks.tool_says_no.is_found(text, scan);
        return if !reader && framed { Gate::Reported } else { Gate::Ordinary("output") };
    }
    if stopped(evidence) {
        return Gate::Cancelled("stopped");
    }
    if evidence.shape == Shape::Failure && !evidence.is_bare_text() {
        return if said_no(evidence) { Gate::Ordinary("said_no") } else { Gate::Failure };
    }
    if marks.reports.is_found(text, scan) {
        return Gate::Failure;
    }
    if marks.failed_run.is_found(text, scan) || marks.tool_says_no.is_found(text, scan) {
        return Gate::Reported;
    }
    if marks.ended_well.is_found(text, scan) && evidence.shape != Shape::Failure {
        return Gate::Ordinary("ended_well");
    }
    let first = head(text.lines().next().unwrap_or_default(), MAX_FIRST_LINE);
    if marks.well.is_found(first, scan) && evidence.shape != Shape::Failure {
        return Gate::Ordinary("all_well");
    }
    if marks.file_list.is_found(text, scan) {
        return Gate::Ordinary("file_list");
    }
    match marks.about.iter().find(|(_, marks)| marks.is_found(first, scan)) {
        Some((name, _)) => Gate::Ordinary(name),
        None => Gate::Reported,
    }
}

/// Whether a text that no rule knows is a failure.
pub(crate) fn sounds_wrong(evidence: &Evidence) -> bool {
    knowledge().gate.sounds_wrong.is_found(evidence.text(), evidence.scan())
}

/// Whether a text can be a verdict or the end of a program: it complains, is no English, or has the frames of one.
pub(crate) fn may_be_a_verdict(evidence: &Evidence) -> bool {
    let (marks, text, scan) = (&knowledge().gate, evidence.text(), evidence.scan());
    !text.is_ascii()
        || marks.sounds_wrong.is_found(text, scan)
        || marks.complains.is_found(text, scan)
        || marks.failed_run.is_found(text, scan)
}

fn stopped(evidence: &Evidence) -> bool {
    if matches!(evidence.signal.as_deref(), Some("SIGINT" | "INT" | "2")) || evidence.exit_code == Some(130) {
        return true;
    }
    let (marks, text, scan) = (&knowledge().gate, evidence.text(), evidence.scan());
    let says = evidence.codes().iter().any(|code| STOPPED.contains(&code.as_str()))
        || marks.stopped_text.is_found(text, scan)
        || marks.stopped_frame.is_found(text, scan);
    says && !marks.not_by_a_person.is_found(text, scan) && text.len() < 2000
}

/// A program whose exit code 1 is an answer and not a failure.
fn said_no(evidence: &Evidence) -> bool {
    if evidence.exit_code != Some(1) {
        return false;
    }
    if evidence.text().starts_with("diff --git ") {
        // A difference is what it was asked for.
        return true;
    }
    // Its streams must not complain: `grep` says 2 for that, but a shell around it may not.
    let silent = !sounds_wrong(evidence) || evidence.text().len() > 400;
    evidence.codes().iter().any(|code| code.contains("not an error") || code.contains("no matches found"))
        || (silent && evidence.command.as_deref().is_some_and(|command| ASKS.is_match(command)))
}
