//! A stage for tests of the machine: failures, plans, and a session that is led through events while its
//! commands are written down.

use std::sync::Arc;
use std::time::Duration;

use super::{Carrier, Command, Event, Fence, Looked, Moment, Note, NoteKind, Plan, Redo, Redoer};
use crate::failure::{
    Category, Details, Domain, ErrorSeverity, Kind, LaneKey, RecoveryAction, RecoveryError, SessionId, Timestamp,
};
use crate::policy::config::BUILT_IN_STRATEGIES;
use crate::policy::session::{Refusal, SessionMemory};
use crate::policy::{Answer, Chain, ChainKey, Layer, Limits, Origin, RecoveryConfig, Remedy, Step, Verdict, seed};

/// When every test begins.
pub(crate) const START: Timestamp = Timestamp::from_millis(1_000_000);

pub(crate) const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

pub(crate) fn session() -> SessionId {
    SessionId::new("agent-7").expect("it is not empty")
}

/// A failure of this kind at [`START`], without a lane.
pub(crate) fn failure(kind: Kind) -> RecoveryError {
    RecoveryError {
        category: kind.usual_category().unwrap_or(Category::SessionError),
        fingerprint: kind.as_str().bytes().fold(0, |print, byte| seed::mix(print, byte.into())),
        kind,
        message: "it failed".into(),
        domain: Domain::Environment,
        severity: ErrorSeverity::Medium,
        retryable: true,
        recoverable: true,
        suggested_action: RecoveryAction::Retry,
        diagnosis: "it failed".into(),
        details: Details::default(),
        pattern: "test".into(),
        lane: None,
        model: None,
        tool: None,
        timestamp: START,
        raw: None,
    }
}

/// The same on a lane.
pub(crate) fn failure_on_lane(kind: Kind) -> RecoveryError {
    RecoveryError { lane: Some(LaneKey::new("acme/large")), ..failure(kind) }
}

/// A category's chain as a user writes it: the facts of R17 do not touch it.
pub(crate) fn chain(category: Category, steps: &[&str]) -> Chain {
    let steps = steps.iter().map(|name| Step::new(*name)).collect();
    let origin = Origin { layer: Layer::File, place: Some("recovery.yaml:2:3".into()) };
    Chain { key: ChainKey::Category(category), steps, enabled: true, origin }
}

/// A kind's chain as a user writes it.
pub(crate) fn kinds_chain(kind: Kind, steps: &[&str]) -> Chain {
    Chain { key: ChainKey::Kind(kind), ..chain(Category::SessionError, steps) }
}

/// A plan with these chains over the built-in ones; the built-in strategies only compute.
pub(crate) fn plan_of(chains: impl IntoIterator<Item = Chain>, limits: Limits) -> Plan {
    Plan {
        config: Arc::new(RecoveryConfig::with_chains(chains, limits)),
        computing: Arc::new(BUILT_IN_STRATEGIES.iter().map(|name| (*name).into()).collect()),
    }
}

pub(crate) fn plan(chains: impl IntoIterator<Item = Chain>) -> Plan {
    plan_of(chains, Limits::default())
}

/// A session on stage: records are durable at once, everything else waits to be told.
pub(crate) struct Scene {
    pub memory: SessionMemory,
    pub plan: Plan,
    pub now: Timestamp,
    /// Every command so far, but for records of attempts and verdicts.
    pub trace: Vec<String>,
    pub notes: Vec<Note>,
    pub verdict: Option<Verdict>,
    pub redo: Option<Redo>,
    /// Whether the disk is slow: records wait in `unwritten` until they are told to be durable.
    pub slow_disk: bool,
    pub unwritten: Vec<Event>,
    wait: Option<(Timestamp, u32)>,
    asked: u32,
}

impl Scene {
    pub(crate) fn new(plan: Plan) -> Self {
        let (memory, trace, notes) = (SessionMemory::default(), vec![], vec![]);
        Self {
            memory,
            plan,
            now: START,
            trace,
            notes,
            verdict: None,
            redo: None,
            slow_disk: false,
            unwritten: vec![],
            wait: None,
            asked: 0,
        }
    }

    /// A session whose first failure has just been reported.
    pub(crate) fn opened(plan: Plan, redoer: Redoer, error: RecoveryError) -> Self {
        let mut scene = Self::new(plan);
        scene.open(redoer, error, None).expect("the failure has a chain");
        scene
    }

    /// Reports a failure that opens an episode, if the session's memory lets it.
    pub(crate) fn open(
        &mut self,
        redoer: Redoer,
        error: RecoveryError,
        deadline: Option<Duration>,
    ) -> Result<(), Refusal> {
        self.verdict = None;
        let at = Moment { now: self.now, seed: 7 };
        let deadline = deadline.map(|span| self.now + span);
        let error = Arc::new(RecoveryError { timestamp: self.now, ..error });
        let commands = self.memory.open(&session(), error, redoer, Some(1), deadline, &self.plan, at)?;
        self.follow(commands);
        Ok(())
    }

    pub(crate) fn send(&mut self, event: Event) -> &mut Self {
        let commands = self.memory.on(event, &self.plan, self.now);
        self.follow(commands);
        self
    }

