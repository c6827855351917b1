//! Going on with an episode after its actor failed, or after a restart of the process (R10).

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use ractor::ActorRef;

use super::desk::{Running, What};
use super::messages::{Adoption, SaveAck, SessionMsg};
use super::outcome::EngineError;
use super::session::SessionState;
use super::trace;
use crate::policy::machine::{Event, Looked, PhaseName, Record, Redoer};
use crate::policy::{Durability, seed};
use crate::strategy::SessionClient;

/// Waits that ended while nobody looked go on at this distance on average, or within the length of one wait
/// if that is shorter.
const OVERDUE_APART: Duration = Duration::from_millis(10);

/// What is known of an episode whose actor failed.
enum Known {
    /// Its record waits for the disk, and nothing followed from it yet.
    Unwritten(Record),
    /// This goes on outside and will be answered; the record before it is written.
    Awaited(Record),
    /// How far it came is known this far only.
    Interrupted(Looked),
}

impl SessionState {
    /// An actor that replaces one that failed goes on with what it finds.
    pub(super) fn go_on_after_failure(&mut self, me: &ActorRef<SessionMsg>) {
        let found = self.running(|running| {
            let closing = running.closing.as_ref().map(|outcome| outcome.episode);
            (running.plan.clone(), closing, running.opening.clone())
        });
        // A reset whose record waits for the disk is asked for once more.
        if !self.desk.lock().resets.is_empty() {
            let is_ahead = self.shared.config().durability() == Durability::Ahead;
            if !(self.save(is_ahead.then_some(SaveAck::Reset)) && is_ahead) {
                self.forgotten();
            }
        }
        let Some((plan, closing, opening)) = found else { return };
        if let Some(episode) = closing {
            return self.write_verdict(me, episode, self.memory.fence().seq, &plan);
        }
        if let Some(began) = opening {
            return self.begin(me, began);
        }
        let Some(episode) = self.memory.open_episode() else {
            // It cannot be read any more.
            self.desk.lock().running = None;
            return self.desk.dismiss(EngineError::Interrupted);
        };
        let (redoer, seq, id) = (episode.redoer(), episode.seq(), episode.id());
        match self.known(episode.phase(), seq, redoer) {
            Known::Unwritten(record) => {
                self.watch_deadline(me);
                let is_ahead = plan.config.durability() == Durability::Ahead;
                let ack = SaveAck::Record { episode: id, seq, record };
                if !(self.save(is_ahead.then_some(ack)) && is_ahead) {
                    self.feed(me, Event::Persisted { seq, record });
                }
            }
            Known::Awaited(record) => {
                self.watch_deadline(me);
                // What it asks for is under way.
                let _ = self.memory.on(Event::Persisted { seq, record }, &plan, self.shared.now());
            }
            Known::Interrupted(looked) => self.resume(me, redoer, looked),
        }
    }

    fn known(&self, phase: PhaseName, seq: u64, redoer: Redoer) -> Known {
        let is_saving = self.memory.open_episode().is_some_and(|episode| episode.is_saving());
        let known = self.running(|running| match phase {
            PhaseName::Acting if running.awaits(What::Strategy, seq) => Known::Awaited(Record::Attempt),
            PhaseName::Acting if running.begun != Some((seq, What::Strategy)) => Known::Unwritten(Record::Attempt),
            PhaseName::Redoing if is_saving && running.awaits(What::Remedy, seq) => Known::Awaited(Record::Redo),
            PhaseName::Redoing if is_saving && !matches!(running.begun, Some((of, What::Remedy)) if of == seq) => {
                Known::Unwritten(Record::Redo)
            }
            // The host is told its directive again, under the same number.
            PhaseName::Redoing if running.awaits(What::Redo, seq) && redoer != Redoer::Host => {
                Known::Interrupted(Looked::Pending)
            }
            _ => Known::Interrupted(running.result.clone().unwrap_or(Looked::Unknown)),
        });
        known.unwrap_or(Known::Interrupted(Looked::Unknown))
    }

