//! A child that does not outlive this process: started through a verb of this very program, which asks the
//! system to be killed with its parent and then becomes the command.

use std::ffi::OsString;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use rustix::process::{getpid, getppid};

use super::ChildSpec;

/// The hidden verb: `backstop __child PARENT REPORT PROGRAM ARGS…`.
pub(crate) const VERB: &str = "__child";

/// What the starter could not do, told by the starter itself: it is another process by then.
pub(super) struct Guard {
    reader: PipeReader,
    writer: PipeWriter,
}

impl Guard {
    /// A guard where the specification asks for one and the system has it.
    pub fn of(spec: &ChildSpec) -> Option<Self> {
        if !spec.dies_with_parent || !cfg!(target_os = "linux") {
            return None;
        }
        let (reader, writer) = io::pipe().ok()?;
        Some(Self { reader, writer })
    }

    /// The command that becomes the one of the specification.
    pub fn command(&self, spec: &ChildSpec) -> tokio::process::Command {
        let mut command = tokio::process::Command::new("/proc/self/exe");
        command.arg(VERB).arg(getpid().as_raw_nonzero().to_string()).arg(self.writer.as_raw_fd().to_string());
        command.arg(&spec.program).args(&spec.args);
        command
    }

    /// Why the command was never begun, once its starter has ended.
    pub fn failure(self) -> Option<io::Error> {
        let Self { reader, writer } = self;
        drop(writer);
        let mut told = String::new();
        reader.take(16).read_to_string(&mut told).ok()?;
        told.trim().parse().ok().map(io::Error::from_raw_os_error)
    }
}

/// The hidden verb's whole life. It comes back only where the command cannot be started.
pub(crate) fn become_command(mut args: impl Iterator<Item = OsString>) -> ExitCode {
    let usage = ExitCode::from(2);
    let number = |arg: Option<OsString>| arg?.to_str()?.parse::<i32>().ok();
    let (Some(parent), Some(report), Some(program)) = (number(args.next()), number(args.next()), args.next()) else {
        return usage;
    };
    // A system that refuses this starts the command all the same.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
    if getppid().is_none_or(|now| now.as_raw_nonzero().get() != parent) {
        // It died before it could be noticed.
        return ExitCode::FAILURE;
    }
    let error = Command::new(program).args(args).exec();
    let told = std::fs::OpenOptions::new().write(true).open(format!("/proc/{parent}/fd/{report}"));
    let _nobody_reads = told.and_then(|mut to| writeln!(to, "{}", error.raw_os_error().unwrap_or_default()));
    ExitCode::from(if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 })
}
