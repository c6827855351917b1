use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, ValueEnum};
use regex::Regex;

use super::span;
use crate::SessionId;
use crate::client::command::{FailureRules, JsonPointer};

/// Run an agent's command; when it fails, recover and run it again.
///
/// The command's output passes through untouched. It failed when it ends with another exit code
/// than 0 or by a signal, or when the options below say so. Then the failure is classified, its
/// chain of strategies runs, and the command is started again, with the placeholders in its
/// arguments filled:
///
///   {attempt}  which try this is, from 1
///   {model}    the model to use: --model, or a fallback
///   {inject}   what recovery tells the agent
///   {session}  the session id
///
/// An argument that is nothing but a placeholder without a value is left out, and with it the
/// flag before it: `--model {model}` vanishes until there is a model. The same values, and more,
/// come as variables: BACKSTOP_SESSION, BACKSTOP_ATTEMPT, BACKSTOP_SEQ, BACKSTOP_MODEL,
/// BACKSTOP_INJECT, BACKSTOP_TRUNCATE_TO, BACKSTOP_DEGRADED, BACKSTOP_SKIP, BACKSTOP_KIND.
///
/// Steps of a chain that this run cannot carry out are passed over at no cost: `compact` and
/// `rollback` without their hook; `summarize` without its hook and `truncate` where nothing tells
/// the command, that is, no {inject} and no BACKSTOP_ variable in its words or its script.
///
/// Ctrl-C cancels: the command gets SIGINT, nothing is recovered; again kills it. SIGTERM
/// suspends: the episode stays open, and running with the same --session goes on where it was,
/// its budget kept. So does running again after backstop itself was killed: the command dies with
/// it (on Linux), and what the command had started is ended by the next run of the session.
///
/// On stderr, beside the command's own, one line for each failed try and each decision, and one
/// at the end: verdict, tries, attempts, time. With --json they are JSON: `turn_failed`, the
/// engine's events, and last `report`.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(in crate::cli) struct ExecArgs {
    /// The session's name; without it each run is a session of its own.
    ///
    /// Each session keeps its state under STATE_DIR/backstop/exec/, so that any number of different sessions
    /// can run at once in one directory; a session that runs already ends with exit code 4.
    #[arg(long, value_name = "ID", value_parser = session_id)]
    pub session: Option<SessionId>,
    /// How to run a known agent and read what it says: a preset's name, or a preset file.
    #[arg(long, value_name = "NAME|FILE", value_parser = NonEmptyStringValueParser::new())]
    pub preset: Option<String>,
    /// The turn failed when this is found on stdout or stderr, whatever the exit code.
    #[arg(long, value_name = "REGEX", value_parser = FailureRules::pattern)]
    pub failure_regex: Vec<Regex>,
    /// Exit code 0 is believed only when this is found on stdout.
    #[arg(long, value_name = "REGEX", value_parser = FailureRules::pattern)]
    pub success_regex: Vec<Regex>,
    /// Exit code 0 with nothing on stdout is a failure.
    #[arg(long)]
    pub empty_is_failure: bool,
    /// The turn failed when this points to something in the last JSON value on stdout.
    #[arg(long, value_name = "POINTER", value_parser = |text: &str| JsonPointer::parse(text))]
    pub json_error: Vec<JsonPointer>,
    /// The model to use first.
    #[arg(long, value_name = "MODEL", value_parser = NonEmptyStringValueParser::new())]
    pub model: Option<String>,
    /// Another model, for when the first cannot serve; several are tried in order.
    ///
    /// Where a key, an allowance or the model's name is the trouble, they are tried at once; for rate limits,
    /// overload, server errors and time-outs after the retries, before giving up. Chains of your own
    /// configuration stay as they are, but for `fallback_model` steps without a model, which get these.
    #[arg(long, value_name = "MODEL", value_parser = NonEmptyStringValueParser::new())]
    pub fallback_model: Vec<String>,
    /// End a try that runs longer: it failed with a time-out.
    #[arg(long, value_name = "SPAN", value_parser = span::parse)]
    pub turn_timeout: Option<Duration>,
    /// End a try that prints nothing for so long: it failed with a time-out.
    #[arg(long, value_name = "SPAN", value_parser = span::parse)]
    pub idle_timeout: Option<Duration>,
    /// End everything after this time, waits and first try included.
    #[arg(long, value_name = "SPAN", value_parser = span::parse)]
    pub deadline: Option<Duration>,
    /// Bound the attempts at recovery (10 unless configured).
    #[arg(long, value_name = "N")]
    pub max_attempts: Option<u32>,
    /// Run this to compact the session's history before a redo.
    ///
    /// Hooks run under `sh -c` with BACKSTOP_SESSION, BACKSTOP_REMEDY and BACKSTOP_KIND; exit code 0 says that it
    /// was done. Without its hook a `compact` step is passed over, as are `summarize` and `rollback` without theirs.
    #[arg(long, value_name = "CMD")]
    pub on_compact: Option<OsString>,
    /// Run this to replace the session's history by a summary (BACKSTOP_MODEL names who writes it).
    #[arg(long, value_name = "CMD")]
    pub on_summarize: Option<OsString>,
    /// Run this to go back to a checkpoint (BACKSTOP_CHECKPOINT).
    #[arg(long, value_name = "CMD")]
    pub on_rollback: Option<OsString>,
    /// Run this when a person must decide; it finds the failure and all that was tried as JSON on its stdin.
    #[arg(long, value_name = "CMD")]
    pub on_escalate: Option<OsString>,
    /// What the command reads.
    #[arg(long, value_name = "MODE", value_enum, default_value_t)]
    pub stdin: StdinMode,
    /// Keep nothing on disk: a run that is killed cannot be resumed.
    #[arg(long)]
    pub no_state: bool,
    /// What shares a rate limit, such as `provider/model@account`.
    #[arg(long, value_name = "LANE", value_parser = NonEmptyStringValueParser::new())]
    pub lane: Option<String>,
    /// Write the final report as JSON to this file; /dev/fd/3 works too.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Say what would be done, and do nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// The command and its arguments; with a preset, the agent's own program when left out.
    #[arg(last = true, value_name = "CMD", required_unless_present = "preset")]
    pub command: Vec<OsString>,
}

/// What the command reads on its stdin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(in crate::cli) enum StdinMode {
    /// A file or pipe is read up front and replayed to each try; a terminal, or a pipe on which nothing comes
    /// for 3 s, counts as null.
    #[default]
    Auto,
    /// Read to its end up front (at most 16 MiB) and replayed to each try.
    Replay,
    /// Nothing.
    Null,
    /// Backstop's own; a second try reads what the first one left.
    Inherit,
}

fn session_id(text: &str) -> Result<SessionId, String> {
    SessionId::new(text).map_err(|error| error.to_string())
}
