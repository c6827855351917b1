use std::ffi::{OsStr, OsString};
use std::io;
use std::path::PathBuf;

use super::ChildSpec;

/// Why a child could not be started, or not be followed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// There is no such program.
    #[error("cannot find the program {}", program.display())]
    NotFound {
        /// The program as it was named.
        program: OsString,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The program exists, but cannot be executed.
    #[error("cannot execute {}", program.display())]
    NotExecutable {
        /// The program as it was named.
        program: OsString,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The working directory does not exist or may not be entered.
    #[error("cannot enter the directory {}", directory.display())]
    Directory {
        /// The directory.
        directory: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Anything else: no more processes, arguments too long, a zero byte in an argument.
    #[error("cannot start {}", program.display())]
    Failed {
        /// The program as it was named.
        program: OsString,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

impl StartError {
    /// The exit code that shells use for this: 127 where the program was not found, else 126.
    pub const fn exit_code(&self) -> i32 {
        match self {
            Self::NotFound { .. } => 127,
            Self::NotExecutable { .. } | Self::Directory { .. } | Self::Failed { .. } => 126,
        }
    }

    pub(super) fn of(spec: &ChildSpec, source: io::Error) -> Self {
        if let Some(directory) = spec.directory.as_ref().filter(|directory| !directory.is_dir()) {
            return Self::Directory { directory: directory.clone(), source };
        }
        let program = spec.program.clone();
        match source.kind() {
            // A script whose interpreter is missing is reported as "not found" as well.
            io::ErrorKind::NotFound if is_there(&program) => Self::NotExecutable { program, source },
            io::ErrorKind::NotFound => Self::NotFound { program, source },
            io::ErrorKind::PermissionDenied | io::ErrorKind::IsADirectory => Self::NotExecutable { program, source },
            _ if source.raw_os_error() == Some(rustix::io::Errno::NOEXEC.raw_os_error()) => {
                Self::NotExecutable { program, source }
            }
            _ => Self::Failed { program, source },
        }
    }
}

fn is_there(program: &OsStr) -> bool {
    let path = std::path::Path::new(program);
    path.components().count() > 1 && path.exists()
}
