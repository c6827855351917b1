//! The actor of one active session: a thin shell around its memory and chain machine.

use std::sync::Arc;

use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use super::admission::Permit;
use super::desk::{Desk, Incoming, ReplyTo, Waiter, Wants};
use super::events::EngineEvent;
use super::messages::{Adoption, EpisodeStatus, MetricsMsg, SessionMsg, SessionStatus};
use super::outcome::{EngineError, Outcome, Told};
use super::shared::Shared;
use crate::failure::{Detection, RecoveryError, SessionId};
use crate::policy::machine::{Command, Episode, Event, Looked, Note, Plan, Redoer};
use crate::policy::session::{Intake, SessionMemory};
use crate::policy::{Unhandled, Verdict};
use crate::strategy::SessionClient;

pub(crate) struct SessionActor;

pub(crate) struct SessionArgs {
    pub id: SessionId,
    pub desk: Arc<Desk>,
    pub shared: Arc<Shared>,
}

pub(crate) struct SessionState {
    pub id: SessionId,
    pub desk: Arc<Desk>,
    pub shared: Arc<Shared>,
    pub memory: SessionMemory,
    pub revision: u64,
    /// Every decision of the running episode.
    pub notes: Vec<Note>,
    /// How many of them the last redo's directive told.
    pub told_notes: usize,
    /// The current redo, for those who join or come late (R8).
    pub directive: Option<Told>,
    /// How the last episode ended, as long as the actor lives.
    last: Option<Arc<Outcome>>,
    pub durable: bool,
    pub wait: Timer,
    pub deadline: Timer,
    idle: Timer,
    messages: u64,
    /// Who waits for the session to be forgotten.
    resets: Vec<oneshot::Sender<()>>,
}

/// A timer whose message is not sent once it is dropped or set anew.
#[derive(Default)]
pub(crate) struct Timer(Option<AbortHandle>);

impl Timer {
    pub fn set(&mut self, me: &ActorRef<SessionMsg>, delay: std::time::Duration, message: SessionMsg) {
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

    async fn pre_start(
        &self,
        me: ActorRef<SessionMsg>,
        SessionArgs { id, desk, shared }: SessionArgs,
    ) -> Result<SessionState, ActorProcessingErr> {
        let (memory, revision) = remembered(&shared, &id);
        let mut state = SessionState {
            id,
            desk,
            shared,
            memory,
            revision,
            notes: vec![],
            told_notes: 0,
            directive: None,
            last: None,
            durable: true,
            wait: Timer::default(),
            deadline: Timer::default(),
            idle: Timer::default(),
            messages: 0,
            resets: vec![],
        };
        state.go_on_after_panic(&me);
        state.watch_idleness(&me);
        Ok(state)
    }

    async fn handle(
        &self,
        me: ActorRef<SessionMsg>,
        message: SessionMsg,
        state: &mut SessionState,
    ) -> Result<(), ActorProcessingErr> {
        state.messages += 1;
        state.take(&me, message);
        Ok(())
    }
}

/// The session's newest memory; one that cannot be read counts as none, aloud.
fn remembered(shared: &Shared, id: &SessionId) -> (SessionMemory, u64) {
    let Some(stored) = shared.stored.get(id).map(|stored| stored.clone()) else { return Default::default() };
    let memory = serde_json::from_slice(&stored.memory).unwrap_or_else(|error| {
        tracing::warn!(session = %id, %error, "the stored state cannot be read; the session starts anew");
        SessionMemory::default()
    });
    (memory, stored.revision)
}

impl SessionState {
    fn take(&mut self, me: &ActorRef<SessionMsg>, message: SessionMsg) {
        match message {
            SessionMsg::Report(incoming) => self.on_report(me, *incoming),
            SessionMsg::Event { episode, event } if self.is_current(episode) => self.feed(me, event),
            SessionMsg::Event { .. } => {}
            SessionMsg::Saved { ack, durable } if self.is_current(ack.episode) => {
                self.durable &= durable;
                self.feed(me, Event::Persisted { seq: ack.seq, record: ack.record });
            }
            SessionMsg::Saved { .. } => {}
            SessionMsg::Worked { seq, reply } => self.on_worked(me, seq, reply),
            SessionMsg::Await { episode, reply, permit } if self.is_current(episode) => {
                self.wait_for(Wants::Verdict, reply, permit);
            }
            SessionMsg::Await { reply, .. } => self.tell_last(reply),
            SessionMsg::Declined { seq, reason, reply } => self.on_declined(me, seq, reason, reply),
            SessionMsg::TurnWorked { permit: _permit } => {
                self.memory.turn_worked();
                self.save(None);
            }
            SessionMsg::Cancel { done } => {
                let stops = self.memory.open_episode().is_some();
                self.feed(me, Event::Cancelled);
                if let Some(done) = done {
                    let _ = done.send(stops);
                }
            }
            SessionMsg::Abandon { driver } => {
                let drives = self.desk.lock().driver == Some(driver);
                if drives && !self.shared.is_closing() {
                    self.feed(me, Event::Cancelled);
                }
            }
            SessionMsg::Reset { done } => {
                // An episode's verdict is told first, to whoever waits for it.
                self.resets.push(done);
                self.feed(me, Event::Cancelled);
                self.reset_if_due();
            }
            SessionMsg::Adopt(adoption) => self.adopt(me, *adoption),
            SessionMsg::Looked { redoer, looked } => self.resume(me, redoer, looked),
            SessionMsg::Status { reply } => {
                let _ = reply.send(self.status());
            }
            SessionMsg::Idle { since } => self.on_idle(me, since),
            SessionMsg::Suspend => self.suspend(),
            #[cfg(any(test, feature = "test-util"))]
            SessionMsg::Panic => panic!("asked to panic"),
        }
    }

