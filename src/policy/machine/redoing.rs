//! Saving, Carrying, Redoing: the redo and what comes of it.

use std::sync::Arc;
use std::time::Duration;

use super::command::{Command, Record, Redo};
use super::episode::{After, Episode, Next, Phase};
use super::event::{Carrier, Event};
use super::note::NoteKind;
use super::plan::{Plan, Redoer};
use crate::failure::{Category, Details, Domain, ErrorSeverity, Kind, RecoveryAction, RecoveryError, Timestamp};
use crate::policy::{Proof, Remedy, Turn, Unhandled, Verdict};

impl Episode {
    pub(super) fn on_carrying(&mut self, event: Event, plan: &Plan, now: Timestamp) -> Vec<Command> {
        let (saving, not_before, next) = match &self.phase {
            Phase::Saving { not_before, next } => (true, *not_before, next.clone()),
            Phase::Carrying { not_before, next } => (false, *not_before, next.clone()),
            _ => return vec![],
        };
        match event {
            Event::Persisted { seq, record: Record::Redo } if seq == self.seq && saving => match &next.remedy {
                Some(remedy) if self.redoer != Redoer::Host => {
                    let remedy = remedy.clone();
                    self.phase = Phase::Carrying { not_before, next };
                    vec![Command::Carry { seq: self.seq, remedy }]
                }
                _ => self.redo(next, not_before, plan, now),
            },
            Event::Carried { seq, by } if seq == self.seq && !saving => {
                let by_client = by == Carrier::Client;
                if let (Carrier::Turn(instruction), Some(remedy)) = (by, &next.remedy) {
                    self.ride(remedy);
                    self.injections.extend(instruction);
                }
                // A client that went on with another model has redone the turn by that.
                let went_on = by_client && matches!(next.remedy, Some(Remedy::SwitchModel { .. }));
                match (self.redoer, next.after) {
                    (Redoer::Nobody, After::Success) => self.finish(Self::assumed(), now),
                    (Redoer::Nobody, After::Retry) if went_on => self.finish(Self::assumed(), now),
                    (Redoer::Nobody, After::Retry) => self.again(next, plan, now),
                    _ => self.redo(next, not_before, plan, now),
                }
            }
            Event::RemedyFailed { seq, reason } if seq == self.seq && !saving => self.remedy_failed(reason, plan, now),
            Event::Persisted { .. }
            | Event::Carried { .. }
            | Event::RemedyFailed { .. }
            | Event::Answered { .. }
            | Event::RunnerBusy { .. }
            | Event::DelayElapsed { .. }
            | Event::LaneOpen { .. }
            | Event::LaneClosed { .. }
            | Event::TurnWorked { .. }
            | Event::Reported { .. }
            | Event::Superseded { .. }
            | Event::DeadlinePassed
            | Event::GivenUp { .. }
            | Event::Cancelled => vec![],
        }
    }

    /// Puts a remedy that nobody carried out on this and all further redos of the episode.
    fn ride(&mut self, remedy: &Remedy) {
        match remedy {
            Remedy::SwitchModel { model } => self.asks.model = Some(Arc::clone(model)),
            Remedy::Truncate { ratio, .. } => {
                self.asks.truncate_to = Some(self.asks.truncate_to.unwrap_or(1.0) * ratio);
            }
            Remedy::Degrade => self.asks.degraded = true,
            Remedy::Skip => self.asks.skip = true,
            Remedy::Compact { .. } | Remedy::Summarize { .. } | Remedy::Rollback { .. } => {}
        }
    }

