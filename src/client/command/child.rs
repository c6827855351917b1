use std::future::Future;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::pin::Pin;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::process::{ChildStdin, Command};
use tokio::time::{Instant, sleep_until};

use super::ending::{Ending, Send};
use super::group::Group;
use super::guard::Guard;
use super::leftovers::Marker;
use super::pump::{Meter, Pump, StreamMeter};
use super::{ChildOutcome, ChildSpec, EndedBy, Exit, Outputs, StartError, Stdin, Watch};

/// How often the streams are looked at once the time to drain them is over.
const LOOK: Duration = Duration::from_millis(10);

/// Runs a command once, to its end.
///
/// The child leads a process group of its own, and every signal goes to the whole group. Its output is
/// passed on as it comes; when the parent's own output is closed, the child is read on all the same.
/// A child that exceeds a limit, or is suspended, gets SIGTERM, then SIGKILL; one that is cancelled gets
/// SIGINT first. What is left of a group that was ended, or whose leader was killed by somebody else,
/// is ended too; processes that a child leaves behind on purpose are left alone, and the streams that
/// they keep open are not waited for longer than [`Limits::drain`](super::Limits::drain).
///
/// When something has been asked of `watch` already, nothing is started ([`Exit::NotStarted`]).
///
/// # Errors
///
/// [`StartError`]; then nothing is running.
///
/// # Cancellation
///
/// Dropping the future kills the child's group.
///
/// # Panics
///
/// Outside of a tokio runtime with I/O and time enabled.
///
/// # Examples
///
/// ```
/// use backstop::client::command::{ChildSpec, Control, Exit, Outputs, run};
///
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// let spec = ChildSpec::new("sh", ["-c", "echo hello; exit 3"]);
/// let outcome = run(&spec, Outputs::discard(), Control::new().watch()).await?;
/// assert_eq!(outcome.exit, Exit::Code(3));
/// assert_eq!(outcome.stdout.text(), "hello\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub async fn run(spec: &ChildSpec, outputs: Outputs, mut watch: Watch) -> Result<ChildOutcome, StartError> {
    if let Some(ended_by) = already_asked(&watch) {
        return Ok(ChildOutcome::not_started(ended_by));
    }
    let failed = |source| StartError::of(spec, source);
    let guard = Guard::of(spec);
    let mut child = command(spec, guard.as_ref()).spawn().map_err(failed)?;
    let mut group = Group::of(&child).ok_or_else(|| failed(io::ErrorKind::NotFound.into()))?;
    // Without it a killed run leaves more behind, which is no reason not to run.
    let marker = spec.marker.as_ref().and_then(|path| Marker::set(path, &group).ok());
    let limits = spec.limits;
    let meter = Meter::start();
    let mut ending = Ending::new(limits);

    let marks = Marks::new(child.stdout.as_ref(), child.stderr.as_ref());
    let mut stdout = Pump::new(child.stdout.take(), outputs.stdout, io::stdout(), limits.tail_bytes);
    let mut stderr = Pump::new(child.stderr.take(), outputs.stderr, io::stderr(), limits.tail_bytes);
    let input = feed(child.stdin.take(), &spec.stdin);
    let streams = async { tokio::join!(stdout.run(&meter, &meter.stdout), stderr.run(&meter, &meter.stderr)) };
    let mut io = Traffic::new(async {
        tokio::select! {
            biased;
            _ = streams => {}
            () = async { input.await; std::future::pending().await } => {}
        }
    });

    let status = loop {
        let due = ending.due(meter.now(), meter.activity()).map(|due| meter.at(due));
        let send = tokio::select! {
            biased;
            status = child.wait() => break status.map_err(failed)?,
            asked = watch.changed() => ending.ask(asked, meter.now()),
            () = io.flow() => None,
            () = at(due) => None,
        };
        let send = send.or_else(|| ending.tick(meter.now(), meter.activity()));
        if let Some(send) = send {
            group.send(send);
        }
    };
    group.reaped();
    if let Some(source) = guard.and_then(Guard::failure) {
        return Err(failed(source));
    }
    let duration = meter.now();
    let exit = Exit::from(status);

    if ending.cause() != EndedBy::Own || matches!(exit, Exit::Signal(_)) {
        if ending.cause() == EndedBy::Own {
            group.send(Send::Terminate);
        }
        io.during(group.end_leftovers(limits.grace)).await;
    }
    drop(marker);
    drain(&mut io, &meter, marks, &mut watch, limits.drain).await;
    drop(io);
    let (ended_by, limit) = (ending.cause(), ending.limit());
    Ok(ChildOutcome { exit, ended_by, limit, stdout: stdout.finish(), stderr: stderr.finish(), duration })
}