    pub fn is_current(&self, episode: u64) -> bool {
        self.memory.episode().is_some_and(|current| current.id() == episode)
    }

    fn on_report(&mut self, me: &ActorRef<SessionMsg>, incoming: Incoming) {
        if self.shared.is_closing() {
            let _ = incoming.reply.send(Err(EngineError::ShuttingDown));
            return;
        }
        if let Detection::Cancelled = incoming.detection {
            return self.on_cancelled_turn(me, incoming);
        }
        // An open episode that nobody goes on with yet is gone on with by whoever reports now.
        self.go_on_with(me, incoming.redoer, incoming.client.clone(), incoming.driver);
        if self.is_closing_episode() {
            // Its verdict is being written: what comes now is of the time after it.
            self.desk.lock().queue.push_back(incoming);
            return;
        }
        match self.memory.intake(incoming.key) {
            Intake::Opens => self.open(me, incoming),
            Intake::Result => {
                let seq = self.memory.episode().map_or(0, |episode| episode.seq());
                let error = detected(incoming.detection);
                self.wait_for(incoming.wants, incoming.reply, incoming.permit);
                self.feed(me, Event::Reported { seq, error });
            }
            Intake::Joins => match (incoming.wants, incoming.redoer, &self.directive) {
                (Wants::Redo, Redoer::Host, Some(directive)) => {
                    let _ = incoming.reply.send(Ok(directive.clone()));
                }
                (wants, Redoer::Host, _) => self.wait_for(wants, incoming.reply, incoming.permit),
                _ => self.wait_for(Wants::Verdict, incoming.reply, incoming.permit),
            },
            Intake::Stale => self.answer_stale(incoming.reply, incoming.permit),
            Intake::Waits => self.desk.lock().queue.push_back(incoming),
            Intake::Supersedes => {
                self.desk.lock().queue.push_back(incoming);
                self.feed(me, Event::Superseded);
            }
        }
    }

    /// Whether the last episode has its verdict and nobody was told yet.
    fn is_closing_episode(&self) -> bool {
        self.memory.episode().is_some() && self.memory.open_episode().is_none()
    }

    /// Whether the host speaks of the current redo; an episode that waits for its host goes on then.
    fn is_redo_of(&mut self, me: &ActorRef<SessionMsg>, seq: u64) -> bool {
        let is_hosts = |episode: &&Episode| episode.seq() == seq && episode.redoer() == Redoer::Host;
        if self.memory.open_episode().filter(is_hosts).is_some() {
            self.go_on_with(me, Redoer::Host, None, None);
        }
        self.memory.open_episode().is_some_and(|episode| episode.seq() == seq && episode.is_redoing())
    }

