//! What a session's actor does with reports and results (R8).

use std::sync::Arc;

use ractor::ActorRef;

use super::admission::Permit;
use super::desk::{Began, Incoming, ReplyTo, Running, Wants};
use super::events::EngineEvent;
use super::messages::{MetricsMsg, SessionMsg};
use super::outcome::{EngineError, Outcome, Told};
use super::session::SessionState;
use super::trace;
use crate::failure::{Detection, Kind, RecoveryError};
use crate::policy::lane::{Blame, CallEnd};
use crate::policy::machine::{Event, Looked, Redoer};
use crate::policy::session::{Intake, ReportKey};
use crate::policy::{Unhandled, Verdict};

impl SessionState {
    pub(super) fn on_report(&mut self, me: &ActorRef<SessionMsg>, incoming: Incoming) {
        if self.shared.is_closing() {
            let _ = incoming.reply.send(Err(EngineError::ShuttingDown));
            return;
        }
        if incoming.is_orphan() {
            return;
        }
        if self.closing_episode().is_some() {
            // The verdict is being written: what comes now is told it, or opens the next episode.
            self.desk.lock().queue.push_back(incoming);
            return;
        }
        let is_cancelled = matches!(incoming.detection, Detection::Cancelled);
        if self.is_unowned() {
            match incoming.redoer {
                _ if is_cancelled => self.own(None, None),
                Redoer::Host => self.adopt(me, Redoer::Host, None, None),
                redoer => {
                    // It goes on with the episode that was found on disk.
                    self.wait_for(incoming.wants, incoming.reply, incoming.permit);
                    return self.adopt(me, redoer, incoming.client, incoming.driver);
                }
            }
        }
        let intake = self.memory.intake(incoming.key);
        if is_cancelled {
            return self.on_cancelled_turn(me, intake, incoming);
        }
        match intake {
            Intake::Opens => self.open(me, incoming),
            Intake::Result => {
                let seq = self.memory.episode().map_or(0, |episode| episode.seq());
                let error = incoming.detection.into_failure().map(Arc::new);
                self.wait_for(incoming.wants, incoming.reply, incoming.permit);
                self.on_event(me, Event::Reported { seq, error });
            }
            Intake::Joins => self.join(incoming),
            Intake::Stale => self.answer_stale(incoming.reply, incoming.permit),
            Intake::Waits => self.desk.lock().queue.push_back(incoming),
            Intake::Supersedes => {
                self.desk.lock().queue.push_back(incoming);
                self.feed(me, Event::Superseded);
            }
        }
    }

    /// The running episode's verdict answers it too, in the open loop its current directive.
    fn join(&mut self, incoming: Incoming) {
        match (incoming.wants, incoming.redoer, &self.directive) {
            (Wants::Redo, Redoer::Host, Some(directive)) => {
                let _ = incoming.reply.send(Ok(directive.clone()));
            }
            (wants, Redoer::Host, _) => self.wait_for(wants, incoming.reply, incoming.permit),
            _ => self.wait_for(Wants::Verdict, incoming.reply, incoming.permit),
        }
    }

    /// Lets in who waited for the last episode's end. The first that opens another is joined by those that
    /// say nothing of what they belong to: they were sent before its redo, and are not its result.
    pub(super) fn let_in(&mut self, me: &ActorRef<SessionMsg>) {
        let waiting = std::mem::take(&mut self.desk.lock().queue);
        for incoming in waiting {
            let is_unkeyed = incoming.key == ReportKey::default();
            let is_failure = !matches!(incoming.detection, Detection::Cancelled);
            let is_open = self.memory.open_episode().is_some() && self.closing_episode().is_none();
            if is_unkeyed && is_failure && is_open && !incoming.is_orphan() {
                self.join(incoming);
            } else {
                self.on_report(me, incoming);
            }
        }
    }

