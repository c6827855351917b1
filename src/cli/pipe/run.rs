use std::future::poll_fn;
use std::io::{self, Write};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

use super::answer::{self, Answer};
use super::args::PipeArgs;
use super::lines::{Line, Lines, MAX_LINE};
use super::permits::Permits;
use super::request::{Ask, Refusal, Request, parse};
use super::serve::Server;
use crate::cli::{Exit, Globals, config, output};
use crate::client::command::{Asked, Control, listen};
use crate::engine::StartError;
use crate::state::StateError;
use crate::{EngineError, RecoveryConfig, RecoveryEngine};

/// Requests that may be under way at once; more lines wait to be read.
const IN_FLIGHT: usize = 1_024;

/// Callers that may wait for a lane at once; more are refused, or their `release` could not be read.
const WAITING: usize = 8_192;

/// Answers that may wait to be written.
const UNWRITTEN: usize = 1_024;

/// How long threads that are stuck in a read or a write may keep the program from ending.
const LAST_MOMENT: Duration = Duration::from_millis(200);

/// Runs the verb.
pub(in crate::cli) fn run(args: &PipeArgs, globals: &Globals) -> Exit {
    let config = match config::read(globals).and_then(config::build) {
        Ok(config) => config,
        Err(exit) => return exit,
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            output::error(&error);
            return Exit::Failed;
        }
    };
    let exit = runtime.block_on(serve(args, globals, config));
    runtime.shutdown_timeout(LAST_MOMENT);
    exit
}

async fn serve(args: &PipeArgs, globals: &Globals, config: RecoveryConfig) -> Exit {
    let control = Control::new();
    if let Err(error) = listen(&control) {
        output::error(&error);
        return Exit::Failed;
    }
    let keeps = config.persist_state() && !args.no_state;
    let builder = RecoveryEngine::builder().config(config);
    let builder = if keeps { builder.state_dir(&globals.state_dir) } else { builder.in_memory() };
    let engine = match builder.spawn().await {
        Ok(engine) => engine,
        Err(error) => {
            output::error(&error);
            return match error {
                StartError::State(StateError::Locked { .. }) => Exit::Busy,
                StartError::State(_) => Exit::State,
                _ => Exit::Failed,
            };
        }
    };
    let server = Arc::new(Server { engine, permits: Permits::default(), explain: args.explain });
    let (answers, mut writing) = write_out();
    let mut watch = control.watch();
    let mut requests = Requests::new(server.clone(), answers);
    let end = tokio::select! {
        biased;
        asked = watch.first() => End::Asked(asked),
        _ = &mut writing => End::NobodyReads,
        () = requests.take_all() => End::OfInput,
    };
    if matches!(end, End::OfInput) {
        tokio::select! {
            biased;
            _ = &mut writing => {}
            () = requests.drain() => {}
            _ = watch.first() => {}
        }
    }
    // Whoever still waits is told so by this, and it reaches the output before that is closed.
    tokio::select! {
        biased;
        _ = server.engine.shutdown() => {}
        () = async { while !insists(watch.changed().await) {} } => {}
    }
    if !writing.is_finished() {
        let last_words = async {
            requests.drain().await;
            drop(requests);
            let _written = writing.await;
        };
        let _stuck = tokio::time::timeout(Duration::from_secs(1), last_words).await;
    }
    match end {
        End::OfInput => Exit::Done,
        End::NobodyReads => {
            output::note("error: nobody reads the answers any more; open episodes stay open");
            Exit::Failed
        }
        End::Asked(asked) if asked.cancels > 0 => Exit::Cancelled,
        End::Asked(_) => Exit::Suspended,
    }
}

enum End {
    OfInput,
    NobodyReads,
    Asked(Asked),
}

fn insists(asked: Asked) -> bool {
    asked.cancels + asked.suspends >= 2
}

