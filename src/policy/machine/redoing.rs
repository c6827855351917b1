//! Saving, Carrying, Redoing: the redo and what comes of it.

use std::sync::Arc;
use std::time::Duration;

use super::command::{Command, Record, Redo};
use super::episode::{After, Asks, Episode, Next, Phase};
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
                    self.asks.ride(remedy);
                    self.inject(instruction);
                }
                if self.redoer == Redoer::Nobody {
                    // A client that went on with another model has redone the turn by that.
                    if by_client && matches!(next.remedy, Some(Remedy::SwitchModel { .. })) {
                        return self.finish(Self::assumed(), now);
                    }
                    return self.instead_of_redo(next.after, plan, now);
                }
                self.redo(next, not_before, plan, now)
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
            | Event::Superseded
            | Event::DeadlinePassed
            | Event::GivenUp { .. }
            | Event::Cancelled => vec![],
        }
    }

    pub(super) fn redo(&mut self, next: Next, not_before: Timestamp, plan: &Plan, now: Timestamp) -> Vec<Command> {
        let is_hosts = self.redoer == Redoer::Host;
        let remedy = next.remedy.filter(|_| is_hosts);
        let mut asks = self.asks.clone();
        if let Some(remedy) = &remedy {
            // On this turn only: a host that declines the remedy is not asked for it again.
            asks.ride(remedy);
        }
        self.redos = self.redos.saturating_add(1);
        // The chain goes on from this redo; what was refused before it is no cause any more.
        self.refused_by_deadline = false;
        self.new_epoch();
        self.note(now, NoteKind::Redone { redo: self.redos });
        let turn = Turn {
            session: self.session.clone(),
            redo: self.redos,
            seq: self.seq,
            model: asks.model,
            truncate_to: asks.truncate_to,
            degraded: asks.degraded,
            skip: asks.skip,
            injections: std::mem::take(&mut self.injections),
        };
        let redo = Box::new(Redo { turn, remedy, not_before });
        let may_be_refused = is_hosts || self.redoer == Redoer::Client;
        self.phase = Phase::Redoing { after: next.after, not_before, directive: may_be_refused.then(|| redo.clone()) };
        let mut commands = vec![Command::Redo(redo)];
        commands.extend(self.watch_redo(not_before, plan));
        commands
    }

    /// What a redo that did not happen was to deliver goes with the next one (R12).
    fn take_back_injections(&mut self) {
        if let Phase::Redoing { directive: Some(directive), .. } = &mut self.phase {
            let undelivered = std::mem::take(&mut directive.turn.injections);
            self.inject(undelivered);
        }
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
            // An open-loop host that cannot do the remedy, or a client that cannot redo the turn. A caller's
            // turn is under way already: what fails late does not break it off.
            Event::RemedyFailed { seq, reason }
                if seq == self.seq && matches!(self.redoer, Redoer::Host | Redoer::Client) =>
            {
                self.take_back_injections();
                self.remedy_failed(reason, plan, now)
            }
            Event::Superseded if self.redoer == Redoer::Host => self.finish(Self::assumed(), now),
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
            | Event::Superseded
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
        if let Phase::Redoing { directive: Some(directive), .. } = &self.phase
            && let Some(remedy) = &directive.remedy
        {
            // The host took it: it stays on all further redos of the episode.
            self.asks.ride(remedy);
        }
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

impl Asks {
    /// Puts a remedy that nobody carried out on the turn.
    fn ride(&mut self, remedy: &Remedy) {
        match remedy {
            Remedy::SwitchModel { model } => self.model = Some(Arc::clone(model)),
            // Of a turn that is already cut, the share of what was left.
            Remedy::Truncate { ratio, .. } => self.truncate_to = Some(self.truncate_to.unwrap_or(1.0) * ratio),
            Remedy::Degrade => self.degraded = true,
            Remedy::Skip => self.skip = true,
            Remedy::Compact { .. } | Remedy::Summarize { .. } | Remedy::Rollback { .. } => {}
        }
    }
}
