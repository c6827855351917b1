use std::io;
use std::path::PathBuf;

use crate::failure::SessionId;

/// Why state could not be read or written.
///
/// After any of these the state that was durable before is still whole.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// The state could not be opened or read; nothing was changed.
    #[error("cannot open {}", path.display())]
    Open {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The batch is not durable. The next append repairs the log first, if the cause is gone.
    #[error("cannot save to {}", path.display())]
    Save {
        /// The log's file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A view file could not be written or removed; the log, which alone counts, is not touched by it.
    #[error("cannot refresh the view {}", path.display())]
    View {
        /// The view's file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Another process, or another store of this one, keeps its state there.
    #[error("{} is in use by {}", dir.display(), named(*holder))]
    Locked {
        /// The directory.
        dir: PathBuf,
        /// The holder's process id, if it could be read.
        holder: Option<u32>,
    },
    /// A newer version wrote the log. It was left untouched.
    #[error("{} has format {found}, this version knows {known}; it was left untouched", path.display())]
    Newer {
        /// The log's file.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The newest format that this version reads.
        known: u32,
    },
    /// Somebody else could redirect or change what is kept there.
    #[error("{} is no safe place for state: {why}", path.display())]
    Unsafe {
        /// The file or directory.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The session has moved on: a record of this or a later revision is stored. Nothing of the batch
    /// was written.
    #[error("revision {given} of session {} is out of date: {known} is stored", brief(session))]
    Stale {
        /// The session.
        session: SessionId,
        /// The revision that is stored.
        known: u64,
        /// The revision that was to be written.
        given: u64,
    },
    /// Another holder has taken the place over since this store was opened. Nothing of the batch was
    /// written, and nothing of later ones will be.
    #[error("another holder, number {newest}, has taken the state over from number {token}")]
    Superseded {
        /// This holder's token.
        token: u64,
        /// The token of the newest holder.
        newest: u64,
    },
    /// The record is larger than any may be. Nothing of the batch was written.
    #[error("the record of session {} has {bytes} bytes, more than {limit}", brief(session))]
    TooLarge {
        /// The session.
        session: SessionId,
        /// The record's size.
        bytes: usize,
        /// The largest size.
        limit: usize,
    },
    /// The stored record is no session's memory as this version knows it.
    #[error("the record of session {} does not read", brief(session))]
    Unreadable {
        /// The session.
        session: SessionId,
        /// What does not fit.
        #[source]
        source: serde_json::Error,
    },
    /// The store was closed.
    #[error("the state store is closed")]
    Closed,
}

fn named(holder: Option<u32>) -> String {
    holder.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"))
}

/// A session's id as an error shows it: escaped, and never longer than a line.
fn brief(session: &SessionId) -> String {
    const SHOWN: usize = 60;
    let id = session.as_str();
    match id.char_indices().nth(SHOWN) {
        None => format!("{id:?}"),
        Some((end, _)) => format!("{:?}…", &id[..end]),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn an_error_shows_a_hostile_id_escaped_and_short() {
        let session = SessionId::new(format!("\u{1b}[2J\n{}", "x".repeat(1_000))).unwrap();
        let text = StateError::Stale { session, known: 2, given: 1 }.to_string();
        assert!(!text.contains('\u{1b}') && !text.contains('\n') && text.len() < 200, "{text}");
    }
}
