//! Carrying out the machine's commands: what comes of them returns as an event.

use std::sync::Arc;
use std::time::Duration;

use ractor::ActorRef;

use super::desk::What;
use super::events::EngineEvent;
use super::messages::{SaveAck, SessionMsg};
use super::outcome::Told;
use super::remembered::Stored;
use super::runner::{Begun, Ran};
use super::session::SessionState;
use super::shared::Shared;
use super::trace;
use crate::failure::{Detection, LaneKey, RecoveryError, Report, SessionId, Timestamp};
use crate::policy::machine::{Carrier, Command, Event, Execute, Looked, Plan, Record, Redo, Redoer};
use crate::policy::{Answer, Durability, Remedy};
use crate::strategy::{
    Attempt, AttemptParts, ClientError, Delivery, EarlierAttempt, RecoveryStrategy, SessionClient, Strategy, carry,
    delivery,
};

impl SessionState {
    /// Starts one command; answers with the event that follows at once, if one does.
    pub(super) fn perform(&mut self, me: &ActorRef<SessionMsg>, command: Command, plan: &Plan) -> Option<Event> {
        match command {
            Command::Persist { seq, record: Record::Verdict } => {
                self.close(me, seq, plan);
                None
            }
            Command::Persist { seq, record } => self.persist(seq, record, plan),
            Command::Execute(execute) => self.execute(execute, plan),
            Command::Wait { until, epoch } => {
                let episode = self.memory.episode()?.id();
                let event = Event::DelayElapsed { epoch };
                self.wait.set(me, self.shared.until(until), SessionMsg::Event { episode, event });
                None
            }
            Command::AskLane { lane, epoch } => self.ask_lane(&lane, epoch),
            Command::Carry { seq, remedy } => self.carry(seq, remedy, plan),
            Command::Redo(redo) => {
                self.redo(*redo);
                None
            }
            // Told by `conclude`, as soon as the verdict's record is written.
            Command::Finish(_) => None,
        }
    }

    /// Hands a record to the writer. Without `ahead` nobody waits for the disk, and what follows at once
    /// is part of the same record.
    fn persist(&mut self, seq: u64, record: Record, plan: &Plan) -> Option<Event> {
        let episode = self.memory.episode()?.id();
        if plan.config.durability() != Durability::Ahead {
            self.is_unsaved = true;
            return Some(Event::Persisted { seq, record });
        }
        let answer_comes = self.save(Some(SaveAck::Record { episode, seq, record }));
        (!answer_comes).then_some(Event::Persisted { seq, record })
    }

    fn ask_lane(&self, lane: &LaneKey, epoch: u32) -> Option<Event> {
        let address = self.address()?;
        let is_hosts = self.memory.episode()?.redoer() == Redoer::Host;
        let reply = Arc::new(move |closed_until: Option<Timestamp>| {
            address.send(match closed_until {
                Some(until) => Event::LaneClosed { epoch, until },
                None => Event::LaneOpen { epoch },
            });
        });
        // Without its lane's actor a redo is not held back: it is bounded all the same.
        self.shared.lanes.ask(lane, &self.id, is_hosts, reply).is_err().then_some(Event::LaneOpen { epoch })
    }

    fn execute(&mut self, execute: Execute, plan: &Plan) -> Option<Event> {
        let Execute { seq, plan: step, .. } = &execute;
        let (seq, name) = (*seq, Arc::clone(&step.strategy));
        let Some(strategy) = self.shared.strategies.get(&name) else {
            let answer = Answer::next_strategy(format!("no strategy `{name}` is registered"));
            return Some(Event::Answered { seq, answer, injections: vec![] });
        };
        let limit = step.timeout().unwrap_or(plan.limits().strategy_timeout);
        let number = execute.attempt;
        let attempt = self.attempt(execute)?;
        match strategy {
            Strategy::Computes(strategy) => {
                let answer = strategy.decide(&attempt);
                Some(Event::Answered { seq, answer, injections: attempt.take_injections() })
            }
            Strategy::Acts(strategy) => {
                let (episode, now) = (self.memory.episode()?.id(), self.shared.now());
                self.collect_notes();
                self.shared.journal.begun(&self.id, episode, seq, &name, number, now);
                self.run(strategy, name, attempt, seq, limit)
            }
        }
    }

