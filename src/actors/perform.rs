//! Carrying out the machine's commands: what comes of them returns as an event.

use std::sync::Arc;
use std::time::Duration;

use ractor::ActorRef;

use super::events::EngineEvent;
use super::lane::LaneMsg;
use super::messages::{SaveAck, SessionMsg};
use super::outcome::Told;
use super::runner::Ran;
use super::session::SessionState;
use super::shared::{Shared, Stored};
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
            Command::Finish(verdict) => {
                self.finished(me, verdict);
                None
            }
        }
    }

    /// Hands a record to the writer. Without `ahead` nobody waits for the disk.
    fn persist(&mut self, seq: u64, record: Record, plan: &Plan) -> Option<Event> {
        let episode = self.memory.episode()?.id();
        let ahead = plan.config.durability() == Durability::Ahead;
        let answer_comes = self.save(ahead.then_some(SaveAck { episode, seq, record })) && ahead;
        (!answer_comes).then_some(Event::Persisted { seq, record })
    }

    /// Publishes the session's memory and hands it to the writer; tells whether it will be written.
    pub fn save(&mut self, ack: Option<SaveAck>) -> bool {
        self.revision += 1;
        self.shared.store(&self.id, Stored::of(&self.memory, self.revision), ack)
    }

    fn ask_lane(&self, lane: &LaneKey, epoch: u32) -> Option<Event> {
        let address = self.address()?;
        let reply = Box::new(move |closed_until: Option<Timestamp>| {
            address.send(match closed_until {
                Some(until) => Event::LaneClosed { epoch, until },
                None => Event::LaneOpen { epoch },
            });
        });
        // Without its lane's actor a redo is not held back: it is bounded all the same.
        let asked = self.shared.lanes.send(lane, &self.shared.clock, LaneMsg::Ask { reply });
        asked.is_err().then_some(Event::LaneOpen { epoch })
    }

    fn execute(&mut self, execute: Execute, plan: &Plan) -> Option<Event> {
        let Execute { seq, plan: step, .. } = &execute;
        let seq = *seq;
        let Some(strategy) = self.shared.strategies.get(&step.strategy) else {
            let answer = Answer::next_strategy(format!("no strategy `{}` is registered", step.strategy));
            return Some(Event::Answered { seq, answer, injections: vec![] });
        };
        let limit = step.timeout().unwrap_or(plan.limits().strategy_timeout);
        let attempt = self.attempt(execute)?;
        match strategy {
            Strategy::Computes(strategy) => {
                let answer = strategy.decide(&attempt);
                Some(Event::Answered { seq, answer, injections: attempt.take_injections() })
            }
            Strategy::Acts(strategy) => {
                self.run(strategy, attempt, seq, limit);
                None
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
            client: self.desk.lock().client.clone(),
            seed: execute.seed,
        }))
    }

    fn run(&self, strategy: Arc<dyn RecoveryStrategy>, attempt: Attempt, seq: u64, limit: Duration) {
        let heard = attempt.clone();
        let name: Arc<str> = strategy.name().into();
        let running = self.shared.runner.run(limit, move || async move { strategy.execute(&attempt).await });
        let Some(address) = self.address() else { return };
        tokio::spawn(async move {
            let event = match running.await {
                Ran::Done(answer) => Event::Answered { seq, answer, injections: heard.take_injections() },
                Ran::Busy => Event::RunnerBusy { seq },
                Ran::TimedOut => address.failed(&name, seq, "did not answer within its time limit"),
                Ran::Panicked => address.failed(&name, seq, "panicked"),
            };
            address.send(event);
        });
    }

    fn carry(&mut self, seq: u64, remedy: Remedy, plan: &Plan) -> Option<Event> {
        let turn_follows = self.memory.episode()?.redoer() != Redoer::Nobody;
        let Some(client) = self.desk.lock().client.clone() else {
            return Some(delivered(seq, delivery(&remedy, None, turn_follows)));
        };
        let (address, session) = (self.address()?, self.id.clone());
        let kind = self.memory.episode()?.error().kind.clone();
        let asked = remedy.clone();
        let running = self.shared.runner.run(plan.limits().strategy_timeout, move || async move {
            carry(&*client, &session, &asked, &kind, turn_follows).await
        });
        tokio::spawn(async move {
            let result = settled(running.await);
            address.send(delivered(seq, delivery(&remedy, Some(&result), turn_follows)));
        });
        None
    }

    fn redo(&mut self, redo: Redo) {
        self.collect_notes();
        let Some(episode) = self.memory.episode() else { return };
        let (episode, redoer, seq) = (episode.id(), episode.redoer(), episode.seq());
        self.desk.lock().redo_pending = true;
        if redoer == Redoer::Client {
            return self.redo_by_client(redo, seq);
        }
        let notes = self.notes[self.told_notes..].to_vec();
        self.told_notes = self.notes.len();
        let told = Told::Redo { episode, redo: Arc::new(redo), notes };
        for waiter in self.desk.lock().take(&told) {
            let _ = waiter.reply.send(Ok(told.clone()));
        }
        self.directive = Some(told);
    }

    fn redo_by_client(&self, redo: Redo, seq: u64) {
        let (Some(client), Some(address)) = (self.desk.lock().client.clone(), self.address()) else { return };
        self.shared.runner.spawn(async move {
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
    }

    /// Asks the client how the session's last turn ended (R10).
    pub(super) fn look(&self, redoer: Redoer, client: Arc<dyn SessionClient>) {
        let Some(address) = self.address() else { return };
        let (session, limit) = (self.id.clone(), self.shared.config().limits().strategy_timeout);
        let running = self.shared.runner.run(limit, move || async move { client.last_turn(&session).await });
        tokio::spawn(async move {
            let looked = match settled(running.await) {
                Ok(()) => Looked::Worked,
                Err(ClientError::TurnFailed(report)) => {
                    address.detect(&report).map_or(Looked::Unknown, |error| Looked::Failed(Arc::new(error)))
                }
                Err(_) => Looked::Unknown,
            };
            address.tell(SessionMsg::Looked { redoer, looked });
        });
    }

    /// Moves new decisions from the machine to the record, the log and the listeners (R15).
    pub(super) fn collect_notes(&mut self) {
        let Some(episode) = self.memory.episode_mut() else { return };
        let (id, notes) = (episode.id(), episode.take_notes());
        for note in notes {
            tracing::debug!(session = %self.id, episode = id, seq = note.seq, decision = ?note.what);
            if self.shared.events.is_heard() {
                let (session, note) = (self.id.clone(), note.clone());
                self.shared.events.publish(EngineEvent::Decided { session, episode: id, note });
            }
            self.notes.push(note);
        }
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
        if let Some(entry) = self.shared.entry(&self.session) {
            let _ = entry.actor.send_message(message);
        }
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