/// Writes answers in the order of their coming, a flush for each burst; ends when nobody reads them.
fn write_out() -> (mpsc::Sender<Answer>, tokio::task::JoinHandle<()>) {
    let (sender, mut answers) = mpsc::channel::<Answer>(UNWRITTEN);
    let writing = tokio::task::spawn_blocking(move || {
        let mut out = io::BufWriter::with_capacity(64 * 1024, io::stdout().lock());
        let mut write = |answer: Answer, more: bool| -> io::Result<()> {
            serde_json::to_writer(&mut out, &Value::Object(answer))?;
            out.write_all(b"\n")?;
            if more { Ok(()) } else { out.flush() }
        };
        while let Some(answer) = answers.blocking_recv() {
            if write(answer, !answers.is_empty()).is_err() {
                return;
            }
        }
    });
    (sender, writing)
}

struct Requests {
    server: Arc<Server>,
    answers: mpsc::Sender<Answer>,
    running: JoinSet<()>,
    in_flight: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
}

impl Requests {
    fn new(server: Arc<Server>, answers: mpsc::Sender<Answer>) -> Self {
        let room = |places| Arc::new(Semaphore::new(places));
        Self { server, answers, running: JoinSet::new(), in_flight: room(IN_FLIGHT), waiting: room(WAITING) }
    }

    /// Takes lines until the input ends, or the host asks for it.
    async fn take_all(&mut self) {
        let mut lines = Lines::new(tokio::io::BufReader::with_capacity(64 * 1024, tokio::io::stdin()));
        while let Some(line) = lines.next().await {
            let number = lines.number;
            let parsed = match line {
                Line::Text(text) if text.trim_ascii().is_empty() => continue,
                Line::Text(text) => parse(&text),
                Line::TooLong => Err(Refusal {
                    id: None,
                    session: None,
                    code: "too_long",
                    message: format!("the line has more than {} MiB", MAX_LINE >> 20),
                    help: "report the failure alone, not the conversation",
                }),
            };
            let is_last = matches!(parsed, Ok(Request { ask: Ask::Shutdown, .. }));
            self.take(parsed, number).await;
            if is_last {
                return;
            }
            while self.running.try_join_next().is_some() {}
        }
    }

    async fn take(&mut self, parsed: Result<Request, Refusal>, line: u64) {
        let Request { id, ask } = match parsed {
            Ok(request) => request,
            Err(refused) => return self.refuse(refused, line).await,
        };
        // Whoever waits for a lane must not keep the line from being read that opens it.
        let place = if matches!(ask, Ask::Admit { .. }) {
            match Arc::clone(&self.waiting).try_acquire_owned() {
                Ok(place) => Some(place),
                Err(_) => return self.refuse(Refusal { id, ..Refusal::of(EngineError::Busy) }, line).await,
            }
        } else {
            Arc::clone(&self.in_flight).acquire_owned().await.ok()
        };
        let answers = self.answers.clone();
        let answered = Arc::clone(&self.server).answer(ask);
        let mut whole = Box::pin(async move {
            let answer = match answered.await {
                Ok(answer) => marked(answer, id),
                Err(refused) => marked(answer::refusal(refused, line), id),
            };
            let _nobody_reads = answers.send(answer).await;
            drop(place);
        });
        // Polled once here, in the order of the lines: so each session hears things in the order they were said.
        let done = poll_fn(|context| Poll::Ready(whole.as_mut().poll(context).is_ready())).await;
        if !done {
            self.running.spawn(whole);
        }
    }

    async fn refuse(&self, refused: Refusal, line: u64) {
        let id = refused.id.clone();
        let _nobody_reads = self.answers.send(marked(answer::refusal(refused, line), id)).await;
    }

    /// Waits until everything is answered.
    async fn drain(&mut self) {
        while self.running.join_next().await.is_some() {}
    }
}

/// The answer under the host's own mark, which comes first.
fn marked(answer: Answer, id: Option<Value>) -> Answer {
    let mark = id.map(|id| ("id".to_owned(), id));
    mark.into_iter().chain(answer).collect()
}
