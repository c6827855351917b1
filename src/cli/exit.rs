use std::process::ExitCode;

use crate::client::command;

/// How the program ends. [`code`](Self::code) is the one place where exit codes are given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exit {
    /// Everything was done.
    Done,
    /// What was looked at has problems: an invalid file, an unknown session.
    Problems,
    /// The command line is wrong.
    Usage,
    /// The state directory cannot be used.
    State,
    /// Another process uses the state.
    Busy,
    /// The configuration or a preset is wrong.
    Config,
    /// Something else failed: input or output, the system.
    Failed,
    /// The command's own end: it worked, or recovery had nothing to do with it.
    Command(command::Exit),
    /// The chain said to give up.
    Aborted,
    /// Every step and attempt was used up.
    Exhausted,
    /// A person must decide.
    Escalated,
    /// The deadline passed.
    TooLate,
    /// The command is there but cannot be started.
    CannotStart,
    /// There is no such command.
    NotFound,
    /// SIGINT: cancelled, never recovered.
    Cancelled,
    /// SIGTERM: suspended, to be resumed.
    Suspended,
}

/// The exit codes as `--help` shows them.
pub(super) const EXIT_CODES: &str = "\
Exit codes:
  0    done (exec: the command worked, at once or after recovery)
  1    problems were found (check, sessions, state), or an error that has no code of its own
  2    the command line is wrong
  3    the state directory cannot be used
  4    another process uses the state (exec: the same session)
  5    the configuration or a preset is wrong
  80   exec: aborted, the chain gave up
  81   exec: exhausted, every step and attempt was used up
  82   exec: escalated, a person must decide
  83   exec: the deadline passed
  126  exec: the command cannot be started
  127  exec: there is no such command
  130  cancelled by Ctrl-C (SIGINT)
  143  suspended by SIGTERM; run it again with the same --session to go on
  When exec does not handle a failure, it ends with the command's own code (128 + n for a signal).";

impl Exit {
    /// The exit code.
    pub fn code(&self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Problems | Self::Failed => 1,
            Self::Usage => 2,
            Self::State => 3,
            Self::Busy => 4,
            Self::Config => 5,
            Self::Command(exit) => exit.shell_code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1),
            Self::Aborted => 80,
            Self::Exhausted => 81,
            Self::Escalated => 82,
            Self::TooLate => 83,
            Self::CannotStart => 126,
            Self::NotFound => 127,
            Self::Cancelled => 130,
            Self::Suspended => 143,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_that_is_given_is_documented() {
        let own = [
            Exit::Done,
            Exit::Problems,
            Exit::Usage,
            Exit::State,
            Exit::Busy,
            Exit::Config,
            Exit::Failed,
            Exit::Aborted,
            Exit::Exhausted,
            Exit::Escalated,
            Exit::TooLate,
            Exit::CannotStart,
            Exit::NotFound,
            Exit::Cancelled,
            Exit::Suspended,
        ];
        for exit in own {
            let line = format!("\n  {:<4} ", exit.code());
            assert!(EXIT_CODES.contains(&line), "{exit:?} = {} is not documented", exit.code());
        }
    }

    #[test]
    fn a_command_that_a_signal_ended_gets_the_code_that_a_shell_gives() {
        assert_eq!(Exit::Command(command::Exit::Signal("SIGKILL".into())).code(), 137);
        assert_eq!(Exit::Command(command::Exit::Code(7)).code(), 7);
    }
}