    /// Somebody offers to go on with an episode found on disk.
    pub(super) fn on_adoption(&mut self, me: &ActorRef<SessionMsg>, adoption: Adoption) {
        let Adoption { redoer, client, driver, deadline, wants, reply, permit } = adoption;
        if !self.is_unowned() {
            let _ = reply.send(Err(EngineError::NothingOpen));
            return;
        }
        self.wait_for(wants, reply, permit);
        if let Some(deadline) = deadline {
            self.memory.set_deadline(deadline);
        }
        self.adopt(me, redoer, client, driver);
    }

    /// Whether an episode found on disk waits for somebody to go on with it.
    pub(super) fn is_unowned(&self) -> bool {
        self.memory.open_episode().is_some() && self.desk.lock().running.is_none()
    }

    /// Takes an episode found on disk over, without going on with it.
    pub(super) fn own(&self, client: Option<Arc<dyn SessionClient>>, driver: Option<u64>) {
        let mut running = Running::new(self.shared.plan(), client, driver);
        if let Some(episode) = self.memory.open_episode() {
            running.span = trace::span_of(&self.id, episode.id(), episode.error());
        }
        self.desk.lock().running = Some(running);
    }

    /// Goes on with an episode found on disk; a client is asked first how the last turn ended.
    pub(super) fn adopt(
        &mut self,
        me: &ActorRef<SessionMsg>,
        redoer: Redoer,
        client: Option<Arc<dyn SessionClient>>,
        driver: Option<u64>,
    ) {
        let is_underway = self.memory.open_episode().is_some_and(|episode| episode.is_underway());
        self.put_off_if_overdue();
        self.own(client.clone(), driver);
        match client.filter(|_| is_underway && redoer != Redoer::Host) {
            Some(client) => self.look(redoer, client),
            None => self.resume(me, redoer, Looked::Unknown),
        }
    }

    /// A fleet's waits that ended while it was down must not all go on in the moment in which it is up again.
    fn put_off_if_overdue(&mut self) {
        let now = self.shared.now();
        let Some(episode) = self.memory.open_episode() else { return };
        let Some(until) = episode.waits_until().filter(|until| *until <= now) else { return };
        let begun = episode.attempts().last().map_or(episode.started(), |attempt| attempt.timestamp);
        let fleet = u32::try_from(self.shared.found_open.load(Ordering::Relaxed)).unwrap_or(u32::MAX);
        let window = until.since(begun).min(OVERDUE_APART.saturating_mul(fleet));
        self.memory.put_off(now + window.mul_f64(seed::unit(self.shared.moment().seed)));
    }

    /// The client said how the last turn ended.
    pub(super) fn on_looked(&mut self, me: &ActorRef<SessionMsg>, episode: u64, redoer: Redoer, looked: Looked) {
        let is_awaited = self.is_current(episode)
            && self
                .running(|running| running.outside.take_if(|outside| outside.what == What::Look))
                .flatten()
                .is_some();
        if is_awaited {
            self.resume(me, redoer, looked);
        }
    }

    pub(super) fn resume(&mut self, me: &ActorRef<SessionMsg>, redoer: Redoer, looked: Looked) {
        let Some(plan) = self.plan() else { return };
        let commands = self.memory.resume(redoer, looked, &plan, self.shared.now());
        self.watch_deadline(me);
        self.perform_all(me, commands, &plan);
    }

    pub(super) fn watch_deadline(&mut self, me: &ActorRef<SessionMsg>) {
        let Some((episode, deadline)) =
            self.memory.open_episode().and_then(|episode| Some((episode.id(), episode.deadline()?)))
        else {
            return;
        };
        let event = Event::DeadlinePassed;
        self.deadline.set(me, self.shared.until(deadline), SessionMsg::Event { episode, event });
    }
}
