use std::io::{self, IsTerminal, Read};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use super::args::StdinMode;
use crate::client::command::Stdin;

/// More is no prompt: whoever has it can let the command read it itself.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// How long a pipe may stay silent before it is taken for one that nobody writes to.
const SILENCE: Duration = Duration::from_secs(3);

/// Why stdin cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub(super) enum InputError {
    /// There is too much of it.
    #[error("stdin has more than {} MiB: it cannot be replayed; use --stdin inherit", MAX_BYTES >> 20)]
    TooLarge,
    /// It cannot be read.
    #[error("cannot read stdin")]
    Read(#[source] io::Error),
}

/// What the command is to read; `note` is told when a silent pipe is given up.
pub(super) async fn take(mode: StdinMode, note: impl FnOnce()) -> Result<Stdin, InputError> {
    match mode {
        StdinMode::Null => Ok(Stdin::Null),
        StdinMode::Inherit => Ok(Stdin::Inherit),
        StdinMode::Auto if io::stdin().is_terminal() => Ok(Stdin::Null),
        StdinMode::Auto => collect(chunks(io::stdin()), Some(SILENCE), note).await,
        StdinMode::Replay => collect(chunks(io::stdin()), None, note).await,
    }
}

type Chunk = io::Result<Vec<u8>>;

/// Reads on a thread of its own: a read of a pipe cannot be taken back, and must not keep us from ending.
fn chunks(mut from: impl Read + Send + 'static) -> mpsc::Receiver<Chunk> {
    let (sender, receiver) = mpsc::channel(1);
    std::thread::spawn(move || {
        loop {
            let mut chunk = vec![0; 64 * 1024];
            let read = match from.read(&mut chunk) {
                Ok(0) => return,
                Ok(read) => Ok(read),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => Err(error),
            };
            let chunk = read.map(|read| {
                chunk.truncate(read);
                chunk
            });
            let is_last = chunk.is_err();
            if sender.blocking_send(chunk).is_err() || is_last {
                return;
            }
        }
    });
    receiver
}

async fn collect(
    mut chunks: mpsc::Receiver<Chunk>,
    silence: Option<Duration>,
    note: impl FnOnce(),
) -> Result<Stdin, InputError> {
    let first = match silence {
        None => chunks.recv().await,
        Some(limit) => match tokio::time::timeout(limit, chunks.recv()).await {
            Ok(first) => first,
            Err(_) => {
                note();
                return Ok(Stdin::Null);
            }
        },
    };
    let mut all = vec![];
    let mut next = first;
    while let Some(chunk) = next {
        all.extend(chunk.map_err(InputError::Read)?);
        if all.len() > MAX_BYTES {
            return Err(InputError::TooLarge);
        }
        next = chunks.recv().await;
    }
    Ok(if all.is_empty() { Stdin::Null } else { Stdin::Replay(Arc::from(all)) })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn everything_is_read_before_it_is_replayed() {
        let text = b"a prompt\n".repeat(20_000);
        let read = collect(chunks(io::Cursor::new(text.clone())), None, || panic!("not silent")).await;
        assert!(matches!(read, Ok(Stdin::Replay(bytes)) if *bytes == *text));
    }

    #[tokio::test(start_paused = true)]
    async fn a_pipe_that_nobody_writes_to_is_given_up() {
        let (_open, silent) = mpsc::channel(1);
        let mut told = false;
        let read = collect(silent, Some(SILENCE), || told = true).await;
        assert!(matches!(read, Ok(Stdin::Null)));
        assert!(told);
    }

    #[tokio::test]
    async fn more_than_can_be_kept_is_refused() {
        let read = collect(chunks(io::repeat(b'x')), None, || {}).await;
        assert!(matches!(read, Err(InputError::TooLarge)));
    }
}
