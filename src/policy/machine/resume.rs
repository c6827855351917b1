//! After a restart: the episode goes on where its last record left it (R10).

use std::sync::Arc;

use super::command::Command;
use super::episode::{After, Episode, Next, Phase, Place};
use super::note::NoteKind;
use super::plan::{Plan, Redoer};
use crate::failure::{RecoveryError, Timestamp};
use crate::policy::{Answer, Cause, Choice, Proof, Verdict};

/// What is known of a redo that was under way at a restart.
#[derive(Debug, Clone, PartialEq)]
pub enum Looked {
    /// Nothing: it counts as failed with the last failure.
    Unknown,
    /// It is still under way: its result will be reported.
    Pending,
    /// The client looked: it worked.
    Worked,
    /// The client looked: it failed.
    Failed(Arc<RecoveryError>),
}

impl Episode {
    /// Goes on after a restart. The budget is kept; a chain that reads differently now starts at
    /// step 1; an attempt that may have had its effect is never made again.
    ///
    /// `redoer` is who can redo the turn now; `looked` is what is known of a redo that was under way. An
    /// open-loop host is told its directive again, under the same `seq`.
    pub fn resume(&mut self, redoer: Redoer, looked: Looked, plan: &Plan, now: Timestamp) -> Vec<Command> {
        if let Some(verdict) = self.verdict().cloned() {
            self.phase = Phase::Finished { verdict: verdict.clone() };
            return vec![Command::Finish(verdict)];
        }
        if self.redoer != Redoer::Host
            && let Phase::Redoing { directive, .. } = &mut self.phase
        {
            // It was a client's to redo: no host was told.
            *directive = None;
        }
        self.redoer = redoer;
        self.new_epoch();
        self.note(now, NoteKind::Remark { text: "resumed after a restart".into() });
        self.spend_for_doubt(plan, now);
        let may_have_been_redone =
            matches!(self.phase, Phase::Saving { .. } | Phase::Carrying { .. } | Phase::Redoing { .. });
        if may_have_been_redone && looked == Looked::Worked {
            return self.finish(Verdict::Recovered(Proof::Verified), now);
        }
        if self.deadline.is_some_and(|deadline| now >= deadline) {
            return self.exhausted(Cause::Deadline, now);
        }
        self.forget_changed_places(plan);
        if may_have_been_redone {
            return self.resume_redoing(looked, plan, now);
        }
        if !self.stands_in_its_chain(plan) {
            return self.enter_chain_of(Arc::clone(&self.error), plan, now);
        }
        self.resume_before_redo(plan, now)
    }

    /// Newer records of the episode may be lost: a restart must not refill the budget, so that half of it
    /// counts as spent once the episode goes on.
    pub fn doubt(&mut self) {
        self.doubted = true;
    }

    fn spend_for_doubt(&mut self, plan: &Plan, now: Timestamp) {
        if std::mem::take(&mut self.doubted) {
            self.executions = self.executions.max(plan.limits().max_total_attempts.div_ceil(2));
            let text = "its log was damaged: half of max_total_attempts counts as spent";
            self.note(now, NoteKind::Remark { text: text.into() });
        }
    }

    /// Gives the episode another deadline.
    pub fn set_deadline(&mut self, deadline: Timestamp) {
        self.deadline = Some(deadline);
    }

    /// Lets a wait that ended while nobody looked last until this moment: many that ended so would go on at
    /// once.
    pub fn put_off(&mut self, to: Timestamp) {
        if let Phase::Waiting { until, .. } | Phase::Parked { until, .. } = &mut self.phase {
            *until = (*until).max(to);
        }
    }

