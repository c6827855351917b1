use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::Instant;

use super::ending::Activity;
use super::tail::Tail;
use super::{Captured, Output};

/// The size of a pipe's buffer: more than that is never there at once.
const CHUNK: usize = 64 * 1024;

/// How long to wait before writing again to an output that somebody made non-blocking.
const BUSY: Duration = Duration::from_millis(2);

/// What the streams of one child have done so far.
#[derive(Debug)]
pub(super) struct Meter {
    start: Instant,
    last_micros: AtomicU64,
    pub(super) stdout: StreamMeter,
    pub(super) stderr: StreamMeter,
}

#[derive(Debug, Default)]
pub(super) struct StreamMeter {
    read: AtomicU64,
    blocked: AtomicBool,
}

impl StreamMeter {
    /// The number of bytes read.
    pub(super) fn read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }
}

impl Meter {
    pub(super) fn start() -> Self {
        Self {
            start: Instant::now(),
            last_micros: AtomicU64::new(0),
            stdout: StreamMeter::default(),
            stderr: StreamMeter::default(),
        }
    }

    /// The time since the start.
    pub(super) fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// The moment this long after the start.
    pub(super) fn at(&self, since_start: Duration) -> Instant {
        self.start + since_start
    }

    pub(super) fn activity(&self) -> Activity {
        let blocked = [&self.stdout, &self.stderr].iter().any(|stream| stream.blocked.load(Ordering::Relaxed));
        Activity { last: Duration::from_micros(self.last_micros.load(Ordering::Relaxed)), blocked }
    }

    fn touch(&self) {
        let micros = u64::try_from(self.now().as_micros()).unwrap_or(u64::MAX);
        self.last_micros.store(micros, Ordering::Relaxed);
    }
}

type Sink = Box<dyn Write + Send>;

/// Reads one stream to its end, passes it on and keeps its tail.
pub(super) struct Pump<R> {
    reader: Option<R>,
    sink: Option<Sink>,
    sink_closed: bool,
    tail: Tail,
}

impl<R: AsyncRead + Unpin> Pump<R> {
    /// `own` is the parent's stream of the same name.
    pub(super) fn new(reader: Option<R>, output: Output, own: impl AsFd, keep: usize) -> Self {
        let sink = match output {
            Output::Pass => Some(unbuffered(own)),
            Output::PassToStderr => Some(unbuffered(io::stderr())),
            Output::Discard => None,
            Output::Writer(writer) => Some(Ok(writer)),
        };
        let sink_closed = matches!(sink, Some(Err(_)));
        Self { reader, sink: sink.and_then(Result::ok), sink_closed, tail: Tail::new(keep) }
    }

    /// Runs until the stream ends.
    ///
    /// # Cancellation
    ///
    /// Everything read so far is in the tail; the last chunk may still be on its way to the sink.
    pub(super) async fn run(&mut self, meter: &Meter, stream: &StreamMeter) {
        let Some(reader) = &mut self.reader else { return };
        let mut chunk = Vec::with_capacity(CHUNK);
        loop {
            chunk.clear();
            match reader.read_buf(&mut chunk).await {
                Ok(0) | Err(_) => return,
                Ok(read) => stream.read.fetch_add(read as u64, Ordering::Relaxed),
            };
            meter.touch();
            self.tail.push(&chunk);
            let Some(mut sink) = self.sink.take() else { continue };
            stream.blocked.store(true, Ordering::Relaxed);
            let written = tokio::task::spawn_blocking(move || {
                let result = write_fully(&mut sink, &chunk);
                (sink, chunk, result)
            });
            match written.await {
                Ok((sink, back, Ok(()))) => (self.sink, chunk) = (Some(sink), back),
                // The child goes on: its work counts even when nobody reads along.
                Ok((_, back, Err(_))) => (self.sink_closed, chunk) = (true, back),
                Err(_panicked) => (self.sink_closed, chunk) = (true, Vec::with_capacity(CHUNK)),
            }
            stream.blocked.store(false, Ordering::Relaxed);
            meter.touch();
        }
    }

    pub(super) fn finish(self) -> Captured {
        let (mut tail, bytes) = self.tail.finish();
        if bytes > tail.len() as u64 {
            without_cut_line(&mut tail);
        }
        Captured { tail, bytes, sink_closed: self.sink_closed }
    }
}

/// Drops the rest of a line whose start is gone: the end of a secret there could not be told.
fn without_cut_line(tail: &mut Vec<u8>) {
    /// A longer line is rather kept in part.
    const LONGEST: usize = 4 * 1024;
    if let Some(end) = tail.iter().take(LONGEST).position(|byte| *byte == b'\n') {
        tail.drain(..=end);
    }
}

/// A second handle to one of the parent's own streams, without the buffer of [`io::stdout`].
fn unbuffered(own: impl AsFd) -> io::Result<Sink> {
    Ok(Box::new(File::from(own.as_fd().try_clone_to_owned()?)))
}

fn write_fully(sink: &mut Sink, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match sink.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // Whoever shares our terminal or pipe may have made it non-blocking for everybody.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::thread::sleep(BUSY),
            Err(error) => return Err(error),
        }
    }
    sink.flush()
}
