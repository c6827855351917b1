//! Acting: a step's strategy is asked, and its answer is followed.

use std::sync::Arc;
use std::time::Duration;

use super::command::{Command, Execute, Record};
use super::episode::{After, Episode, Next, Phase};
use super::event::Event;
use super::note::NoteKind;
use super::plan::{Plan, Redoer};
use crate::failure::{Timestamp, mask};
use crate::policy::{Answer, Cause, Chain, Injection, RecoveryAttempt, Remedy, Step, Verdict, runnable, seed};

impl Episode {
    /// Goes on at the current chain's place: the next step that may run, or the end.
    pub(super) fn act(&mut self, plan: &Plan, now: Timestamp) -> Vec<Command> {
        let Some(chain) = plan.config.chain(&self.chain).filter(|_| self.places.contains_key(&self.chain)).cloned()
        else {
            // A changed configuration took the place away (R10): the failure chooses anew.
            return self.enter_chain_of(Arc::clone(&self.error), plan, now);
        };
        if self.deadline.is_some_and(|deadline| now >= deadline) {
            return self.exhausted(Cause::Deadline, now);
        }
        loop {
            let Some(place) = self.places.get(&self.chain).copied() else {
                return self.exhausted(Cause::Chain, now);
            };
            let Some(step) = chain.steps.get(place.step) else {
                let cause = if self.refused_by_deadline { Cause::Deadline } else { Cause::Chain };
                return self.exhausted(cause, now);
            };
            let Err(reason) = runnable(step, &self.error, &chain) else { break };
            let strategy = Arc::clone(&step.strategy);
            self.note(now, NoteKind::StepSkipped { step: place.step, strategy, reason: reason.into() });
            self.advance(After::Success);
        }
        if self.executions >= plan.limits().max_total_attempts {
            return self.limit_reached(&chain, plan, now);
        }
        self.executions = self.executions.saturating_add(1);
        self.execute(&chain, false, plan, now)
    }

    /// The limit of attempts: a closing `abort` or `escalate` still runs, uncounted (R7).
    pub(super) fn limit_reached(&mut self, chain: &Chain, plan: &Plan, now: Timestamp) -> Vec<Command> {
        let closes = |step: &Step| matches!(&*step.strategy, "abort" | "escalate");
        self.note(now, NoteKind::Remark { text: "max_total_attempts is reached".into() });
        if !chain.steps.last().is_some_and(closes) {
            return self.exhausted(Cause::Attempts, now);
        }
        let last = chain.steps.len() - 1;
        if let Some(place) = self.places.get_mut(&self.chain).filter(|place| place.step != last) {
            (place.step, place.attempt) = (last, 1);
        }
        self.execute(chain, true, plan, now)
    }

    fn execute(&mut self, chain: &Chain, closing: bool, plan: &Plan, now: Timestamp) -> Vec<Command> {
        let Some((place, step)) =
            self.places.get(&self.chain).and_then(|place| Some((*place, chain.steps.get(place.step)?)))
        else {
            return self.exhausted(Cause::Chain, now);
        };
        self.seq = self.seq.saturating_add(1);
        self.thawed = false;
        let released = plan.only_computes(&step.strategy);
        self.phase = Phase::Acting { step: place.step, attempt: place.attempt, released, closing, asked: now };
        if released {
            vec![self.execution(step)]
        } else {
            vec![Command::Persist { seq: self.seq, record: Record::Attempt }]
        }
    }

    /// The command that asks the current step's strategy; the same whenever it is asked again.
    pub(super) fn execution(&self, step: &Step) -> Command {
        let place = self.places.get(&self.chain).copied();
        let (index, attempt) = place.map_or((0, 1), |place| (place.step, place.attempt));
        Command::Execute(Execute {
            seq: self.seq,
            step: index,
            attempt,
            plan: step.clone(),
            seed: seed::mix(self.seed, self.seq),
        })
    }

    pub(super) fn on_acting(&mut self, event: Event, plan: &Plan, now: Timestamp) -> Vec<Command> {
        let Phase::Acting { step, attempt, released, closing, asked } = self.phase else { return vec![] };
        match event {
            Event::Persisted { seq, record: Record::Attempt } if seq == self.seq && !released => {
                self.phase = Phase::Acting { step, attempt, released: true, closing, asked };
                match self.current_step(plan) {
                    Some(step) => vec![self.execution(&step)],
                    None => self.exhausted(Cause::Chain, now),
                }
            }
            Event::RunnerBusy { seq } if seq == self.seq && released => {
                self.answered(Answer::next_strategy("the runner is busy"), plan, now)
            }
            Event::Answered { seq, answer, injections } if seq == self.seq && released => {
                let own = self.current_step(plan).is_some_and(|step| !plan.only_computes(&step.strategy));
                self.inject(injections.into_iter().map(|text| if own { masked(&text) } else { text }));
                self.answered(answer, plan, now)
            }
            Event::RemedyFailed { .. }
            | Event::Persisted { .. }
            | Event::RunnerBusy { .. }
            | Event::Answered { .. }
            | Event::DelayElapsed { .. }
            | Event::LaneOpen { .. }
            | Event::LaneClosed { .. }
            | Event::Carried { .. }
            | Event::TurnWorked { .. }
            | Event::Reported { .. }
            | Event::Superseded
            | Event::DeadlinePassed
            | Event::GivenUp { .. }
            | Event::Cancelled => vec![],
        }
    }

