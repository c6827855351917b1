//! Waiting, Asking, Parked: what stands between an answer and its redo.

use std::sync::Arc;
use std::time::Duration;

use super::acting::fit_to_keep;
use super::command::{Command, Record};
use super::episode::{After, Episode, Next, Phase};
use super::event::Event;
use super::note::NoteKind;
use super::plan::{Plan, Redoer};
use crate::failure::Timestamp;
use crate::policy::{Remedy, Step, runnable};

impl Episode {
    /// The shortest time parked: a lane that names a time already past is not asked in a spin.
    const SHORTEST_PARK: Duration = Duration::from_millis(100);

    /// Heads for the redo: first the wait that the answer or the server asks for (R4).
    pub(super) fn head_for_redo(&mut self, next: Next, asked: Duration, plan: &Plan, now: Timestamp) -> Vec<Command> {
        let stated = if leaves_lane(&next) { Duration::ZERO } else { self.stated_wait(now) };
        let max_wait = plan.limits().max_wait;
        let (delay, because) = match asked {
            _ if stated > asked.min(max_wait) => (stated, "the server stated it"),
            _ if asked > max_wait => (max_wait, "the strategy, cut to max_wait_ms"),
            _ => (asked, "the strategy"),
        };
        if let Some(bound) = self.forbids(delay, plan, now) {
            self.note(now, NoteKind::WaitRefused { delay, because: bound.into() });
            return self.next_step(plan, now);
        }
        if delay > Duration::ZERO {
            self.note(now, NoteKind::Waits { delay, because: because.into() });
        }
        let until = now + delay;
        if delay.is_zero() || self.redoer == Redoer::Host {
            return self.after_wait(next, until, plan, now);
        }
        self.new_epoch();
        self.phase = Phase::Waiting { until, next };
        // Written in passing, so that the wait goes on where it was after a crash.
        vec![Command::Persist { seq: self.seq, record: Record::Attempt }, Command::Wait { until, epoch: self.epoch }]
    }

    /// What is left of the wait that the server stated with the current failure.
    fn stated_wait(&self, now: Timestamp) -> Duration {
        let stated = self.error.details.retry_after.unwrap_or_default();
        (self.error.timestamp + stated).since(now)
    }

