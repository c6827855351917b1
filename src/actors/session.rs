//! The actor of one active session: a thin shell around its memory and chain machine.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::admission::Permit;
use super::desk::{Desk, ReplyTo, Running, Waiter, Wants};
use super::messages::{EpisodeStatus, SaveAck, SessionMsg, SessionStatus};
use super::outcome::{EngineError, Outcome, Told};
use super::remembered::Stored;
use super::session_supervisor::SupervisorMsg;
use super::shared::Shared;
use crate::failure::SessionId;
use crate::policy::machine::{Command, Event, Plan, Record};
use crate::policy::session::SessionMemory;

pub(crate) struct SessionActor;

pub(crate) struct SessionArgs {
    pub id: SessionId,
    pub desk: Arc<Desk>,
    pub shared: Arc<Shared>,
    pub incarnation: u64,
}

pub(crate) struct SessionState {
    pub id: SessionId,
    pub desk: Arc<Desk>,
    pub shared: Arc<Shared>,
    incarnation: u64,
    pub memory: SessionMemory,
    pub revision: u64,
    /// The memory has changed and nobody waits for its record: one is made at the end of what is done now.
    pub is_unsaved: bool,
    /// The current redo, for those who join or come late (R8).
    pub directive: Option<Told>,
    /// How the last episode ended, as long as the actor lives.
    pub last: Option<Arc<Outcome>>,
    pub wait: Timer,
    pub deadline: Timer,
    idle: Timer,
    /// When the last message came.
    active: Instant,
    /// The engine shuts down: the session's last words were said.
    pub suspended: bool,
    started: bool,
}

/// A timer whose message is not sent once it is dropped or set anew.
#[derive(Default)]
pub(crate) struct Timer(Option<AbortHandle>);

impl Timer {
    pub fn set(&mut self, me: &ActorRef<SessionMsg>, delay: Duration, message: SessionMsg) {
        self.stop();
        let me = me.clone();
        let task = tokio::spawn(async move {
            tokio::time::sleep(delay).await;
            let _ = me.send_message(message);
        });
        self.0 = Some(task.abort_handle());
    }

    pub fn stop(&mut self) {
        if let Some(task) = self.0.take() {
            task.abort();
        }
    }

