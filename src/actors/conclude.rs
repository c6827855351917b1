//! How an episode ends: its verdict is written, then told, and the next report is let in.

use std::sync::Arc;

use ractor::ActorRef;
use tokio::sync::oneshot;

use super::desk::{ReplyTo, Running};
use super::events::EngineEvent;
use super::messages::{MetricsMsg, SaveAck, SessionMsg};
use super::outcome::{EngineError, Outcome, Told};
use super::session::SessionState;
use super::trace;
use crate::policy::machine::{Event, Plan, Record};
use crate::policy::{Durability, Unhandled, Verdict};

impl SessionState {
    /// The verdict is known: it is told once its record is as durable as the configuration asks.
    pub(super) fn close(&mut self, me: &ActorRef<SessionMsg>, seq: u64, plan: &Plan) {
        self.wait.stop();
        self.deadline.stop();
        self.collect_notes();
        let Some(episode) = self.memory.episode() else { return };
        let Some(verdict) = episode.verdict().cloned() else { return };
        let (id, now) = (episode.id(), self.shared.now());
        self.running(|running| {
            let notes = std::mem::take(&mut running.notes);
            running.closing = Some(Box::new(Outcome::of(episode, verdict, notes, true, now)));
        });
        self.write_verdict(me, id, seq, plan);
    }

    /// Writes the verdict's record, and concludes at once where nobody waits for the disk.
    pub(super) fn write_verdict(&mut self, me: &ActorRef<SessionMsg>, episode: u64, seq: u64, plan: &Plan) {
        if plan.config.durability() != Durability::Ahead {
            self.is_unsaved = true;
            return self.conclude(me);
        }
        let ack = SaveAck::Record { episode, seq, record: Record::Verdict };
        if !self.save(Some(ack)) {
            self.conclude(me);
        }
    }

    /// Tells everybody who waits how the episode ended, and lets the next report in.
    pub(super) fn conclude(&mut self, me: &ActorRef<SessionMsg>) {
        let closing = self.running(|running| {
            let durable = running.durable;
            running.closing.take().map(|outcome| Outcome { durable, ..*outcome })
        });
        let Some(outcome) = closing.flatten() else { return };
        self.memory.close();
        // Published before anybody is told.
        self.save_if_due();
        let outcome = Arc::new(outcome);
        if outcome.episode > 0 {
            self.last = Some(Arc::clone(&outcome));
        }
        let by_limit = self.running(|running| running.calls_host).flatten();
        let calls_host = by_limit.unwrap_or(matches!(outcome.verdict, Verdict::Escalated { .. }));
        self.tell_end(me, outcome, calls_host);
    }

    /// Tells an end to everybody who waits, and lets the next report in.
    pub(super) fn tell_end(&mut self, me: &ActorRef<SessionMsg>, outcome: Arc<Outcome>, calls_host: bool) {
        self.directive = None;
        self.announce(&outcome, calls_host);
        let told = Told::Stop(outcome);
        let (running, waiters) = {
            let mut desk = self.desk.lock();
            (desk.running.take(), desk.take(&told))
        };
        drop::<Option<Running>>(running);
        for waiter in waiters {
            let _ = waiter.reply.send(Ok(told.clone()));
        }
        self.let_in(me);
        self.watch_idleness(me);
    }

    pub(super) fn announce(&self, outcome: &Arc<Outcome>, calls_host: bool) {
        self.count(MetricsMsg::Ended { detected: self.uncounted(), outcome: Arc::clone(outcome) });
        if self.shared.events.is_heard() {
            self.shared.events.publish(EngineEvent::Ended(Arc::clone(outcome)));
        }
        if outcome.episode == 0 {
            trace::refused(&self.id, &outcome.verdict);
            self.shared.journal.refused(&self.id, &outcome.notes, &outcome.verdict, outcome.ended);
        }
        if calls_host {
            self.shared.escalated(outcome);
        }
    }

    /// Tells the metrics, if they are wanted.
    pub(super) fn count(&self, message: MetricsMsg) {
        if self.shared.config().collect_metrics()
            && let Some(metrics) = self.shared.metrics()
        {
            let _ = metrics.send_message(message);
        }
    }

    /// How the last episode ended.
    pub(super) fn tell_last(&self, reply: ReplyTo) {
        let outcome = self.last.clone().unwrap_or_else(|| {
            let (kept, now) = (self.memory.kept(), self.shared.now());
            let verdict = self.memory.last_verdict().cloned().unwrap_or(Verdict::Unhandled(Unhandled::NotDetected));
            let error = kept.map(|kept| Arc::clone(&kept.error));
            let at = kept.map_or(now, |kept| kept.at);
            let mut outcome = Outcome::without_episode(self.id.clone(), verdict, error, at);
            outcome.episode = self.memory.episodes();
            if let Some(kept) = kept {
                outcome.executions = kept.executions;
                outcome.attempts.clone_from(&kept.attempts);
                outcome.injections.clone_from(&kept.injections);
            }
            Arc::new(outcome)
        });
        let _ = reply.send(Ok(Told::Stop(outcome)));
    }

    /// Stops the open episode, also one that nobody goes on with; tells whether there was one.
    pub(super) fn cancel(&mut self, me: &ActorRef<SessionMsg>) -> bool {
        if self.memory.open_episode().is_none() {
            return false;
        }
        if self.is_unowned() {
            self.own(None, None);
        }
        self.feed(me, Event::Cancelled);
        true
    }

    pub(super) fn on_abandoned(&mut self, me: &ActorRef<SessionMsg>, driver: u64) {
        // Its reports that wait are dropped in turn.
        self.desk.prune();
        let is_its = self.running(|running| running.driver == Some(driver)) == Some(true);
        if is_its && !self.shared.is_closing() {
            self.feed(me, Event::Cancelled);
        }
    }

    /// Forgets the session (R11): its episode is cancelled, its window and strikes are cleared.
    pub(super) fn reset(&mut self, me: &ActorRef<SessionMsg>, done: oneshot::Sender<()>) {
        self.cancel(me);
        let before = self.memory.clone();
        self.memory.reset();
        self.last = None;
        if self.memory == before {
            let _ = done.send(());
            return;
        }
        let is_ahead = self.shared.config().durability() == Durability::Ahead;
        self.desk.lock().resets.push(done);
        if !(self.save(is_ahead.then_some(SaveAck::Reset)) && is_ahead) {
            self.forgotten();
        }
    }

    /// Tells those who asked that the session is forgotten.
    pub(super) fn forgotten(&self) {
        let resets = std::mem::take(&mut self.desk.lock().resets);
        for done in resets {
            let _ = done.send(());
        }
    }

    /// The engine shuts down: whoever waits is told, the episode stays open.
    pub(super) fn suspend(&mut self) {
        self.wait.stop();
        self.deadline.stop();
        if self.memory.open_episode().is_some() {
            self.save(None);
        }
        self.suspended = true;
        self.desk.dismiss(EngineError::ShuttingDown);
        // What goes on outside is nobody's any more.
        let running = self.desk.lock().running.take();
        drop(running);
    }
}