    /// Follows a strategy's answer.
    pub(super) fn answered(&mut self, answer: Answer, plan: &Plan, now: Timestamp) -> Vec<Command> {
        let Phase::Acting { step, attempt, closing, asked, .. } = self.phase else { return vec![] };
        let answer = usable(answer);
        let strategy = self.current_step(plan).map_or_else(|| "".into(), |step| step.strategy);
        let reason = if plan.only_computes(&strategy) { Arc::clone(answer.text()) } else { fit_to_keep(answer.text()) };
        self.remember(&answer, &reason, &strategy, step, asked);
        let (status, text) = (answer.status().into(), Arc::clone(&reason));
        self.note(now, NoteKind::Answered { step, strategy, attempt, status, text });
        match answer {
            Answer::Abort { .. } => self.finish(Verdict::Aborted { reason }, now),
            Answer::Escalate { .. } => self.finish(Verdict::Escalated { reason }, now),
            _ if closing => self.exhausted(Cause::Attempts, now),
            Answer::Success { remedy, .. } => self.succeeded(remedy, plan, now),
            Answer::Retry { delay, remedy, .. } => self.retry_after(delay, remedy, plan, now),
            Answer::NextStrategy { .. } => self.next_step(plan, now),
        }
    }

    fn succeeded(&mut self, remedy: Option<Remedy>, plan: &Plan, now: Timestamp) -> Vec<Command> {
        let next = Next { after: After::Success, remedy };
        if self.redoer != Redoer::Nobody {
            return self.head_for_redo(next, Duration::ZERO, plan, now);
        }
        self.without_redo(next, plan, now)
    }

    fn retry_after(&mut self, delay: Duration, remedy: Option<Remedy>, plan: &Plan, now: Timestamp) -> Vec<Command> {
        let next = Next { after: After::Retry, remedy };
        if self.redoer == Redoer::Nobody && self.executions >= plan.limits().max_total_attempts {
            // The next execution is due and will not happen: no sleep before saying so (R7).
            self.advance(After::Retry);
            return self.act(plan, now);
        }
        self.head_for_redo(next, delay, plan, now)
    }

    pub(super) fn next_step(&mut self, plan: &Plan, now: Timestamp) -> Vec<Command> {
        self.advance(After::Success);
        self.act(plan, now)
    }

    /// Leaves the current place: after `success` by a step, after `retry` by an attempt.
    pub(super) fn advance(&mut self, after: After) {
        let Some(place) = self.places.get_mut(&self.chain) else { return };
        match after {
            After::Success => (place.step, place.attempt) = (place.step + 1, 1),
            After::Retry => place.attempt = place.attempt.saturating_add(1),
        }
    }

    pub(super) fn exhausted(&mut self, cause: Cause, now: Timestamp) -> Vec<Command> {
        self.finish(Verdict::Exhausted { cause }, now)
    }

    pub(super) fn current_step(&self, plan: &Plan) -> Option<Step> {
        let place = self.places.get(&self.chain)?;
        plan.config.chain(&self.chain)?.steps.get(place.step).cloned()
    }

    fn remember(&mut self, answer: &Answer, text: &Arc<str>, strategy: &Arc<str>, step: usize, asked: Timestamp) {
        if self.attempts.len() == Self::ATTEMPTS_KEPT {
            self.attempts.remove(0);
        }
        self.attempts.push(RecoveryAttempt {
            category: self.error.category,
            error_type: self.error.kind.clone(),
            timestamp: asked,
            chain_position: step,
            strategy: Arc::clone(strategy),
            result: answer.status().into(),
            message: Some(Arc::clone(text)).filter(|text| !text.is_empty()),
            episode: self.id,
            seq: self.seq,
            chain: Some(self.chain.clone()),
            tokens: self.error.details.tokens,
        });
    }
}

/// What an own strategy or a host said, as records and output may hold it: short, its secrets masked (R12).
pub(super) fn fit_to_keep(text: &Arc<str>) -> Arc<str> {
    /// The longest message or reason that is kept, in characters: a sentence or two.
    const MAX_CHARS: usize = 1_000;
    let cut = |text: &str, chars: usize| text.char_indices().nth(chars).map(|(end, _)| end);
    // What is looked at for secrets is bounded too; more is kept than is shown, so that none is cut open.
    let read = &text[..cut(text, 4 * MAX_CHARS).unwrap_or(text.len())];
    let masked = mask(read);
    masked[..cut(&masked, MAX_CHARS).unwrap_or(masked.len())].into()
}

fn masked(text: &Injection) -> Injection {
    Injection::new(mask(text.as_str()))
}

/// An answer that cannot be followed counts as `next_strategy` (R9).
fn usable(answer: Answer) -> Answer {
    match &answer {
        Answer::Success { remedy: Some(Remedy::Truncate { ratio, .. }), .. }
        | Answer::Retry { remedy: Some(Remedy::Truncate { ratio, .. }), .. }
            if !(*ratio > 0.0 && *ratio <= 1.0) =>
        {
            Answer::next_strategy("unusable answer: the ratio of a cut is above 0 and at most 1")
        }
        _ => answer,
    }
}
