use std::borrow::Cow;
use std::fmt;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

/// How a child's process ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exit {
    /// It ended by itself, with this code.
    Code(i32),
    /// A signal ended it, named as in `SIGKILL`.
    Signal(Arc<str>),
    /// It was not started, because the run had been cancelled or suspended before.
    NotStarted,
}

impl Exit {
    /// The exit code that a shell would give: 128 + n for a signal. `None` when nothing was started.
    pub fn shell_code(&self) -> Option<i32> {
        match self {
            Self::Code(code) => Some(*code),
            Self::Signal(name) => Some(128 + signal_number(name)),
            Self::NotStarted => None,
        }
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(name) => f.write_str(name),
            Self::NotStarted => f.write_str("not started"),
        }
    }
}

impl From<ExitStatus> for Exit {
    fn from(status: ExitStatus) -> Self {
        use std::os::unix::process::ExitStatusExt;
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Code(code),
            (None, signal) => Self::Signal(signal_name(signal.unwrap_or_default())),
        }
    }
}

/// The signals that end processes, with the names that every Unix gives them. Their numbers differ
/// between systems, so they are taken from the system.
const SIGNALS: [(rustix::process::Signal, &str); 14] = {
    use rustix::process::Signal;
    [
        (Signal::HUP, "SIGHUP"),
        (Signal::INT, "SIGINT"),
        (Signal::QUIT, "SIGQUIT"),
        (Signal::ILL, "SIGILL"),
        (Signal::TRAP, "SIGTRAP"),
        (Signal::ABORT, "SIGABRT"),
        (Signal::BUS, "SIGBUS"),
        (Signal::FPE, "SIGFPE"),
        (Signal::KILL, "SIGKILL"),
        (Signal::SEGV, "SIGSEGV"),
        (Signal::PIPE, "SIGPIPE"),
        (Signal::ALARM, "SIGALRM"),
        (Signal::TERM, "SIGTERM"),
        (Signal::XCPU, "SIGXCPU"),
    ]
};

fn signal_name(number: i32) -> Arc<str> {
    match SIGNALS.iter().find(|(signal, _)| signal.as_raw() == number) {
        Some((_, name)) => (*name).into(),
        None => format!("SIG{number}").into(),
    }
}

fn signal_number(name: &str) -> i32 {
    match SIGNALS.iter().find(|(_, known)| *known == name) {
        Some((signal, _)) => signal.as_raw(),
        None => name.trim_start_matches("SIG").parse().unwrap_or_default(),
    }
}

/// Who ended a run; the first cause counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EndedBy {
    /// The child itself, or somebody else outside.
    Own,
    /// It ran longer than its turn time-out.
    TurnTimeout,
    /// It was silent for longer than its idle time-out.
    IdleTimeout,
    /// It was cancelled: never recovered.
    Cancelled,
    /// It was suspended: the episode stays open.
    Suspended,
}

/// What is left of one output stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Captured {
    /// The last bytes, at most [`Limits::tail_bytes`](super::Limits::tail_bytes).
    pub tail: Vec<u8>,
    /// How many bytes there were in all.
    pub bytes: u64,
    /// The parent's own output was closed, so the rest was read but not passed on.
    pub sink_closed: bool,
}

impl Captured {
    /// The tail as text; what is no UTF-8 is replaced, a character cut at the start is dropped.
    pub fn text(&self) -> Cow<'_, str> {
        let cut = self.bytes > self.tail.len() as u64;
        let start = if cut { self.tail.iter().take(3).take_while(|byte| **byte & 0xC0 == 0x80).count() } else { 0 };
        String::from_utf8_lossy(&self.tail[start..])
    }
}

/// How one run of a child went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChildOutcome {
    /// How its process ended.
    pub exit: Exit,
    /// Who ended it.
    pub ended_by: EndedBy,
    /// The limit that was exceeded, for [`EndedBy::TurnTimeout`] and [`EndedBy::IdleTimeout`].
    pub limit: Option<Duration>,
    /// Its stdout.
    pub stdout: Captured,
    /// Its stderr.
    pub stderr: Captured,
    /// From start to exit.
    pub duration: Duration,
}

impl ChildOutcome {
    pub(super) fn not_started(ended_by: EndedBy) -> Self {
        Self {
            exit: Exit::NotStarted,
            ended_by,
            limit: None,
            stdout: Captured::default(),
            stderr: Captured::default(),
            duration: Duration::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_cut_in_half_does_not_spoil_the_text() {
        let whole = "…done".as_bytes();
        let cut = Captured { tail: whole[1..].to_vec(), bytes: 8, sink_closed: false };
        assert_eq!(cut.text(), "done");
        let uncut = Captured { tail: vec![0x80, b'x'], bytes: 2, sink_closed: false };
        assert_eq!(uncut.text(), "\u{fffd}x", "garbage that the child itself wrote is shown");
    }

    #[test]
    fn signals_have_their_shell_codes() {
        assert_eq!(Exit::Signal("SIGKILL".into()).shell_code(), Some(137));
        assert_eq!(Exit::Signal(signal_name(64)).shell_code(), Some(192));
        assert_eq!(Exit::Code(3).shell_code(), Some(3));
        assert_eq!(Exit::NotStarted.shell_code(), None);
    }
}