    fn attempt(&self, execute: Execute) -> Option<Attempt> {
        let episode = self.memory.episode()?;
        let same_step = |earlier: &&crate::policy::RecoveryAttempt| {
            earlier.chain.as_ref() == Some(episode.chain()) && earlier.chain_position == execute.step
        };
        let earlier = episode.attempts().iter().filter(same_step);
        Some(Attempt::from(AttemptParts {
            session: self.id.clone(),
            error: Arc::clone(episode.error()),
            number: execute.attempt,
            seq: execute.seq,
            config: Arc::clone(&execute.plan.config),
            earlier: earlier.map(|one| EarlierAttempt { seq: one.seq, tokens: one.tokens }).collect(),
            client: self.client(),
            seed: execute.seed,
        }))
    }

    fn client(&self) -> Option<Arc<dyn SessionClient>> {
        self.running(|running| running.client.clone()).flatten()
    }

    fn run(
        &mut self,
        strategy: Arc<dyn RecoveryStrategy>,
        name: Arc<str>,
        attempt: Attempt,
        seq: u64,
        limit: Duration,
    ) -> Option<Event> {
        let heard = attempt.clone();
        let running = self.shared.runner.run(limit, move || async move { strategy.execute(&attempt).await });
        let address = self.address()?;
        self.begin_outside(What::Strategy, seq, async move {
            match running.await {
                Ran::Done(answer) => Event::Answered { seq, answer, injections: heard.take_injections() },
                Ran::Busy => Event::RunnerBusy { seq },
                Ran::TimedOut => address.failed(&name, seq, "did not answer within its time limit"),
                Ran::Panicked => address.failed(&name, seq, "panicked"),
            }
        })
    }

    fn carry(&mut self, seq: u64, remedy: Remedy, plan: &Plan) -> Option<Event> {
        let turn_follows = self.memory.episode()?.redoer() != Redoer::Nobody;
        let Some(client) = self.client() else {
            return Some(delivered(seq, delivery(&remedy, None, turn_follows)));
        };
        let session = self.id.clone();
        let kind = self.memory.episode()?.error().kind.clone();
        let asked = remedy.clone();
        let running = self.shared.runner.run(plan.limits().strategy_timeout, move || async move {
            carry(&*client, &session, &asked, &kind, turn_follows).await
        });
        self.begin_outside(What::Remedy, seq, async move {
            let result = settled(running.await);
            delivered(seq, delivery(&remedy, Some(&result), turn_follows))
        })
    }

    fn redo(&mut self, redo: Redo) {
        self.save_if_due();
        self.collect_notes();
        let Some(episode) = self.memory.episode() else { return };
        let (episode, redoer, seq) = (episode.id(), episode.redoer(), episode.seq());
        // Should this actor fail, the next one knows what the turn was given.
        self.shared.stored.insert(
            self.id.clone(),
            Stored::of(&self.memory, self.shared.config().limits(), self.revision, self.shared.now()),
        );
        if redoer == Redoer::Client {
            return self.redo_by_client(redo, seq);
        }
        let (waiters, told) = {
            let mut desk = self.desk.lock();
            let notes = desk.running.as_mut().map(|running| {
                running.begin(What::Redo, seq, None);
                let notes = running.notes[running.told_notes..].to_vec();
                running.told_notes = running.notes.len();
                notes
            });
            let told = Told::Redo { episode, redo: Arc::new(redo), notes: notes.unwrap_or_default() };
            (desk.take(&told), told)
        };
        self.directive = Some(told.clone());
        for waiter in waiters {
            let _ = waiter.reply.send(Ok(told.clone()));
        }
    }

    fn redo_by_client(&self, redo: Redo, seq: u64) {
        let (Some(client), Some(address)) = (self.client(), self.address()) else { return };
        let job = self.shared.runner.spawn(async move {
            let turn = redo.turn;
            let result = super::runner::guarded(|| async { client.redo(&turn).await }).await;
            let event = match result {
                Some(Ok(())) => Event::TurnWorked { seq },
                Some(Err(ClientError::TurnFailed(report))) => {
                    Event::Reported { seq, error: address.detect(&report).map(Arc::new) }
                }
                Some(Err(error)) => Event::RemedyFailed { seq, reason: format!("`redo`: {error}").into() },
                None => Event::RemedyFailed { seq, reason: "`redo` panicked".into() },
            };
            address.send(event);
        });
        self.running(|running| running.begin(What::Redo, seq, Some(job.abort_handle())));
    }