    /// A host cannot do the remedy; one that is out of date gets the current directive (R8).
    fn on_declined(&mut self, me: &ActorRef<SessionMsg>, seq: u64, reason: Arc<str>, reply: Option<(ReplyTo, Permit)>) {
        let current = self.is_redo_of(me, seq);
        match reply {
            Some((reply, permit)) if current => self.wait_for(Wants::Redo, reply, permit),
            Some((reply, permit)) => self.answer_stale(reply, permit),
            None => {}
        }
        if current {
            self.feed(me, Event::RemedyFailed { seq, reason });
        }
    }

    /// A person or the host stopped the turn: it is never recovered (R1).
    fn on_cancelled_turn(&mut self, me: &ActorRef<SessionMsg>, incoming: Incoming) {
        if self.memory.open_episode().is_some() {
            self.wait_for(Wants::Verdict, incoming.reply, incoming.permit);
            return self.feed(me, Event::Cancelled);
        }
        self.refuse(incoming, Verdict::Cancelled, None, false);
    }

    fn open(&mut self, me: &ActorRef<SessionMsg>, incoming: Incoming) {
        let Some(error) = detected(incoming.detection.clone()) else {
            return self.refuse(incoming, Verdict::Unhandled(Unhandled::NotDetected), None, false);
        };
        let (plan, at) = (self.shared.plan(), self.shared.moment());
        if plan.config.collect_metrics()
            && let Some(metrics) = self.shared.metrics()
        {
            let _ = metrics.send_message(MetricsMsg::Detected { kind: error.kind.clone() });
        }
        let Incoming { key, redoer, deadline, .. } = incoming;
        match self.memory.open(&self.id, Arc::clone(&error), redoer, key.turn, deadline, &plan, at) {
            Err(refusal) => {
                if self.memory.history().is_empty() {
                    return self.refuse(incoming, refusal.verdict, Some(error), refusal.calls_host);
                }
                self.save(None);
                self.refuse(incoming, refusal.verdict, Some(error), refusal.calls_host);
            }
            Ok(commands) => {
                let episode = self.memory.episodes();
                {
                    let mut desk = self.desk.lock();
                    desk.client = incoming.client;
                    desk.driver = incoming.driver;
                    desk.plan = Some(plan.clone());
                    desk.redo_pending = false;
                }
                self.wait_for(incoming.wants, incoming.reply, incoming.permit);
                self.notes.clear();
                self.told_notes = 0;
                self.durable = true;
                self.shared.events.publish(EngineEvent::Opened {
                    session: self.id.clone(),
                    episode,
                    kind: error.kind.clone(),
                });
                self.watch_deadline(me);
                self.perform_all(me, commands, &plan);
            }
        }
    }

    /// Answers a failure that opens no episode.
    fn refuse(&mut self, incoming: Incoming, verdict: Verdict, error: Option<Arc<RecoveryError>>, calls_host: bool) {
        let outcome = Outcome::without_episode(self.id.clone(), verdict, error, self.shared.now());
        let outcome = Arc::new(outcome);
        self.announce(&outcome, calls_host);
        let _ = incoming.reply.send(Ok(Told::Stop(outcome)));
    }

    /// Out of date: the current directive or the last verdict.
    fn answer_stale(&mut self, reply: ReplyTo, permit: Permit) {
        if let Some(directive) = &self.directive {
            let _ = reply.send(Ok(directive.clone()));
        } else if self.memory.open_episode().is_some() {
            self.wait_for(Wants::Redo, reply, permit);
        } else {
            self.tell_last(reply);
        }
    }

    /// How the last episode ended.
    fn tell_last(&self, reply: ReplyTo) {
        let outcome = self.last.clone().unwrap_or_else(|| {
            let (kept, now) = (self.memory.kept(), self.shared.now());
            let verdict = self.memory.last_verdict().cloned().unwrap_or(Verdict::Unhandled(Unhandled::NotDetected));
            let error = kept.map(|kept| Arc::clone(&kept.error));
            let at = kept.map_or(now, |kept| kept.at);
            let mut outcome = Outcome::without_episode(self.id.clone(), verdict, error, at);
            outcome.episode = self.memory.episodes();
            outcome.executions = kept.map_or(0, |kept| kept.executions);
            Arc::new(outcome)
        });
        let _ = reply.send(Ok(Told::Stop(outcome)));
    }