    fn redo(&mut self, next: Next, not_before: Timestamp, plan: &Plan, now: Timestamp) -> Vec<Command> {
        if let (Redoer::Host, Some(remedy)) = (self.redoer, &next.remedy) {
            self.ride(remedy);
        }
        self.redos += 1;
        self.epoch += 1;
        self.note(now, NoteKind::Redone { redo: self.redos });
        let turn = Turn {
            session: self.session.clone(),
            redo: self.redos,
            seq: self.seq,
            model: self.asks.model.clone(),
            truncate_to: self.asks.truncate_to,
            degraded: self.asks.degraded,
            skip: self.asks.skip,
            injections: std::mem::take(&mut self.injections),
        };
        self.phase = Phase::Redoing { after: next.after, not_before };
        let remedy = next.remedy.filter(|_| self.redoer == Redoer::Host);
        let mut commands = vec![Command::Redo(Box::new(Redo { turn, remedy, not_before }))];
        commands.extend(self.watch_redo(not_before, plan));
        commands
    }

    /// The wait after which a silent redo is judged by its silence.
    pub(super) fn watch_redo(&self, from: Timestamp, plan: &Plan) -> Option<Command> {
        let patience = match self.redoer {
            Redoer::Host => plan.limits().quiet_period,
            Redoer::Client => plan.limits().turn_timeout,
            // The caller's own task runs the turn; only the deadline bounds it.
            Redoer::Caller | Redoer::Nobody => return None,
        };
        Some(Command::Wait { until: from + patience, epoch: self.epoch })
    }

    pub(super) fn on_redoing(&mut self, event: Event, plan: &Plan, now: Timestamp) -> Vec<Command> {
        let Phase::Redoing { after, .. } = self.phase else { return vec![] };
        match event {
            Event::TurnWorked { seq } if seq == self.seq => self.finish(Verdict::Recovered(Proof::Verified), now),
            Event::Reported { seq, error } if seq == self.seq => self.failed_again(after, error, plan, now),
            // An open-loop host that cannot do the remedy.
            Event::RemedyFailed { seq, reason } if seq == self.seq => self.remedy_failed(reason, plan, now),
            Event::Superseded { seq } if seq == self.seq => self.finish(Self::assumed(), now),
            Event::DelayElapsed { epoch } if epoch == self.epoch => match self.redoer {
                Redoer::Host => self.finish(Self::assumed(), now),
                Redoer::Nobody | Redoer::Caller | Redoer::Client => {
                    let error = Arc::new(self.silent_turn(plan.limits().turn_timeout, now));
                    self.failed_again(after, Some(error), plan, now)
                }
            },
            Event::TurnWorked { .. }
            | Event::Reported { .. }
            | Event::RemedyFailed { .. }
            | Event::DelayElapsed { .. }
            | Event::Answered { .. }
            | Event::RunnerBusy { .. }
            | Event::Persisted { .. }
            | Event::LaneOpen { .. }
            | Event::LaneClosed { .. }
            | Event::Carried { .. }
            | Event::Superseded { .. }
            | Event::DeadlinePassed
            | Event::GivenUp { .. }
            | Event::Cancelled => vec![],
        }
    }

    pub(super) fn failed_again(
        &mut self,
        after: After,
        error: Option<Arc<RecoveryError>>,
        plan: &Plan,
        now: Timestamp,
    ) -> Vec<Command> {
        self.advance(after);
        match error {
            None => self.finish(Verdict::Unhandled(Unhandled::NotDetected), now),
            Some(error) => {
                self.note(now, NoteKind::FailedAgain { kind: error.kind.clone() });
                self.enter_chain_of(error, plan, now)
            }
        }
    }

    /// The failure of a redone turn that did not end in time.
    fn silent_turn(&self, patience: Duration, now: Timestamp) -> RecoveryError {
        RecoveryError {
            category: Category::SessionError,
            kind: Kind::Timeout,
            message: format!("the redone turn did not end within {} s", patience.as_secs()).into(),
            domain: Domain::Environment,
            severity: ErrorSeverity::Medium,
            retryable: true,
            recoverable: true,
            suggested_action: RecoveryAction::Retry,
            diagnosis: "the turn took too long".into(),
            details: Details::default(),
            pattern: "turn-timeout".into(),
            fingerprint: crate::policy::seed::mix(0, 0x7475_726e),
            lane: self.error.lane.clone(),
            model: self.error.model.clone(),
            tool: None,
            timestamp: now,
            raw: None,
        }
    }
}
