use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::future::poll_fn;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::Notify;

use super::agent::Agent;
use super::narrator::Voice;
use crate::actors::{Clock, SystemClock};
use crate::client::command::{
    ChildOutcome, Control, Exit, HookClient, Judgement, Outputs, StartError, Watch, judge, run,
};
use crate::failure::{Detection, Kind, LaneKey, Report};
use crate::policy::Turn;
use crate::{RecoveryEngine, ToReport};

/// How long a killed command's end is waited for.
const INSISTED: Duration = Duration::from_millis(400);

/// A try that did not work.
#[derive(Debug)]
pub(super) enum Failed {
    /// It failed, in this way.
    Turn(Box<Report>, Detection),
    /// A person stopped it.
    Cancelled,
}

impl Failed {
    pub fn report(&self) -> Report {
        match self {
            Self::Turn(report, _) => report.to_report(),
            Self::Cancelled => Report::cancelled(),
        }
    }

    /// What the engine's patterns make of it.
    pub fn found(&self) -> Detection {
        match self {
            Self::Turn(_, found) => found.clone(),
            Self::Cancelled => Detection::Cancelled,
        }
    }
}

/// Why the tries end without a verdict.
#[derive(Debug)]
pub(super) enum Left {
    /// SIGTERM: the episode stays open.
    Suspended,
    /// Ctrl-C before there was an episode.
    Cancelled,
    /// The command cannot be started.
    NotStarted(StartError),
}

type Child = Pin<Box<dyn Future<Output = Result<ChildOutcome, StartError>>>>;

/// The turns of one run: each try starts the command once.
pub(super) struct Turns<'r> {
    pub agent: &'r Agent,
    pub engine: &'r RecoveryEngine,
    pub voice: &'r Voice,
    pub control: &'r Control,
    pub hooks: Option<Arc<HookClient>>,
    pub lane: Option<LaneKey>,
    /// The kind of the last failure.
    pub kind: RefCell<Option<Kind>>,
    /// How the command ended last.
    pub exit: RefCell<Option<Exit>>,
    /// How often this run started it.
    pub tries: Cell<u32>,
    /// The command while it runs; it outlives the try that the deadline drops.
    child: RefCell<Option<Child>>,
    /// Names its group meanwhile.
    pub marker: Option<PathBuf>,
    running: Cell<bool>,
    left: RefCell<Option<Left>>,
    changed: Notify,
}

impl<'r> Turns<'r> {
    pub fn new(agent: &'r Agent, engine: &'r RecoveryEngine, voice: &'r Voice, control: &'r Control) -> Self {
        Self {
            agent,
            engine,
            voice,
            control,
            hooks: None,
            lane: None,
            kind: RefCell::default(),
            exit: RefCell::default(),
            tries: Cell::new(0),
            child: RefCell::default(),
            marker: None,
            running: Cell::new(false),
            left: RefCell::default(),
            changed: Notify::new(),
        }
    }

    /// One try.
    pub async fn one(&self, turn: &Turn) -> Result<(), Failed> {
        let mut spec = self.agent.spec(&self.agent.invocation(turn, self.kind.borrow().as_ref()));
        spec.dies_with_parent = true;
        spec.marker.clone_from(&self.marker);
        let watch = self.control.watch();
        let child = async move { run(&spec, Outputs::default(), watch).await };
        self.child.replace(Some(Box::pin(child)));
        let outcome = match self.while_running(poll_fn(|context| self.poll_child(context))).await {
            Ok(outcome) => outcome,
            Err(error) => match self.leave(Left::NotStarted(error)).await {},
        };
        self.tries.set(self.tries.get() + u32::from(outcome.exit != Exit::NotStarted));
        self.exit.replace(Some(outcome.exit.clone()));
        self.voice.heard(&outcome);
        match judge(&self.agent.rules, &outcome) {
            Judgement::Worked => Ok(()),
            Judgement::Cancelled => Err(Failed::Cancelled),
            Judgement::Suspended => match self.leave(Left::Suspended).await {},
            Judgement::Failed(report) => Err(self.failed(turn, &outcome, *report)),
        }
    }

    fn failed(&self, turn: &Turn, outcome: &ChildOutcome, mut report: Report) -> Failed {
        report.model = self.agent.model_of(turn).map(Into::into);
        report.lane.clone_from(&self.lane);
        let found = self.engine.pattern_registry().detect_first(&report, SystemClock.now());
        let error = found.failure();
        if let (Some(error), Some(hooks)) = (error, &self.hooks) {
            hooks.note_failure(&error.kind);
        }
        // Counted as the command counts: over all runs of the episode.
        self.voice.failed(turn.redo.saturating_add(1), outcome, error);
        self.kind.replace(error.map(|error| error.kind.clone()));
        Failed::Turn(Box::new(report), found)
    }

    fn poll_child(&self, context: &mut Context<'_>) -> Poll<Result<ChildOutcome, StartError>> {
        let mut child = self.child.borrow_mut();
        let Some(running) = child.as_mut() else { return Poll::Pending };
        let polled = running.as_mut().poll(context);
        if polled.is_ready() {
            child.take();
        }
        polled
    }

    /// Ends a command that the deadline found at work, in order: SIGTERM, and SIGKILL after the usual grace.
    pub async fn end_late(&self) {
        if self.child.borrow().is_none() {
            return;
        }
        self.control.suspend();
        if let Ok(outcome) = poll_fn(|context| self.poll_child(context)).await {
            self.tries.set(self.tries.get() + u32::from(outcome.exit != Exit::NotStarted));
            self.exit.replace(Some(outcome.exit));
        }
    }

    /// Kills a command that nobody waits for any more.
    pub fn kill(&self) {
        self.child.take();
    }

    async fn while_running<T>(&self, child: impl Future<Output = T>) -> T {
        /// Falls also when the deadline drops the try.
        struct Running<'a>(&'a Cell<bool>, &'a Notify);
        impl Drop for Running<'_> {
            fn drop(&mut self) {
                self.0.set(false);
                self.1.notify_one();
            }
        }
        self.running.set(true);
        let _until_it_ends = Running(&self.running, &self.changed);
        child.await
    }

    /// Ends the tries from inside one: whoever waits for [`left`](Self::left) drops this future.
    async fn leave(&self, why: Left) -> Infallible {
        self.left.replace(Some(why));
        self.changed.notify_one();
        std::future::pending().await
    }

    /// Resolves when there is nothing more to wait for: a try left, or between two tries something was asked
    /// from outside. While the command runs, the request is its to obey.
    pub async fn left(&self) -> Left {
        let mut watch: Watch = self.control.watch();
        loop {
            if let Some(why) = self.left.take() {
                return why;
            }
            let asked = watch.asked();
            let wanted = match (asked.cancels, asked.suspends) {
                (0, 0) => None,
                (0, _) => Some(Left::Suspended),
                _ => Some(Left::Cancelled),
            };
            let insists = asked.cancels + asked.suspends >= 2;
            match wanted {
                Some(why) if !self.running.get() => return why,
                // The command was killed; whoever does not take its last output is not waited for.
                Some(why) if insists => tokio::select! {
                    biased;
                    () = self.changed.notified() => {}
                    () = tokio::time::sleep(INSISTED) => return why,
                },
                _ => tokio::select! {
                    biased;
                    () = self.changed.notified() => {}
                    _ = watch.changed() => {}
                },
            }
        }
    }
}