    fn resume_before_redo(&mut self, plan: &Plan, now: Timestamp) -> Vec<Command> {
        match self.phase.clone() {
            Phase::Acting { step, attempt, closing, asked, .. } => {
                self.phase = Phase::Acting { step, attempt, released: true, closing, asked };
                self.resume_acting(plan, now)
            }
            Phase::Waiting { until, next } if self.redoer == Redoer::Host => self.after_wait(next, until, plan, now),
            Phase::Waiting { until, next } => {
                // A clock that was set back must not make the wait longer than any wait may be.
                let until = until.min(now + plan.limits().max_wait);
                self.phase = Phase::Waiting { until, next };
                vec![Command::Wait { until, epoch: self.epoch }]
            }
            Phase::Asking { next, .. } | Phase::Parked { next, .. } if self.redoer == Redoer::Nobody => {
                self.without_redo(next, plan, now)
            }
            Phase::Asking { parked_since, not_before, next } => {
                self.ask(next, parked_since.map(|since| since.min(now)), not_before, now)
            }
            Phase::Parked { since, not_before, next, .. } if self.redoer == Redoer::Host => {
                self.ask(next, Some(since.min(now)), not_before, now)
            }
            Phase::Parked { since, until, not_before, next } => {
                let until = until.min(now + plan.limits().max_park);
                self.phase = Phase::Parked { since: since.min(now), until, not_before, next };
                vec![Command::Wait { until, epoch: self.epoch }]
            }
            Phase::Saving { .. }
            | Phase::Carrying { .. }
            | Phase::Redoing { .. }
            | Phase::Closing { .. }
            | Phase::Finished { .. } => vec![],
        }
    }

    fn resume_acting(&mut self, plan: &Plan, now: Timestamp) -> Vec<Command> {
        let Some(step) = self.current_step(plan) else { return self.exhausted(Cause::Chain, now) };
        if plan.only_computes(&step.strategy) {
            return vec![self.execution(&step)];
        }
        // Nobody knows whether it acted: it counts as a success, and the redo tells the truth.
        self.answered(Answer::success("unknown after a restart"), plan, now)
    }

    fn resume_redoing(&mut self, looked: Looked, plan: &Plan, now: Timestamp) -> Vec<Command> {
        let (after, not_before) = match &self.phase {
            Phase::Saving { next: Next { after, .. }, not_before }
            | Phase::Carrying { next: Next { after, .. }, not_before }
            | Phase::Redoing { after, not_before, .. } => (*after, *not_before),
            Phase::Acting { .. }
            | Phase::Waiting { .. }
            | Phase::Asking { .. }
            | Phase::Parked { .. }
            | Phase::Closing { .. }
            | Phase::Finished { .. } => return vec![],
        };
        if looked == Looked::Pending && self.redoer != Redoer::Host {
            return self.still_redoing(plan, now);
        }
        if let Looked::Failed(error) = looked {
            return self.failed_again(after, Some(error), plan, now);
        }
        match (self.redoer, self.phase.clone()) {
            // The host knows whether it has redone the turn: it is told the same again, and says so.
            (Redoer::Host, Phase::Saving { next, not_before }) => self.redo(next, not_before, plan, now),
            (Redoer::Host, Phase::Redoing { directive: Some(directive), .. }) => {
                let watch = self.watch_redo(now.max(not_before), plan);
                [Command::Redo(directive)].into_iter().chain(watch).collect()
            }
            _ => self.unknown_redo(after, plan, now),
        }
    }

    /// The redo is under way, although its record, which is older, may say that it is about to begin.
    fn still_redoing(&mut self, plan: &Plan, now: Timestamp) -> Vec<Command> {
        match self.phase.clone() {
            Phase::Saving { next, not_before } | Phase::Carrying { next, not_before } => {
                let mut commands = self.redo(next, not_before, plan, now);
                commands.retain(|command| !matches!(command, Command::Redo(_)));
                commands
            }
            Phase::Redoing { not_before, .. } => self.watch_redo(now.max(not_before), plan).into_iter().collect(),
            Phase::Acting { .. }
            | Phase::Waiting { .. }
            | Phase::Asking { .. }
            | Phase::Parked { .. }
            | Phase::Closing { .. }
            | Phase::Finished { .. } => vec![],
        }
    }

    /// A redo of which nothing is known counts as failed, with the last error.
    fn unknown_redo(&mut self, after: After, plan: &Plan, now: Timestamp) -> Vec<Command> {
        let error = Arc::clone(&self.error);
        self.failed_again(after, Some(error), plan, now)
    }

    /// Drops the places of chains that read differently now.
    fn forget_changed_places(&mut self, plan: &Plan) {
        let same = |key: &_, place: &Place| plan.config.chain(key).is_some_and(|chain| chain.hash() == place.chain);
        self.places.retain(|key, place| same(key, place));
    }

    /// Whether the failure would still choose the chain that it is in, and that has its place.
    fn stands_in_its_chain(&self, plan: &Plan) -> bool {
        let chosen = plan.config.choose(&self.error);
        matches!(chosen, Choice::Chain { chain, .. } if chain.key == self.chain)
            && self.places.contains_key(&self.chain)
    }
}
