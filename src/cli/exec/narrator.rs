use std::cell::Cell;
use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use tokio::time::Instant;

use super::lines;
use crate::RecoveryError;
use crate::actors::{EngineEvent, EventStream};
use crate::cli::{Globals, output};
use crate::client::command::{Captured, ChildOutcome, Exit};
use crate::policy::machine::NoteKind;

/// How often a countdown moves.
const TICK: Duration = Duration::from_millis(200);

/// How a run speaks on stderr; stdout is the agent's.
#[derive(Debug)]
pub(super) struct Voice {
    mode: Mode,
    verbose: bool,
    /// The command's last line has no end: ours must not be glued to it.
    unfinished: Cell<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Quiet,
    Lines,
    Json,
}

/// A failed try as a line of JSON.
#[derive(Serialize)]
struct TurnFailed<'a> {
    event: &'static str,
    #[serde(rename = "try")]
    number: u32,
    #[serde(flatten)]
    command: CommandEnd,
    duration_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a RecoveryError>,
}

/// How the command ended.
#[derive(Debug, Serialize)]
pub(super) struct CommandEnd {
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<Arc<str>>,
}

impl CommandEnd {
    pub fn of(exit: Option<&Exit>) -> Self {
        match exit {
            Some(Exit::Code(code)) => Self { exit_code: Some(*code), signal: None },
            Some(Exit::Signal(name)) => Self { exit_code: None, signal: Some(Arc::clone(name)) },
            Some(Exit::NotStarted) | None => Self { exit_code: None, signal: None },
        }
    }
}

impl Voice {
    pub fn of(globals: &Globals) -> Self {
        let mode = match (globals.json, globals.quiet) {
            (true, _) => Mode::Json,
            (false, true) => Mode::Quiet,
            (false, false) => Mode::Lines,
        };
        Self { mode, verbose: globals.verbose > 0, unfinished: Cell::new(false) }
    }

    /// A line for people.
    pub fn say(&self, line: &str) {
        if self.mode == Mode::Lines {
            self.finish_line();
            output::note(line);
        }
    }

    /// A value for machines.
    pub fn tell(&self, value: &impl Serialize) {
        if self.mode == Mode::Json {
            self.finish_line();
            output::json_note(value);
        }
    }

    fn finish_line(&self) {
        if self.unfinished.take() {
            let _nobody_reads = io::stderr().write_all(b"\n");
        }
    }

    /// The command has written this.
    pub fn heard(&self, outcome: &ChildOutcome) {
        let open = |stream: &Captured| stream.tail.last().is_some_and(|byte| *byte != b'\n');
        let shows_both = || io::stdout().is_terminal() && io::stderr().is_terminal();
        self.unfinished.set(open(&outcome.stderr) || (open(&outcome.stdout) && shows_both()));
    }

    /// A try failed.
    pub fn failed(&self, number: u32, outcome: &ChildOutcome, error: Option<&RecoveryError>) {
        self.say(&lines::failed(number, outcome, error));
        let duration_ms = u64::try_from(outcome.duration.as_millis()).unwrap_or(u64::MAX);
        let command = CommandEnd::of(Some(&outcome.exit));
        self.tell(&TurnFailed { event: "turn_failed", number, command, duration_ms, error });
    }
}

/// Tells what the engine decides, as it decides, and counts waits down.
pub(super) struct Narrator<'v> {
    voice: &'v Voice,
    events: EventStream,
    countdown: Option<Countdown>,
}

struct Countdown {
    until: Instant,
    because: String,
    bar: ProgressBar,
}

impl<'v> Narrator<'v> {
    pub fn new(voice: &'v Voice, events: EventStream) -> Self {
        Self { voice, events, countdown: None }
    }

    /// Tells the next thing that happens.
    ///
    /// # Cancellation
    ///
    /// Nothing is lost when the future is dropped.
    pub async fn next(&mut self) {
        let tick = self.countdown.is_some();
        tokio::select! {
            biased;
            event = self.events.next() => match event {
                Some(event) => self.hear(&event),
                None => std::future::pending().await,
            },
            () = tokio::time::sleep(TICK), if tick => self.tick(),
        }
    }

    /// Tells what has happened already.
    pub async fn catch_up(&mut self) {
        loop {
            tokio::select! {
                biased;
                Some(event) = self.events.next() => self.hear(&event),
                () = std::future::ready(()) => break,
            }
        }
        self.stop_counting();
    }

    fn hear(&mut self, event: &EngineEvent) {
        self.voice.tell(event);
        match event {
            EngineEvent::Decided { note, .. } => {
                self.stop_counting();
                if let NoteKind::Waits { delay, because } = &note.what {
                    self.count(*delay, because);
                } else if let Some(line) = lines::decision(&note.what, self.voice.verbose) {
                    self.voice.say(&line);
                }
            }
            EngineEvent::NotDurable { reason } => {
                self.voice.say(&format!("warning: the state does not reach the disk: {reason}"));
            }
            EngineEvent::DurableAgain => self.voice.say("the state reaches the disk again"),
            _ => {}
        }
    }

    /// Shows a wait: as a countdown on a terminal, else as one line.
    pub fn count(&mut self, left: Duration, because: &str) {
        if self.voice.mode != Mode::Lines {
            return;
        }
        if !io::stderr().is_terminal() {
            return self.voice.say(&lines::wait(left, because));
        }
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        bar.set_style(ProgressStyle::with_template("backstop: {msg}").unwrap_or_else(|_| ProgressStyle::default_bar()));
        self.countdown = Some(Countdown { until: Instant::now() + left, because: because.to_owned(), bar });
        self.tick();
    }

    fn tick(&mut self) {
        let Some(countdown) = &self.countdown else { return };
        let left = countdown.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            // What follows may print: a hook, the command itself.
            return self.stop_counting();
        }
        // Rounded up, so that it never shows a wait that is over.
        let shown = Duration::from_millis(u64::try_from(left.as_millis().div_ceil(100)).unwrap_or(u64::MAX) * 100);
        countdown.bar.set_message(lines::wait(shown, &countdown.because));
    }

    fn stop_counting(&mut self) {
        if let Some(countdown) = self.countdown.take() {
            countdown.bar.finish_and_clear();
        }
    }
}