    /// Starts what ends with an event: one that is there at once, or reports back by itself. It is ended
    /// when the episode goes on without it.
    fn begin_outside(
        &mut self,
        what: What,
        seq: u64,
        job: impl Future<Output = Event> + Send + 'static,
    ) -> Option<Event> {
        // On its way to the disk when its effect begins.
        self.save_if_due();
        self.running(|running| running.begin(what, seq, None))?;
        // Polled outside the desk's lock: the host's code may look at its own session.
        match self.shared.runner.begin(job) {
            Begun::Over(event) => {
                self.running(|running| running.outside = None);
                Some(event)
            }
            Begun::Pending(job) => {
                let address = self.address()?;
                self.spawn_outside(async move { address.send(job.await) });
                None
            }
        }
    }

    /// Goes on with what was begun last, in a task of its own.
    fn spawn_outside(&self, job: impl Future<Output = ()> + Send + 'static) {
        let task = tokio::spawn(job).abort_handle();
        self.running(|running| match &mut running.outside {
            Some(outside) => outside.task = Some(task),
            None => task.abort(),
        });
    }

    /// Asks the client how the session's last turn ended (R10).
    pub(super) fn look(&self, redoer: Redoer, client: Arc<dyn SessionClient>) {
        let Some(address) = self.address() else { return };
        let (session, limit) = (self.id.clone(), self.shared.config().limits().strategy_timeout);
        let running = self.shared.runner.run(limit, move || async move { client.last_turn(&session).await });
        let (episode, seq) = (address.episode, self.memory.fence().seq);
        self.running(|running| running.begin(What::Look, seq, None));
        self.spawn_outside(async move {
            let looked = match settled(running.await) {
                Ok(()) => Looked::Worked,
                Err(ClientError::TurnFailed(report)) => {
                    address.detect(&report).map_or(Looked::Unknown, |error| Looked::Failed(Arc::new(error)))
                }
                Err(_) => Looked::Unknown,
            };
            address.tell(SessionMsg::Looked { episode, redoer, looked });
        });
    }

    /// Moves new decisions from the machine to the record, the log and the listeners (R15).
    pub(super) fn collect_notes(&mut self) {
        let Some(episode) = self.memory.episode_mut() else { return };
        let (id, notes) = (episode.id(), episode.take_notes());
        if notes.is_empty() {
            return;
        }
        self.shared.journal.decided(&self.id, id, &notes);
        if trace::is_heard() {
            let span = self.running(|running| running.span.clone()).unwrap_or_else(tracing::Span::none);
            notes.iter().for_each(|note| trace::decided(&span, note));
        }
        for note in &notes {
            if self.shared.events.is_heard() {
                let (session, note) = (self.id.clone(), note.clone());
                self.shared.events.publish(EngineEvent::Decided { session, episode: id, note });
            }
        }
        self.running(|running| running.note(notes));
    }

    fn address(&self) -> Option<Address> {
        let episode = self.memory.episode()?.id();
        Some(Address { shared: Arc::clone(&self.shared), session: self.id.clone(), episode })
    }
}

/// Where an episode's events go, whichever actor holds it by then.
#[derive(Clone)]
struct Address {
    shared: Arc<Shared>,
    session: SessionId,
    episode: u64,
}

impl Address {
    fn send(&self, event: Event) {
        self.shared.send_event(&self.session, self.episode, event);
    }

    fn tell(&self, message: SessionMsg) {
        self.shared.send_if_live(&self.session, message);
    }

    fn detect(&self, report: &Report) -> Option<RecoveryError> {
        match self.shared.patterns().detect_first(report, self.shared.now()) {
            Detection::Failure(error) => Some(*error),
            Detection::Cancelled | Detection::NotAFailure => None,
        }
    }

    fn failed(&self, strategy: &str, seq: u64, how: &str) -> Event {
        tracing::warn!(session = %self.session, strategy, "the strategy {how}");
        let answer = Answer::next_strategy(format!("`{strategy}` {how}"));
        Event::Answered { seq, answer, injections: vec![] }
    }
}

fn settled(ran: Ran<Result<(), ClientError>>) -> Result<(), ClientError> {
    match ran {
        Ran::Done(result) => result,
        Ran::Busy => Err(ClientError::failed("the runner is busy")),
        Ran::TimedOut => Err(ClientError::failed("no answer within the time limit")),
        Ran::Panicked => Err(ClientError::failed("the client panicked")),
    }
}

fn delivered(seq: u64, delivery: Delivery) -> Event {
    match delivery {
        Delivery::Done => Event::Carried { seq, by: Carrier::Client },
        Delivery::OnTurn(instruction) => Event::Carried { seq, by: Carrier::Turn(instruction) },
        Delivery::Failed(reason) => Event::RemedyFailed { seq, reason },
    }
}