    /// Something that happened to the episode outside. How a redo ended is remembered until a record
    /// holds what follows, and a stated wait closes its lane (R4).
    pub(super) fn on_event(&mut self, me: &ActorRef<SessionMsg>, event: Event) {
        let seq = match &event {
            Event::Answered { seq, .. }
            | Event::RunnerBusy { seq }
            | Event::Carried { seq, .. }
            | Event::RemedyFailed { seq, .. }
            | Event::TurnWorked { seq }
            | Event::Reported { seq, .. } => *seq,
            _ => return self.feed(me, event),
        };
        let is_redoing = self.memory.open_episode().is_some_and(|episode| episode.seq() == seq && episode.is_redoing());
        let looked = match &event {
            Event::TurnWorked { .. } => Some(Looked::Worked),
            Event::Reported { error: Some(error), .. } => Some(Looked::Failed(Arc::clone(error))),
            _ => None,
        };
        self.running(|running| {
            // It has ended by itself.
            if let Some(outside) = running.outside.as_mut().filter(|outside| outside.seq == seq) {
                outside.task = None;
                running.outside = None;
            }
            if is_redoing && looked.is_some() {
                running.result = looked;
            }
        });
        if let Event::Reported { error: Some(error), .. } = &event
            && is_redoing
        {
            self.hold_lane(error);
        }
        if is_redoing {
            self.tell_lane(&event);
        }
        self.feed(me, event);
    }

    /// A host cannot do the remedy; one that is out of date gets the current directive (R8).
    pub(super) fn on_declined(
        &mut self,
        me: &ActorRef<SessionMsg>,
        seq: u64,
        reason: Arc<str>,
        reply: Option<(ReplyTo, Permit)>,
    ) {
        if self.is_unowned() {
            self.adopt(me, Redoer::Host, None, None);
        }
        let is_current = self.is_redoing(seq);
        match reply {
            Some((reply, permit)) if is_current => self.wait_for(Wants::Redo, reply, permit),
            Some((reply, permit)) => self.answer_stale(reply, permit),
            None => {}
        }
        if is_current {
            self.on_event(me, Event::RemedyFailed { seq, reason });
        }
    }

    pub(super) fn on_worked(&mut self, me: &ActorRef<SessionMsg>, seq: u64, reply: Option<(ReplyTo, Permit)>) {
        if self.is_unowned() {
            self.adopt(me, Redoer::Host, None, None);
        }
        let is_current = self.is_redoing(seq);
        match reply {
            Some((reply, permit)) if is_current => self.wait_for(Wants::Verdict, reply, permit),
            Some((reply, permit)) => self.answer_stale(reply, permit),
            None => {}
        }
        if is_current {
            self.on_event(me, Event::TurnWorked { seq });
        }
    }

    fn is_redoing(&self, seq: u64) -> bool {
        self.memory.open_episode().is_some_and(|episode| episode.seq() == seq && episode.is_redoing())
    }

    /// A person or the host stopped the turn: it is never recovered (R1). Only the running episode's own
    /// turn stops the episode.
    fn on_cancelled_turn(&mut self, me: &ActorRef<SessionMsg>, intake: Intake, incoming: Incoming) {
        match intake {
            Intake::Result | Intake::Joins => {
                self.wait_for(Wants::Verdict, incoming.reply, incoming.permit);
                self.feed(me, Event::Cancelled);
            }
            Intake::Stale => self.answer_stale(incoming.reply, incoming.permit),
            Intake::Opens | Intake::Waits => self.refuse(incoming.reply, Verdict::Cancelled, None, false),
            Intake::Supersedes => {
                self.refuse(incoming.reply, Verdict::Cancelled, None, false);
                self.feed(me, Event::Superseded);
            }
        }
    }

    fn open(&mut self, me: &ActorRef<SessionMsg>, incoming: Incoming) {
        let Incoming { detection, key, redoer, client, deadline, wants, driver, reply, permit } = incoming;
        let Some(error) = detection.into_failure().map(Arc::new) else {
            return self.refuse(reply, Verdict::Unhandled(Unhandled::NotDetected), None, false);
        };
        let plan = self.shared.plan(&self.id);
        if driver.is_none() {
            self.lane_saw(&error);
        }
        self.hold_lane(&error);
        let detected = error.kind.clone();
        let began = Began { error, redoer, turn: key.turn, deadline };
        {
            // Whoever waits is told whatever happens from here on.
            let mut desk = self.desk.lock();
            let mut running = Running::new(plan, client, driver);
            running.opening = Some(began.clone());
            running.uncounted = Some(detected);
            desk.running = Some(running);
        }
        self.wait_for(wants, reply, permit);
        self.begin(me, began);
        // An episode that is over by now was counted whole.
        if let Some(kind) = self.uncounted() {
            self.count(MetricsMsg::Detected { kind });
        }
    }