    /// Which bound forbids a wait; a deadline is remembered as the cause (R4).
    fn forbids(&mut self, delay: Duration, plan: &Plan, now: Timestamp) -> Option<&'static str> {
        if self.deadline.is_some_and(|deadline| now + delay > deadline) {
            self.refused_by_deadline = true;
            return Some("it would pass the deadline");
        }
        (delay > plan.limits().max_wait).then_some("it is longer than max_wait_ms")
    }

    pub(super) fn on_waiting(&mut self, event: Event, plan: &Plan, now: Timestamp) -> Vec<Command> {
        let Phase::Waiting { until, next } = &self.phase else { return vec![] };
        match event {
            Event::DelayElapsed { epoch } if epoch == self.epoch => {
                let (until, next) = (*until, next.clone());
                self.after_wait(next, until, plan, now)
            }
            Event::DelayElapsed { .. }
            | Event::Answered { .. }
            | Event::RunnerBusy { .. }
            | Event::Persisted { .. }
            | Event::LaneOpen { .. }
            | Event::LaneClosed { .. }
            | Event::Carried { .. }
            | Event::RemedyFailed { .. }
            | Event::TurnWorked { .. }
            | Event::Reported { .. }
            | Event::Superseded
            | Event::DeadlinePassed
            | Event::GivenUp { .. }
            | Event::Cancelled => vec![],
        }
    }

    pub(super) fn after_wait(
        &mut self,
        next: Next,
        not_before: Timestamp,
        plan: &Plan,
        now: Timestamp,
    ) -> Vec<Command> {
        if self.redoer == Redoer::Nobody {
            return self.without_redo(next, plan, now);
        }
        self.ask(next, None, not_before, now)
    }

    /// Where nobody can redo: the remedy alone, its record first.
    pub(super) fn without_redo(&mut self, next: Next, plan: &Plan, now: Timestamp) -> Vec<Command> {
        if next.remedy.is_some() {
            return self.save_until(next, now, now);
        }
        self.instead_of_redo(next.after, plan, now)
    }

    /// What takes a redo's place where nobody can redo: success is recovery (R6), and after `retry` the
    /// strategy runs again (R5).
    pub(super) fn instead_of_redo(&mut self, after: After, plan: &Plan, now: Timestamp) -> Vec<Command> {
        match after {
            After::Success => self.finish(Self::assumed(), now),
            After::Retry => {
                self.advance(after);
                self.act(plan, now)
            }
        }
    }

    pub(super) fn ask(
        &mut self,
        next: Next,
        parked_since: Option<Timestamp>,
        not_before: Timestamp,
        now: Timestamp,
    ) -> Vec<Command> {
        match self.error.lane.clone().filter(|_| !leaves_lane(&next)) {
            None => self.save_until(next, not_before, now),
            Some(lane) => {
                self.new_epoch();
                self.phase = Phase::Asking { parked_since, not_before, next };
                vec![Command::AskLane { lane, epoch: self.epoch }]
            }
        }
    }

    pub(super) fn on_lane(&mut self, event: Event, plan: &Plan, now: Timestamp) -> Vec<Command> {
        let (parked_since, not_before, next) = match &self.phase {
            Phase::Asking { parked_since, not_before, next } => (*parked_since, *not_before, next.clone()),
            Phase::Parked { since, not_before, next, .. } => (Some(*since), *not_before, next.clone()),
            _ => return vec![],
        };
        let parked = matches!(self.phase, Phase::Parked { .. });
        match event {
            Event::LaneOpen { epoch } if epoch == self.epoch => {
                self.thawed = parked_since.is_some();
                self.save_until(next, not_before, now)
            }
            Event::LaneClosed { epoch, until } if epoch == self.epoch && !parked => {
                self.park(next, parked_since.unwrap_or(now), not_before, until, plan, now)
            }
            Event::DelayElapsed { epoch } if epoch == self.epoch && parked => {
                self.ask(next, parked_since, not_before, now)
            }
            Event::LaneOpen { .. }
            | Event::LaneClosed { .. }
            | Event::DelayElapsed { .. }
            | Event::Answered { .. }
            | Event::RunnerBusy { .. }
            | Event::Persisted { .. }
            | Event::Carried { .. }
            | Event::RemedyFailed { .. }
            | Event::TurnWorked { .. }
            | Event::Reported { .. }
            | Event::Superseded
            | Event::DeadlinePassed
            | Event::GivenUp { .. }
            | Event::Cancelled => vec![],
        }
    }

    fn park(
        &mut self,
        next: Next,
        since: Timestamp,
        not_before: Timestamp,
        until: Timestamp,
        plan: &Plan,
        now: Timestamp,
    ) -> Vec<Command> {
        let last = since + plan.limits().max_park;
        let until = until.max(now + Self::SHORTEST_PARK);
        if let Some(commands) = self.fall_back(since, until, plan, now) {
            return commands;
        }
        if now >= last || (self.redoer == Redoer::Host && until > last) {
            self.note(now, NoteKind::Remark { text: "the lane stayed closed for longer than max_park".into() });
            return self.next_step(plan, now);
        }
        let until = until.min(last);
        if self.deadline.is_some_and(|deadline| until > deadline) {
            self.refused_by_deadline = true;
            let because = "the lane stays closed until after the deadline".into();
            self.note(now, NoteKind::WaitRefused { delay: until.since(now), because });
            return self.next_step(plan, now);
        }
        // Said once: while it is parked the question is asked again and again.
        if let Some(lane) = self.error.lane.clone().filter(|_| since == now) {
            self.note(now, NoteKind::Parked { lane, until });
        }
        if self.redoer == Redoer::Host {
            // Waiting is the host's, and `admit` asks the lane again. A lane that is closed for no longer
            // than the redo would have waited by itself has not held it up.
            self.thawed = until > not_before;
            return self.save_until(next, not_before.max(until), now);
        }
        // Under the question's epoch: the lane may still answer it, by opening early.
        self.phase = Phase::Parked { since, until, not_before, next };
        vec![Command::Persist { seq: self.seq, record: Record::Attempt }, Command::Wait { until, epoch: self.epoch }]
    }

    /// Goes on with the chain's next `fallback_model` rather than wait for the lane for longer than is wanted.
    fn fall_back(&mut self, since: Timestamp, until: Timestamp, plan: &Plan, now: Timestamp) -> Option<Vec<Command>> {
        let after = plan.limits().lane_fallback_after;
        if after.is_zero() || until.since(since) <= after {
            return None;
        }
        let place = self.places.get(&self.chain).copied()?;
        let chain = plan.config.chain(&self.chain)?;
        let is_usable = |step: &Step| &*step.strategy == "fallback_model" && runnable(step, &self.error, chain).is_ok();
        let ahead = chain.steps.iter().skip(place.step + 1).position(is_usable)?;
        let step = place.step + 1 + ahead;
        let text = "the lane stays closed for longer than lane_fallback_after_ms: another model's lane is tried";
        self.note(now, NoteKind::Remark { text: text.into() });
        if let Some(place) = self.places.get_mut(&self.chain) {
            (place.step, place.attempt) = (step, 1);
        }
        Some(self.act(plan, now))
    }

    /// Writes the redo's record; nothing of it happens before (R10).
    fn save_until(&mut self, next: Next, not_before: Timestamp, now: Timestamp) -> Vec<Command> {
        self.new_epoch();
        self.phase = Phase::Saving { not_before: not_before.max(now), next };
        vec![Command::Persist { seq: self.seq, record: Record::Redo }]
    }

    pub(super) fn remedy_failed(&mut self, reason: Arc<str>, plan: &Plan, now: Timestamp) -> Vec<Command> {
        self.note(now, NoteKind::RemedyFailed { reason: fit_to_keep(&reason) });
        self.next_step(plan, now)
    }
}

/// Another model is another lane: this lane's waits do not bind it.
fn leaves_lane(next: &Next) -> bool {
    matches!(next.remedy, Some(Remedy::SwitchModel { .. }))
}
