//! After a restart: the episode goes on where its last record left it (R10).

use std::sync::Arc;

use super::command::Command;
use super::episode::{After, Episode, Next, Phase, Place};
use super::note::NoteKind;
use super::plan::{Plan, Redoer};
use crate::failure::{RecoveryError, Timestamp};
use crate::policy::{Cause, Verdict};

/// What is known of a redo that was under way at a restart.
#[derive(Debug, Clone, PartialEq)]
pub enum Looked {
    /// Nothing: it counts as failed with the last failure.
    Unknown,
    /// It still is under way, or its host knows how it ended: the result will be reported.
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
    /// `redoer` is who can redo the turn now; `looked` is what is known of a redo that was under way.
    pub fn resume(
        &mut self,
        redoer: Redoer,
        looked: Looked,
        plan: &Plan,
        now: Timestamp,
    ) -> Vec<Command> {
        self.redoer = redoer;
        self.epoch += 1;
        self.note(now, NoteKind::Remark { text: "resumed after a restart".into() });
        if self.deadline.is_some_and(|deadline| now >= deadline) && self.verdict().is_none() {
            return self.exhausted(Cause::Deadline, now);
        }
        if self.forget_changed_places(plan) && self.verdict().is_none() {
            let error = Arc::clone(&self.error);
            return self.enter_chain_of(error, plan, now);
        }
        match self.phase.clone() {
            Phase::Acting { .. } => self.resume_acting(plan, now),
            Phase::Waiting { until, next } => {
                // A clock that was set back must not make the wait longer than any wait may be.
                let until = until.min(now + plan.limits().max_wait);
                self.phase = Phase::Waiting { until, next };
                vec![Command::Wait { until, epoch: self.epoch }]
            }
            Phase::Asking { parked_since, not_before, next } => {
                self.phase = Phase::Parked { since: parked_since.unwrap_or(now), until: now, not_before, next };
                vec![Command::Wait { until: now, epoch: self.epoch }]
            }
            Phase::Parked { since, until, not_before, next } => {
                let until = until.min(now + plan.limits().max_park);
                self.phase = Phase::Parked { since: since.min(now), until, not_before, next };
                vec![Command::Wait { until, epoch: self.epoch }]
            }
            Phase::Saving { next: Next { after, .. }, not_before }
            | Phase::Carrying { next: Next { after, .. }, not_before }
            | Phase::Redoing { after, not_before } => self.resume_redoing(after, not_before, looked, plan, now),
            Phase::Closing { verdict } | Phase::Finished { verdict } => {
                self.phase = Phase::Finished { verdict: verdict.clone() };
                vec![Command::Finish(verdict)]
            }
        }
    }

    fn resume_acting(&mut self, plan: &Plan, now: Timestamp) -> Vec<Command> {
        let Some(step) = self.current_step(plan) else { return self.exhausted(Cause::Chain, now) };
        let Phase::Acting { step: index, attempt, closing, asked, .. } = self.phase else { return vec![] };
        self.phase = Phase::Acting { step: index, attempt, released: true, closing, asked };
        if plan.only_computes(&step.strategy) {
            return vec![self.execution(&step)];
        }
        // Nobody knows whether it acted: it counts as a success, and the redo tells the truth.
        let unknown = crate::policy::Answer::success("unknown after a restart");
        self.answered(unknown, plan, now)
    }

    fn resume_redoing(
        &mut self,
        after: After,
        not_before: Timestamp,
        looked: Looked,
        plan: &Plan,
        now: Timestamp,
    ) -> Vec<Command> {
        match looked {
            Looked::Worked => self.finish(Verdict::Recovered(crate::policy::Proof::Verified), now),
            Looked::Failed(error) => self.failed_again(after, Some(error), plan, now),
            // Whoever redoes the turn knows how that ended, and says so.
            Looked::Pending => {
                self.phase = Phase::Redoing { after, not_before };
                self.watch_redo(now.max(not_before), plan).into_iter().collect()
            }
            Looked::Unknown => {
                let error = Arc::clone(&self.error);
                self.failed_again(after, Some(error), plan, now)
            }
        }
    }

    /// Drops the places of chains that read differently now; tells whether the current one did.
    fn forget_changed_places(&mut self, plan: &Plan) -> bool {
        let same = |key: &_, place: &Place| plan.config.chain(key).is_some_and(|chain| chain.hash() == place.chain);
        self.places.retain(|key, place| same(key, place));
        !self.places.contains_key(&self.chain)
    }
}
