use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Keeps what we make in a state directory out of version control.
///
/// Looked at before the directory is opened: one that was there already is the user's to arrange.
pub(super) struct Unversioned {
    missing: Option<PathBuf>,
}

impl Unversioned {
    /// Before the state directory is opened.
    pub fn before_opening(state_dir: &Path) -> Self {
        let own = state_dir.join("backstop");
        let is_missing = matches!(fs::symlink_metadata(&own), Err(error) if error.kind() == io::ErrorKind::NotFound);
        Self { missing: is_missing.then_some(own) }
    }

    /// Once it is open.
    pub fn opened(self) {
        let Some(own) = self.missing else { return };
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        // Like everything else there, nobody else's to read.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let written = options.open(own.join(".gitignore")).and_then(|mut file| file.write_all(b"*\n"));
        match written {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                tracing::debug!(%error, "no .gitignore was put into the state directory");
            }
            _ => {}
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn only_a_directory_that_we_made_is_arranged_by_us() {
        let state = tempfile::tempdir().unwrap();
        let own = state.path().join("backstop");
        let open = || {
            let unversioned = Unversioned::before_opening(state.path());
            fs::create_dir_all(&own).unwrap();
            unversioned.opened();
        };
        open();
        assert_eq!(fs::read_to_string(own.join(".gitignore")).unwrap(), "*\n");
        #[cfg(unix)]
        assert_eq!(std::os::unix::fs::MetadataExt::mode(&own.join(".gitignore").metadata().unwrap()) & 0o777, 0o600);
        fs::remove_file(own.join(".gitignore")).unwrap();
        open();
        assert!(!own.join(".gitignore").exists());
    }
}
