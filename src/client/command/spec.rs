use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// What to start, and within which limits.
#[derive(Debug, Clone)]
pub struct ChildSpec {
    /// The program: a path, or a name to be looked up in `PATH`.
    pub program: OsString,
    /// Its arguments, without the program.
    pub args: Vec<OsString>,
    /// Variables to set, or to remove (`None`), in the inherited environment.
    pub env: Vec<(OsString, Option<OsString>)>,
    /// The working directory; the parent's own when absent.
    pub directory: Option<PathBuf>,
    /// What the child reads.
    pub stdin: Stdin,
    /// How long things may take, and how much is kept.
    pub limits: Limits,
    /// Whether the child is killed when this process is. It is started through a hidden verb of the running
    /// program then, so only for programs whose `main` is [`cli::main`](crate::cli::main), and from a thread
    /// that lives as long as the process; Linux only. Processes that the child starts are not killed with it:
    /// see [`marker`](Self::marker). A program that changes its user on start escapes it.
    pub dies_with_parent: bool,
    /// A file that names the child's group while it runs, for [`end_leftovers`](super::end_leftovers) at the
    /// next start should this process be killed.
    pub marker: Option<PathBuf>,
}

impl ChildSpec {
    /// A program with these arguments, nothing on its stdin and the usual limits.
    pub fn new<A: Into<OsString>>(program: impl Into<OsString>, args: impl IntoIterator<Item = A>) -> Self {
        Self {
            program: program.into(),
            args: args.into_iter().map(Into::into).collect(),
            env: vec![],
            directory: None,
            stdin: Stdin::Null,
            limits: Limits::default(),
            dies_with_parent: false,
            marker: None,
        }
    }

    /// Replaces the limits.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Replaces the stdin.
    #[must_use]
    pub fn with_stdin(mut self, stdin: Stdin) -> Self {
        self.stdin = stdin;
        self
    }

    /// Adds variables to set or to remove.
    #[must_use]
    pub fn with_env(mut self, env: impl IntoIterator<Item = (OsString, Option<OsString>)>) -> Self {
        self.env.extend(env);
        self
    }
}

/// What a child reads on its stdin.
#[derive(Debug, Clone, Default)]
pub enum Stdin {
    /// Nothing: `/dev/null`.
    #[default]
    Null,
    /// The parent's own stdin.
    ///
    /// The child is in a process group of its own, so a terminal stops it when it reads there.
    Inherit,
    /// These bytes, the same ones each time the turn is redone, then the end of input.
    Replay(Arc<[u8]>),
}

/// How long a child may take, and how much of its output is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The longest run; no limit when absent.
    pub turn_timeout: Option<Duration>,
    /// The longest silence on both streams; no limit when absent. Time during which the parent's own
    /// output is blocked by its reader does not count.
    pub idle_timeout: Option<Duration>,
    /// Between SIGTERM and SIGKILL.
    pub grace: Duration,
    /// Between the SIGINT of a cancelled run and SIGTERM.
    pub interrupt_grace: Duration,
    /// How long the streams are still read after the child has ended, when other processes keep them open.
    pub drain: Duration,
    /// How many bytes are kept of the end of each stream.
    pub tail_bytes: usize,
}

impl Default for Limits {
    /// No time-outs, 5 s of grace, 10 s after an interrupt, 1 s of draining, tails of 64 KiB.
    fn default() -> Self {
        Self {
            turn_timeout: None,
            idle_timeout: None,
            // Agents end within a second of SIGTERM or not at all.
            grace: Duration::from_secs(5),
            // The slowest agent that obeys SIGINT takes three seconds.
            interrupt_grace: Duration::from_secs(10),
            drain: Duration::from_secs(1),
            tail_bytes: 64 * 1024,
        }
    }
}

/// Where one output stream of the child goes, byte for byte and without delay.
#[derive(Default)]
pub enum Output {
    /// To the parent's stream of the same name.
    #[default]
    Pass,
    /// To the parent's stderr: for helpers whose words are not the agent's answer.
    PassToStderr,
    /// Nowhere; the tail is kept all the same.
    Discard,
    /// To this writer, which is flushed after each chunk.
    Writer(Box<dyn Write + Send>),
}

/// Where both output streams go.
#[derive(Default)]
pub struct Outputs {
    /// The child's stdout.
    pub stdout: Output,
    /// The child's stderr.
    pub stderr: Output,
}

impl Outputs {
    /// Nothing is passed on.
    pub fn discard() -> Self {
        Self { stdout: Output::Discard, stderr: Output::Discard }
    }

    /// Everything goes to the parent's stderr.
    pub fn to_stderr() -> Self {
        Self { stdout: Output::PassToStderr, stderr: Output::PassToStderr }
    }
}