    fn on_worked(&mut self, me: &ActorRef<SessionMsg>, seq: u64, reply: Option<(ReplyTo, Permit)>) {
        let current = self.is_redo_of(me, seq);
        match reply {
            Some((reply, permit)) if current => self.wait_for(Wants::Verdict, reply, permit),
            Some((reply, permit)) => self.answer_stale(reply, permit),
            None => {}
        }
        self.feed(me, Event::TurnWorked { seq });
    }

    fn wait_for(&self, wants: Wants, reply: ReplyTo, permit: Permit) {
        self.desk.lock().waiters.push(Waiter { wants, reply, _permit: permit });
    }

    /// Hands an event to the machine and carries out what it answers.
    pub fn feed(&mut self, me: &ActorRef<SessionMsg>, event: Event) {
        let Some(plan) = self.plan() else { return };
        let commands = self.memory.on(event, &plan, self.shared.now());
        self.perform_all(me, commands, &plan);
    }

    /// What the episode keeps to; one that nobody goes on with yet can still be ended.
    fn plan(&self) -> Option<Plan> {
        let own = self.desk.lock().plan.clone();
        own.or_else(|| self.memory.episode().map(|_| self.shared.plan()))
    }

    /// Tells everybody who waits, and lets the next report in.
    pub fn finished(&mut self, me: &ActorRef<SessionMsg>, verdict: Verdict) {
        self.wait.stop();
        self.deadline.stop();
        self.collect_notes();
        let Some(episode) = self.memory.close() else { return };
        let outcome = Arc::new(Outcome {
            session: self.id.clone(),
            episode: episode.id(),
            verdict,
            error: Some(Arc::clone(episode.error())),
            executions: episode.executions(),
            redos: episode.redos(),
            attempts: episode.attempts().to_vec(),
            injections: episode.injections().to_vec(),
            notes: std::mem::take(&mut self.notes),
            started: episode.started(),
            ended: self.shared.now(),
            durable: self.durable,
        });
        self.directive = None;
        self.last = Some(Arc::clone(&outcome));
        self.announce(&outcome, matches!(outcome.verdict, Verdict::Escalated { .. }));
        let told = Told::Stop(outcome);
        let waiters = {
            let mut desk = self.desk.lock();
            (desk.plan, desk.client, desk.driver, desk.redo_pending) = (None, None, None, false);
            desk.take(&told)
        };
        for waiter in waiters {
            let _ = waiter.reply.send(Ok(told.clone()));
        }
        self.reset_if_due();
        self.let_in(me);
        self.watch_idleness(me);
    }

    /// Forgets the session (R11), once no episode of it runs.
    fn reset_if_due(&mut self) {
        if self.resets.is_empty() || self.memory.episode().is_some() {
            return;
        }
        self.memory.reset();
        self.last = None;
        self.save(None);
        for done in std::mem::take(&mut self.resets) {
            let _ = done.send(());
        }
    }

    /// Hands the reports that waited to the session until one of them opens an episode.
    fn let_in(&mut self, me: &ActorRef<SessionMsg>) {
        while self.memory.episode().is_none() {
            let Some(incoming) = self.desk.lock().queue.pop_front() else { return };
            self.on_report(me, incoming);
        }
    }

    fn announce(&self, outcome: &Arc<Outcome>, calls_host: bool) {
        if self.shared.config().collect_metrics()
            && let Some(metrics) = self.shared.metrics()
        {
            let _ = metrics.send_message(MetricsMsg::Ended(Arc::clone(outcome)));
        }
        self.shared.events.publish(EngineEvent::Ended(Arc::clone(outcome)));
        if calls_host {
            self.shared.escalated(outcome);
        }
    }

    fn watch_deadline(&mut self, me: &ActorRef<SessionMsg>) {
        let Some((episode, deadline)) =
            self.memory.open_episode().and_then(|episode| Some((episode.id(), episode.deadline()?)))
        else {
            return;
        };
        let event = Event::DeadlinePassed;
        self.deadline.set(me, self.shared.until(deadline), SessionMsg::Event { episode, event });
    }