    /// Writes commands down, and makes their records durable.
    pub(crate) fn follow(&mut self, commands: Vec<Command>) {
        if let Some(episode) = self.memory.episode_mut() {
            self.notes.extend(episode.take_notes());
        }
        for command in commands {
            match command {
                Command::Persist { seq, record } if self.slow_disk => {
                    self.unwritten.push(Event::Persisted { seq, record });
                }
                Command::Persist { seq, record } => {
                    self.send(Event::Persisted { seq, record });
                }
                Command::Execute(attempt) => {
                    self.trace.push(format!("{} {}", attempt.plan.strategy, attempt.attempt));
                }
                Command::Wait { until, epoch } => {
                    self.wait = Some((until, epoch));
                    self.trace.push(format!("wait {}", until.since(self.now).as_secs_f64()));
                }
                Command::AskLane { lane, epoch } => {
                    self.asked = epoch;
                    self.trace.push(format!("ask {}", lane.as_str()));
                }
                Command::Carry { remedy, .. } => self.trace.push(format!("carry {}", remedy.name())),
                Command::Redo(redo) => {
                    let remedy = redo.remedy.as_ref().map_or(String::new(), |remedy| format!(" {}", remedy.name()));
                    self.trace.push(format!("redo {}{remedy}", redo.turn.redo));
                    self.redo = Some(*redo);
                }
                Command::Finish(verdict) => {
                    self.trace.push(verdict.to_string());
                    self.verdict = Some(verdict);
                    self.memory.close();
                }
            }
        }
    }

    pub(crate) fn seq(&self) -> u64 {
        self.memory.fence().seq
    }

    pub(crate) fn fence(&self) -> Fence {
        self.memory.fence()
    }

    pub(crate) fn answer(&mut self, answer: Answer) -> &mut Self {
        let seq = self.seq();
        self.send(Event::Answered { seq, answer, injections: vec![] })
    }

    pub(crate) fn retry(&mut self, delay: Duration) -> &mut Self {
        self.answer(Answer::retry(delay, "again"))
    }

    pub(crate) fn success(&mut self) -> &mut Self {
        self.answer(Answer::success("done"))
    }

    pub(crate) fn success_with(&mut self, remedy: Remedy) -> &mut Self {
        self.answer(Answer::success_with("to be done", remedy))
    }

    pub(crate) fn next(&mut self) -> &mut Self {
        self.answer(Answer::next_strategy("no help"))
    }

    /// Lets the last wait pass.
    pub(crate) fn elapse(&mut self) -> &mut Self {
        let (until, epoch) = self.wait.take().expect("something waits");
        self.now = self.now.max(until);
        self.send(Event::DelayElapsed { epoch })
    }

    pub(crate) fn pass(&mut self, span: Duration) -> &mut Self {
        self.now = self.now + span;
        self
    }

    pub(crate) fn lane_opens(&mut self) -> &mut Self {
        let epoch = self.asked;
        self.send(Event::LaneOpen { epoch })
    }

    pub(crate) fn lane_closed_for(&mut self, span: Duration) -> &mut Self {
        let (epoch, until) = (self.asked, self.now + span);
        self.send(Event::LaneClosed { epoch, until })
    }

    pub(crate) fn carried(&mut self, by: Carrier) -> &mut Self {
        let seq = self.seq();
        self.send(Event::Carried { seq, by })
    }

    pub(crate) fn remedy_fails(&mut self, reason: &str) -> &mut Self {
        let seq = self.seq();
        self.send(Event::RemedyFailed { seq, reason: reason.into() })
    }

    pub(crate) fn worked(&mut self) -> &mut Self {
        let seq = self.seq();
        self.send(Event::TurnWorked { seq })
    }

    pub(crate) fn fails(&mut self, error: RecoveryError) -> &mut Self {
        let (seq, error) = (self.seq(), Arc::new(RecoveryError { timestamp: self.now, ..error }));
        self.send(Event::Reported { seq, error: Some(error) })
    }

    /// A crash: what was written is read again, and nothing else is left.
    pub(crate) fn crash(&mut self, written: &str, redoer: Redoer) -> &mut Self {
        self.crash_and_look(written, redoer, Looked::Unknown)
    }

    pub(crate) fn crash_and_look(&mut self, written: &str, redoer: Redoer, looked: Looked) -> &mut Self {
        self.memory = serde_json::from_str(written).expect("the machine wrote it");
        self.trace.push("crash".into());
        let commands = self.memory.resume(redoer, looked, &self.plan, self.now);
        self.follow(commands);
        self
    }

    /// What the log holds now.
    pub(crate) fn written(&self) -> String {
        serde_json::to_string(&self.memory.snapshot()).expect("it has no value that JSON lacks")
    }

    /// Whether a decision of this kind was noted, its text in Debug form holding `words`.
    pub(crate) fn noted(&self, words: &str) -> bool {
        self.notes.iter().any(|note| format!("{:?}", note.what).contains(words))
    }

    pub(crate) fn note_names(&self) -> Vec<String> {
        let name = |note: &Note| match &note.what {
            NoteKind::ChainChosen { chain, .. } => format!("chain {chain}"),
            NoteKind::Answered { strategy, attempt, status, .. } => format!("{strategy} {attempt}: {status}"),
            NoteKind::FailedAgain { kind } => format!("failed: {kind}"),
            NoteKind::Ended { verdict } => verdict.to_string(),
            _ => String::new(),
        };
        self.notes.iter().map(name).filter(|name| !name.is_empty()).collect()
    }
}