    fn is_set(&self) -> bool {
        self.0.is_some()
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Actor for SessionActor {
    type Msg = SessionMsg;
    type State = SessionState;
    type Arguments = SessionArgs;

    /// Only takes its place: what fails before the actor is linked is seen by nobody.
    async fn pre_start(
        &self,
        _: ActorRef<SessionMsg>,
        SessionArgs { id, desk, shared, incarnation }: SessionArgs,
    ) -> Result<SessionState, ActorProcessingErr> {
        Ok(SessionState {
            id,
            desk,
            shared,
            incarnation,
            memory: SessionMemory::default(),
            revision: 0,
            is_unsaved: false,
            directive: None,
            last: None,
            wait: Timer::default(),
            deadline: Timer::default(),
            idle: Timer::default(),
            active: Instant::now(),
            suspended: false,
            started: false,
        })
    }

    async fn post_start(&self, me: ActorRef<SessionMsg>, state: &mut SessionState) -> Result<(), ActorProcessingErr> {
        state.started = true;
        let desk = Arc::clone(&state.desk);
        let serving = desk.serving();
        if *serving != state.incarnation {
            me.stop(None);
            return Ok(());
        }
        (state.memory, state.revision) = remembered(&state.shared, &state.id);
        state.go_on_after_failure(&me);
        state.watch_idleness(&me);
        // Mail that came for the one before, whose waking it did not hear.
        while let Some(message) = state.desk.pop() {
            state.take(&me, message);
        }
        state.save_if_due();
        drop(serving);
        Ok(())
    }

    async fn handle(
        &self,
        me: ActorRef<SessionMsg>,
        message: SessionMsg,
        state: &mut SessionState,
    ) -> Result<(), ActorProcessingErr> {
        let desk = Arc::clone(&state.desk);
        let serving = desk.serving();
        if *serving != state.incarnation {
            me.stop(None);
            return Ok(());
        }
        let message = match message {
            SessionMsg::Wake => state.desk.pop(),
            message => Some(message),
        };
        if let Some(message) = message {
            if !matches!(message, SessionMsg::Idle) {
                state.active = Instant::now();
            }
            state.take(&me, message);
            state.save_if_due();
        }
        drop(serving);
        Ok(())
    }
}

impl Drop for SessionState {
    fn drop(&mut self) {
        // Its supervisor was going when it came: the next one sees to the session.
        if !self.started
            && self.shared.end().is_none()
            && let Some(supervisor) = self.shared.sessions()
        {
            let (session, incarnation) = (self.id.clone(), self.incarnation);
            let _ = supervisor.send_message(SupervisorMsg::NotStarted { session, incarnation });
        }
    }
}

/// The session's newest memory; one that cannot be read counts as none, aloud.
fn remembered(shared: &Shared, id: &SessionId) -> (SessionMemory, u64) {
    let Some(stored) = shared.stored.get(id).map(|stored| stored.clone()) else {
        // Above every revision of a session of this name that was forgotten.
        return (SessionMemory::default(), shared.now().as_millis());
    };
    let memory = stored.memory.value().unwrap_or_else(|error| {
        tracing::warn!(session = %id, %error, "the stored state cannot be read; the session starts anew");
        SessionMemory::default()
    });
    // A sweep may be letting go of it just now, under the next revision.
    (memory, stored.revision.max(shared.now().as_millis()))
}

impl SessionState {
    fn take(&mut self, me: &ActorRef<SessionMsg>, message: SessionMsg) {
        if self.suspended {
            if let Some(reply) = message.into_reply() {
                let _ = reply.send(Err(EngineError::ShuttingDown));
            }
            return;
        }
        match message {
            SessionMsg::Wake => {}
            SessionMsg::Report(incoming) => self.on_report(me, *incoming),
            SessionMsg::Event { episode, event } if self.is_current(episode) => self.on_event(me, event),
            SessionMsg::Event { .. } => {}
            SessionMsg::Saved { ack: SaveAck::Reset, .. } => self.forgotten(),
            SessionMsg::Saved { ack: SaveAck::Record { episode, seq, record }, durable } => {
                self.on_saved(me, episode, seq, record, durable);
            }
            SessionMsg::Worked { seq, reply } => self.on_worked(me, seq, reply),
            SessionMsg::Await { episode, reply, permit } if self.runs(episode) => {
                self.wait_for(Wants::Verdict, reply, permit);
            }
            SessionMsg::Await { reply, .. } => self.tell_last(reply),
            SessionMsg::Declined { seq, reason, reply } => self.on_declined(me, seq, reason, reply),
            SessionMsg::TurnWorked { permit: _permit } => self.on_turn_worked(),
            SessionMsg::Cancel { done } => {
                let stops = self.cancel(me);
                if let Some(done) = done {
                    let _ = done.send(stops);
                }
            }
            SessionMsg::Abandon { driver } => self.on_abandoned(me, driver),
            SessionMsg::Reset { done } => self.reset(me, done),
            SessionMsg::Adopt(adoption) => self.on_adoption(me, *adoption),
            SessionMsg::Looked { episode, redoer, looked } => self.on_looked(me, episode, redoer, looked),
            SessionMsg::Status { reply } => {
                let _ = reply.send(self.status());
            }
            SessionMsg::Idle => self.on_idle(me),
            SessionMsg::Suspend => self.suspend(),
            #[cfg(any(test, feature = "test-util"))]
            SessionMsg::Panic => panic!("asked to panic"),
        }
    }

    /// Whether this is the memory's episode.
    pub fn is_current(&self, episode: u64) -> bool {
        self.memory.episode().is_some_and(|current| current.id() == episode)
    }

    /// Whether this episode has not been told the end of.
    fn runs(&self, episode: u64) -> bool {
        self.is_current(episode) || self.closing_episode() == Some(episode)
    }

    /// The episode whose verdict is being written.
    pub fn closing_episode(&self) -> Option<u64> {
        let desk = self.desk.lock();
        desk.running.as_ref().and_then(|running| running.closing.as_ref()).map(|outcome| outcome.episode)
    }

    fn on_saved(&mut self, me: &ActorRef<SessionMsg>, episode: u64, seq: u64, record: Record, durable: bool) {
        if !self.runs(episode) {
            return;
        }
        self.running(|running| running.durable &= durable);
        if record == Record::Verdict {
            if self.closing_episode() == Some(episode) {
                self.conclude(me);
            }
        } else {
            self.feed(me, Event::Persisted { seq, record });
        }
    }

    fn on_turn_worked(&mut self) {
        let before = self.memory.history().clone();
        self.memory.turn_worked();
        if *self.memory.history() != before {
            self.save(None);
        }
    }

    pub fn wait_for(&self, wants: Wants, reply: ReplyTo, permit: Permit) {
        self.desk.lock().waiters.push(Waiter { wants, reply, _permit: permit });
    }

    /// Looks at the running episode's means.
    pub fn running<T>(&self, look: impl FnOnce(&mut Running) -> T) -> Option<T> {
        self.desk.lock().running.as_mut().map(look)
    }

    pub fn plan(&self) -> Option<Plan> {
        self.running(|running| running.plan.clone())
    }

    /// Hands an event to the machine and carries out what it answers.
    pub fn feed(&mut self, me: &ActorRef<SessionMsg>, event: Event) {
        let Some(plan) = self.plan() else { return };
        let commands = self.memory.on(event, &plan, self.shared.now());
        self.perform_all(me, commands, &plan);
    }

    /// Carries out commands and everything that follows from them at once.
    pub fn perform_all(&mut self, me: &ActorRef<SessionMsg>, commands: Vec<Command>, plan: &Plan) {
        let mut queue = VecDeque::from(commands);
        if !self.memory.episode().is_some_and(|episode| episode.is_redoing()) {
            self.directive = None;
        }
        self.let_go_of_outdated();
        while let Some(command) = queue.pop_front() {
            if let Some(event) = self.perform(me, command, plan) {
                queue.extend(self.memory.on(event, plan, self.shared.now()));
            }
        }
        self.collect_notes();
    }

    /// Ends what goes on outside for a phase that is over.
    fn let_go_of_outdated(&self) {
        let current = self.memory.open_episode().map(|episode| (episode.seq(), episode.phase()));
        let outdated = self.running(|running| {
            running.outside.take_if(|outside| current.is_none_or(|(seq, phase)| !outside.belongs_to(seq, phase)))
        });
        drop(outdated);
    }

    /// Publishes the session's memory and hands it to the writer; tells whether it will be written.
    pub fn save(&mut self, ack: Option<SaveAck>) -> bool {
        self.revision += 1;
        self.is_unsaved = false;
        // A running episode keeps to its own plan, whatever was put in force meanwhile.
        let of_plan = self.running(|running| {
            (running.opening, running.result) = (None, None);
            running.plan.config.durability()
        });
        let durability = of_plan.unwrap_or_else(|| self.shared.config().durability());
        self.shared.store(
            &self.id,
            Stored::of(&self.memory, self.shared.config().limits(), self.revision, self.shared.now()),
            ack,
            durability,
        )
    }

    /// Makes the record that nobody waits for.
    pub fn save_if_due(&mut self) {
        if self.is_unsaved {
            self.save(None);
        }
    }

    fn status(&self) -> SessionStatus {
        let episode = self.memory.open_episode().map(|episode| EpisodeStatus {
            episode: episode.id(),
            seq: episode.seq(),
            phase: episode.phase(),
            chain: episode.chain().clone(),
            kind: episode.error().kind.clone(),
            executions: episode.executions(),
            waits_until: episode.waits_until(),
            started: episode.started(),
            attempts: episode.attempts().to_vec(),
        });
        SessionStatus {
            session: self.id.clone(),
            episode,
            kept: self.memory.kept().cloned(),
            episodes: self.memory.episodes(),
            recoveries_in_window: self.memory.history().recoveries(),
            strikes: self.memory.history().strikes().map_or(0, |strikes| strikes.at.len()),
        }
    }

    /// Looks after a while whether anything happened. A timer that runs already sees to it: what happens
    /// meanwhile sets none.
    pub fn watch_idleness(&mut self, me: &ActorRef<SessionMsg>) {
        if self.idle.is_set() {
            return;
        }
        self.look_later(me, self.shared.config().limits().passivate_after);
    }

    fn look_later(&mut self, me: &ActorRef<SessionMsg>, after: Duration) {
        self.idle.set(me, after, SessionMsg::Idle);
    }

    /// Puts the actor away if nothing happened meanwhile: its memory is stored.
    fn on_idle(&mut self, me: &ActorRef<SessionMsg>) {
        let after = self.shared.config().limits().passivate_after;
        let left = after.saturating_sub(self.active.elapsed());
        let has_work = self.desk.lock().running.is_some();
        let is_quiet = left.is_zero();
        if is_quiet && !has_work && self.shared.directory.passivate(&self.id, &self.desk) {
            if let Some(mut stored) = self.shared.stored.get_mut(&self.id) {
                stored.rest();
            }
            // What is still in the mailbox are wakings for mail that was read.
            me.stop(None);
        } else {
            self.look_later(me, if is_quiet { after } else { left });
        }
    }
}
