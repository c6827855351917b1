//! One try of an iteration: in the caller's task, as the turn of a closed loop.

use std::sync::atomic::Ordering;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::LoopEvent;
use super::builder::OnSpiral;
use super::checkpoints::from_json;
use super::failure::{Failure, Step};
use super::report::{Ended, LeftOut};
use super::run::Run;
use crate::engine::Reporter;
use crate::failure::{Detection, Domain, Kind, Report};
use crate::policy::spiral::Round;
use crate::policy::{Injection, Turn};

/// What a try came to.
pub(super) enum Tried<O> {
    Worked { step: Step<O>, degraded: bool },
    Skipped,
}

/// Why a try did not work.
pub(super) enum Failed {
    /// To be recovered from.
    Step { report: Box<Report>, found: Detection },
    /// The loop itself ends here.
    Stop,
}

/// Hands a try's failure to the engine as it was found.
#[derive(Clone, Copy)]
pub(super) struct AsFound;

impl Reporter<Failed> for AsFound {
    fn report(&self, failed: &Failed) -> Report {
        match failed {
            Failed::Step { report, .. } => (**report).clone(),
            Failed::Stop => Report::cancelled(),
        }
    }

    fn found(&self, failed: &Failed) -> Option<Detection> {
        Some(match failed {
            Failed::Step { found, .. } => found.clone(),
            Failed::Stop => Detection::Cancelled,
        })
    }
}

impl<S: Serialize + DeserializeOwned + Clone> Run<S> {
    pub async fn attempt<O, F, V>(&mut self, turn: &Turn, step: &mut F, verify: &mut V) -> Result<Tried<O>, Failed>
    where
        F: AsyncFnMut(u32, &mut S, &Turn) -> Result<Step<O>, Failure>,
        V: AsyncFnMut(u32, &S) -> Result<(), Failure>,
    {
        let iteration = self.progress.begun;
        self.apply_rollback();
        if !std::mem::take(&mut self.keeps_state) {
            self.state = self.before.clone();
        }
        if turn.redo > 0 {
            self.tell(LoopEvent::Redo { iteration, redo: turn.redo });
        }
        if turn.skip {
            return Ok(self.skip(iteration));
        }
        if let Err(refusal) = self.iteration_budget.spend(self.settings.step_time.unwrap_or_default()) {
            self.stop = Some(Ended::Budget(refusal));
            return Err(Failed::Stop);
        }
        self.save_progress().await;
        let turn = self.anchored(turn);
        let tried = match self.settings.step_time {
            None => step(iteration, &mut self.state, &turn).await,
            Some(most) => {
                let limited = tokio::time::timeout(most, step(iteration, &mut self.state, &turn)).await;
                limited
                    .unwrap_or_else(|_| Err(Failure::new(Report::text(format!("the step timed out after {most:?}")))))
            }
        };
        let (result, verifying) = match tried {
            Ok(step) => (verify(iteration, &self.state).await.map(|()| step), true),
            Err(failure) => (Err(failure), false),
        };
        self.note_model(&turn);
        match result {
            Ok(step) => Ok(Tried::Worked { step, degraded: turn.degraded }),
            Err(failure) => Err(self.failed(failure, verifying, &turn)),
        }
    }

    /// Makes a restored checkpoint the state, and the one that redos start from.
    fn apply_rollback(&mut self) {
        let Some(restored) = self.client.granted.take_restored() else { return };
        match from_json::<S>(&restored.state) {
            Ok(state) => {
                (self.before, self.keeps_state) = (state, false);
                self.tell(LoopEvent::RolledBack { name: restored.name });
            }
            // Of another shape: the state before the iteration is the best there is.
            Err(error) => self.not_durable(&error),
        }
    }

    fn skip<O>(&mut self, iteration: u32) -> Tried<O> {
        self.state = self.before.clone();
        if let Some(mark) = &mut self.settings.on_skip {
            mark(iteration, &mut self.state);
        }
        self.progress.skipped.push(LeftOut { iteration, kind: self.last_kind.clone() });
        self.tell(LoopEvent::Skipped { iteration });
        Tried::Skipped
    }

    /// The turn with what a host said to bring its agent back on course.
    fn anchored(&mut self, turn: &Turn) -> Turn {
        let mut turn = turn.clone();
        turn.injections.extend(self.anchor.take());
        turn
    }

    /// Each model beside the usual one that an iteration falls back to is one lower.
    fn note_model(&mut self, turn: &Turn) {
        if let Some(model) = &turn.model
            && self.models.last() != Some(model)
        {
            self.models.push(model.clone());
        }
    }

    fn failed(&mut self, mut failure: Failure, verifying: bool, turn: &Turn) -> Failed {
        let iteration = self.progress.begun;
        let report = failure.report_mut();
        let lane = self.settings.lane.as_ref();
        let lane = lane.map(|lane| turn.model.as_ref().map_or_else(|| lane.clone(), |model| lane.with_model(model)));
        report.lane = report.lane.take().or(lane);
        report.model = report.model.take().or_else(|| turn.model.clone());
        self.keeps_state = failure.keeps_state;
        let found = failure.detect(&self.shared.patterns(), verifying, self.shared.now());
        let error = found.failure();
        self.last_kind = error.map(|error| error.kind.clone());
        self.tell(LoopEvent::Failed {
            iteration,
            kind: self.last_kind.clone(),
            domain: error.map_or(Domain::Unknown, |error| error.domain),
            message: error.map_or_else(|| "".into(), |error| error.message.clone()),
        });
        let mut round = self.round();
        if let Some(error) = error {
            self.progress.count(error);
            if error.kind == Kind::ContextOverflow {
                round.overflow = error.details.tokens.actual;
            }
        }
        round.failure = Some(error.map_or(0, |error| error.fingerprint));
        if self.spirals(round) {
            return Failed::Stop;
        }
        Failed::Step { report: failure.into_report(), found }
    }

    /// A round with what is known of every one.
    pub fn round(&self) -> Round {
        let compacted = self.client.granted.compacted.swap(false, Ordering::SeqCst);
        let remaining = self.settings.remaining.as_ref().map(|measure| measure(&self.state));
        Round { compacted, remaining, ..Round::default() }
    }

    /// Takes a round in; tells whether the loop ends by it.
    pub fn spirals(&mut self, round: Round) -> bool {
        let Some(spiral) = self.progress.watch.observe(round, &self.settings.spirals) else { return false };
        self.progress.saw(&spiral);
        let decision = self.settings.on_spiral.as_mut().map_or(OnSpiral::Stop, |decide| decide(&spiral, &self.state));
        let anchored = matches!(decision, OnSpiral::Reanchor(_));
        self.tell(LoopEvent::Spiral { spiral: spiral.clone(), anchored });
        match decision {
            OnSpiral::Reanchor(text) => {
                self.progress.watch.start_anew();
                self.anchor = Some(Injection::new(text));
                false
            }
            OnSpiral::Stop => {
                self.stop = Some(Ended::Spiral(spiral));
                true
            }
        }
    }
}