    /// The failure that opened the running episode, once, for the metrics.
    pub(super) fn uncounted(&self) -> Option<Kind> {
        self.running(|running| running.uncounted.take()).flatten()
    }

    /// Opens an episode, or ends what would have been one.
    pub(super) fn begin(&mut self, me: &ActorRef<SessionMsg>, began: Began) {
        let Some(plan) = self.plan() else { return };
        let Began { error, redoer, turn, deadline } = began;
        let (at, before) = (self.shared.moment(), self.memory.history().clone());
        match self.memory.open(&self.id, Arc::clone(&error), redoer, turn, deadline, &plan, at) {
            Err(refusal) => {
                let mut outcome = Outcome::without_episode(self.id.clone(), refusal.verdict, Some(error), at.now);
                outcome.notes = refusal.notes;
                if *self.memory.history() == before {
                    return self.tell_end(me, Arc::new(outcome), refusal.calls_host);
                }
                // What the limits count is written before anybody is told, like a verdict.
                self.running(|running| {
                    running.closing = Some(Box::new(outcome));
                    running.calls_host = Some(refusal.calls_host);
                });
                self.write_verdict(me, 0, self.memory.fence().seq, &plan);
            }
            Ok(commands) => {
                let episode = self.memory.episodes();
                self.running(|running| running.span = trace::span_of(&self.id, episode, &error));
                if self.shared.events.is_heard() {
                    let (session, kind) = (self.id.clone(), error.kind.clone());
                    self.shared.events.publish(EngineEvent::Opened { session, episode, kind });
                }
                self.watch_deadline(me);
                self.perform_all(me, commands, &plan);
            }
        }
    }

    /// How a redo ended is evidence about its lane. A caller's own loop has told it.
    fn tell_lane(&self, event: &Event) {
        let Some(episode) = self.memory.episode().filter(|episode| episode.redoer() != Redoer::Caller) else { return };
        match event {
            Event::TurnWorked { .. } => {
                if let Some(lane) = episode.redo_lane() {
                    let _ = self.shared.lanes.ended(&lane, &self.id, CallEnd::Worked);
                }
            }
            Event::Reported { error: Some(error), .. } => self.lane_saw(error),
            _ => {}
        }
    }

    fn lane_saw(&self, error: &RecoveryError) {
        if let Some(lane) = &error.lane {
            // An error is the engine's end.
            let _ = self.shared.lanes.ended(lane, &self.id, CallEnd::Failed(Blame::of(error)));
        }
    }

    /// The server stated a wait: nobody's redo goes to its lane before it ends (R4).
    fn hold_lane(&self, error: &RecoveryError) {
        let (Some(lane), Some(wait)) = (&error.lane, error.details.retry_after) else { return };
        // One server's word must not close a lane for ever.
        let longest = self.shared.config().limits().max_park;
        // An error is the engine's end.
        let _ = self.shared.lanes.hold(lane, error.timestamp + wait.min(longest));
    }

    /// Answers a failure that opens no episode.
    fn refuse(&mut self, reply: ReplyTo, verdict: Verdict, error: Option<Arc<RecoveryError>>, calls_host: bool) {
        let outcome = Outcome::without_episode(self.id.clone(), verdict, error, self.shared.now());
        let outcome = Arc::new(outcome);
        self.announce(&outcome, calls_host);
        let _ = reply.send(Ok(Told::Stop(outcome)));
    }

    /// Out of date: the current directive or the last verdict.
    fn answer_stale(&mut self, reply: ReplyTo, permit: Permit) {
        if let Some(directive) = &self.directive {
            let _ = reply.send(Ok(directive.clone()));
        } else if self.memory.open_episode().is_some() || self.closing_episode().is_some() {
            self.wait_for(Wants::Redo, reply, permit);
        } else {
            self.tell_last(reply);
        }
    }
}