    /// An actor that replaces one that panicked goes on with what it finds.
    fn go_on_after_panic(&mut self, me: &ActorRef<SessionMsg>) {
        let redo_pending = {
            let desk = self.desk.lock();
            if desk.plan.is_none() {
                return;
            }
            desk.redo_pending
        };
        match self.memory.open_episode().map(|episode| episode.redoer()) {
            Some(redoer) => {
                let looked = match redoer {
                    _ if redo_pending => Looked::Pending,
                    Redoer::Host => Looked::NotBegun,
                    Redoer::Nobody | Redoer::Caller | Redoer::Client => Looked::Unknown,
                };
                self.resume(me, redoer, looked);
            }
            // It panicked before its first record: nobody will hear of that episode again.
            None => {
                {
                    let mut desk = self.desk.lock();
                    desk.plan = None;
                    desk.waiters.clear();
                }
                self.let_in(me);
            }
        }
    }

    /// An open episode found on disk goes on with these means.
    fn adopt(&mut self, me: &ActorRef<SessionMsg>, adoption: Adoption) {
        let Adoption { redoer, client, driver, wants, reply, permit } = adoption;
        if self.memory.open_episode().is_none() || self.desk.lock().plan.is_some() {
            let _ = reply.send(Err(EngineError::NothingOpen));
            return;
        }
        self.wait_for(wants, reply, permit);
        self.go_on_with(me, redoer, client, driver);
    }

    /// Goes on with an open episode, if one is there that nobody drives.
    fn go_on_with(
        &mut self,
        me: &ActorRef<SessionMsg>,
        redoer: Redoer,
        client: Option<Arc<dyn SessionClient>>,
        driver: Option<u64>,
    ) {
        let Some(episode) = self.memory.open_episode() else { return };
        let looks = episode.is_underway() && redoer != Redoer::Host;
        {
            let mut desk = self.desk.lock();
            if desk.plan.is_some() {
                return;
            }
            desk.plan = Some(self.shared.plan());
            desk.client.clone_from(&client);
            desk.driver = driver;
        }
        match client.filter(|_| looks) {
            Some(client) => self.look(redoer, client),
            None => self.resume(me, redoer, Looked::Unknown),
        }
    }

    fn resume(&mut self, me: &ActorRef<SessionMsg>, redoer: Redoer, looked: Looked) {
        let Some(plan) = self.plan() else { return };
        let commands = self.memory.resume(redoer, looked, &plan, self.shared.now());
        self.watch_deadline(me);
        self.perform_all(me, commands, &plan);
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

    fn suspend(&mut self) {
        self.wait.stop();
        self.deadline.stop();
        if self.memory.open_episode().is_some() {
            self.save(None);
        }
        let mut desk = self.desk.lock();
        let waiters = std::mem::take(&mut desk.waiters);
        let queue = std::mem::take(&mut desk.queue);
        drop(desk);
        let replies = waiters.into_iter().map(|waiter| waiter.reply).chain(queue.into_iter().map(|one| one.reply));
        for reply in replies {
            let _ = reply.send(Err(EngineError::ShuttingDown));
        }
    }

    fn watch_idleness(&mut self, me: &ActorRef<SessionMsg>) {
        let after = self.shared.config().limits().passivate_after;
        self.idle.set(me, after, SessionMsg::Idle { since: self.messages });
    }

    /// Puts the actor away if nothing happened meanwhile: its memory is stored.
    fn on_idle(&mut self, me: &ActorRef<SessionMsg>, since: u64) {
        // This message itself was counted.
        let quiet = self.messages == since + 1 && self.memory.episode().is_none();
        if quiet && self.shared.passivate(&self.id, me) {
            // What is still in the mailbox is handled first.
            let _ = me.drain();
        } else {
            self.watch_idleness(me);
        }
    }

    /// Carries out commands and everything that follows from them at once.
    pub fn perform_all(&mut self, me: &ActorRef<SessionMsg>, commands: Vec<Command>, plan: &Plan) {
        let mut queue = std::collections::VecDeque::from(commands);
        if !self.memory.episode().is_some_and(|episode| episode.is_redoing()) {
            self.directive = None;
            self.desk.lock().redo_pending = false;
        }
        while let Some(command) = queue.pop_front() {
            if let Some(event) = self.perform(me, command, plan) {
                queue.extend(self.memory.on(event, plan, self.shared.now()));
            }
        }
        self.collect_notes();
    }
}

fn detected(detection: Detection) -> Option<Arc<RecoveryError>> {
    detection.into_failure().map(Arc::new)
}