fn already_asked(watch: &Watch) -> Option<EndedBy> {
    let asked = watch.asked();
    match (asked.cancels, asked.suspends) {
        (0, 0) => None,
        (0, _) => Some(EndedBy::Suspended),
        _ => Some(EndedBy::Cancelled),
    }
}

fn command(spec: &ChildSpec, guard: Option<&Guard>) -> Command {
    let mut command = guard.map_or_else(
        || {
            let mut command = Command::new(&spec.program);
            command.args(&spec.args);
            command
        },
        |guard| guard.command(spec),
    );
    command.process_group(0).kill_on_drop(true).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.stdin(match spec.stdin {
        Stdin::Null => Stdio::null(),
        Stdin::Inherit => Stdio::inherit(),
        Stdin::Replay(_) => Stdio::piped(),
    });
    if let Some(directory) = &spec.directory {
        command.current_dir(directory);
    }
    for (name, value) in &spec.env {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
}

/// Writes the whole input and closes it. A child may end, or close its stdin, without reading it.
fn feed(pipe: Option<ChildStdin>, stdin: &Stdin) -> impl Future<Output = ()> + use<> {
    let bytes: Arc<[u8]> = match stdin {
        Stdin::Replay(bytes) => Arc::clone(bytes),
        Stdin::Null | Stdin::Inherit => Arc::default(),
    };
    async move {
        if let Some(mut pipe) = pipe {
            let _not_wanted = pipe.write_all(&bytes).await;
        }
    }
}

async fn at(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

/// Everything that flows between parent and child, as one future that is polled beside others.
struct Traffic<F> {
    future: Pin<Box<F>>,
    ended: bool,
}

impl<F: Future<Output = ()>> Traffic<F> {
    fn new(future: F) -> Self {
        Self { future: Box::pin(future), ended: false }
    }

    /// Resolves once, when both streams have ended.
    async fn flow(&mut self) {
        if self.ended {
            return std::future::pending().await;
        }
        self.future.as_mut().await;
        self.ended = true;
    }

    /// Lets the streams flow while something else is waited for.
    async fn during<T>(&mut self, other: impl Future<Output = T>) -> T {
        tokio::pin!(other);
        loop {
            tokio::select! {
                biased;
                done = &mut other => return done,
                () = self.flow() => {}
            }
        }
    }
}

/// Second handles to the pipes, to see how much the child left in them when it ended.
struct Marks {
    stdout: Option<OwnedFd>,
    stderr: Option<OwnedFd>,
}

impl Marks {
    fn new(stdout: Option<&impl AsFd>, stderr: Option<&impl AsFd>) -> Self {
        let copy = |fd: std::os::fd::BorrowedFd<'_>| fd.try_clone_to_owned().ok();
        Self { stdout: stdout.and_then(|fd| copy(fd.as_fd())), stderr: stderr.and_then(|fd| copy(fd.as_fd())) }
    }

    /// The number of bytes after which a stream holds nothing more of the child's own.
    fn last_own_byte(pipe: Option<&OwnedFd>, stream: &StreamMeter) -> u64 {
        let waiting = pipe.and_then(|pipe| rustix::io::ioctl_fionread(pipe).ok()).unwrap_or(0);
        stream.read() + waiting
    }
}

/// Reads until both streams end. When other processes keep them open, `limit` bounds the wait, but
/// nothing that the child itself wrote is lost, however slowly it is taken from us.
async fn drain<F>(io: &mut Traffic<F>, meter: &Meter, marks: Marks, watch: &mut Watch, limit: Duration)
where
    F: Future<Output = ()>,
{
    let stdout = Marks::last_own_byte(marks.stdout.as_ref(), &meter.stdout);
    let stderr = Marks::last_own_byte(marks.stderr.as_ref(), &meter.stderr);
    drop(marks);
    let mut next = Instant::now() + limit;
    while !io.ended {
        tokio::select! {
            biased;
            _ = watch.changed() => return,
            () = sleep_until(next) => {
                let all_own = meter.stdout.read() >= stdout && meter.stderr.read() >= stderr;
                if all_own && !meter.activity().blocked {
                    return;
                }
                next = Instant::now() + LOOK;
            }
            () = io.flow() => {}
        }
    }
}
