use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::command::{Command, Record, Redo};
use super::event::Event;
use super::note::{Note, NoteKind};
use super::plan::{Moment, Opening, Plan, Redoer};
use crate::failure::{LaneKey, RecoveryError, SessionId, Timestamp};
use crate::policy::{Cause, ChainKey, Choice, Injection, Proof, RecoveryAttempt, Remedy, Unhandled, Verdict};

/// One session's way from its first failure to its verdict.
///
/// Every event moves it on and answers with what must be done now; it holds all that is needed to go
/// on after a crash. A place in a chain is remembered for each chain that the episode entered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Episode {
    pub(super) session: SessionId,
    pub(super) id: u64,
    pub(super) redoer: Redoer,
    pub(super) turn: Option<u64>,
    pub(super) seed: u64,
    pub(super) started: Timestamp,
    pub(super) deadline: Option<Timestamp>,
    pub(super) first: Arc<RecoveryError>,
    pub(super) error: Arc<RecoveryError>,
    pub(super) chain: ChainKey,
    pub(super) places: BTreeMap<ChainKey, Place>,
    pub(super) executions: u32,
    pub(super) seq: u64,
    pub(super) epoch: u32,
    pub(super) redos: u32,
    pub(super) asks: Asks,
    pub(super) attempts: Vec<RecoveryAttempt>,
    pub(super) injections: Vec<Injection>,
    /// Set when a wait was refused by the deadline: it is then the cause if the chain ends.
    pub(super) refused_by_deadline: bool,
    /// The last redo was let go by a lane that had been closed: ended by it, the episode does not count
    /// against the window (R7).
    pub(super) thawed: bool,
    /// Newer records of it may be lost: half the budget counts as spent (R10).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) doubted: bool,
    pub(super) phase: Phase,
    #[serde(skip)]
    pub(super) notes: Vec<Note>,
}

/// Where an episode stands in one chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Place {
    /// The step's index, from 0.
    pub step: usize,
    /// The attempt within the step that comes next or is being made, from 1.
    pub attempt: u32,
    /// The chain's hash: in another chain the place means nothing (R10).
    pub chain: u64,
}

/// What recovery asks of every redo from now on.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct Asks {
    pub model: Option<Arc<str>>,
    pub truncate_to: Option<f64>,
    pub degraded: bool,
    pub skip: bool,
}

/// What the strategy answered before the redo, for when the redo fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum After {
    Success,
    Retry,
}

/// What follows once waiting and asking are over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Next {
    pub after: After,
    pub remedy: Option<Remedy>,
}

/// Where the episode is; data that belongs to one phase lives in that phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "snake_case")]
pub(super) enum Phase {
    /// A strategy is being asked; `released` once its attempt may have an effect.
    Acting { step: usize, attempt: u32, released: bool, closing: bool, asked: Timestamp },
    /// Before a redo, or before the next attempt where nobody can redo.
    Waiting { until: Timestamp, next: Next },
    /// The lane was asked.
    Asking { parked_since: Option<Timestamp>, not_before: Timestamp, next: Next },
    /// The lane is closed.
    Parked { since: Timestamp, until: Timestamp, not_before: Timestamp, next: Next },
    /// The redo's record is being written.
    Saving { not_before: Timestamp, next: Next },
    /// The remedy is being carried out.
    Carrying { not_before: Timestamp, next: Next },
    /// The turn is being redone.
    Redoing {
        after: After,
        not_before: Timestamp,
        /// What an open-loop host was told, to be told again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        directive: Option<Box<Redo>>,
    },
    /// The verdict's record is being written.
    Closing { verdict: Verdict },
    /// Nothing more follows.
    Finished { verdict: Verdict },
}

impl Episode {
    /// The longest list of attempts that is kept; older ones are dropped first.
    pub const ATTEMPTS_KEPT: usize = 64;

    /// The most texts that one redo delivers (R12).
    pub const INJECTIONS_KEPT: usize = 16;

    /// Opens an episode, or says at once how it ends.
    ///
    /// # Errors
    ///
    /// The verdict, when the failure has no chain or a person must decide.
    pub fn start(
        session: SessionId,
        opening: Opening,
        plan: &Plan,
        at: Moment,
    ) -> Result<(Self, Vec<Command>), Verdict> {
        let Opening { episode, error, redoer, turn, deadline, after } = opening;
        let chain = match plan.config.choose(&error) {
            Choice::Chain { chain, .. } => chain.key.clone(),
            Choice::Escalate { reason } => return Err(Verdict::Escalated { reason: reason.into() }),
            Choice::Unhandled(why) => return Err(Verdict::Unhandled(why)),
        };
        let mut this = Self {
            session,
            id: episode,
            redoer,
            turn,
            seed: at.seed,
            started: at.now,
            deadline,
            first: Arc::clone(&error),
            error: Arc::clone(&error),
            chain,
            places: BTreeMap::new(),
            executions: 0,
            seq: after.seq,
            epoch: after.epoch,
            redos: 0,
            asks: Asks::default(),
            attempts: vec![],
            injections: vec![],
            refused_by_deadline: false,
            thawed: false,
            doubted: false,
            phase: Phase::Finished { verdict: Verdict::Unhandled(Unhandled::NoChain) },
            notes: vec![],
        };
        let commands = this.enter_chain_of(error, plan, at.now);
        Ok((this, commands))
    }

    /// Takes an event and says what must be done now.
    ///
    /// Late answers and stale timers change nothing.
    pub fn on(&mut self, event: Event, plan: &Plan, now: Timestamp) -> Vec<Command> {
        match (&self.phase, event) {
            (Phase::Closing { verdict }, Event::Persisted { seq, record: Record::Verdict }) if seq == self.seq => {
                let verdict = verdict.clone();
                self.phase = Phase::Finished { verdict: verdict.clone() };
                vec![Command::Finish(verdict)]
            }
            (Phase::Closing { .. } | Phase::Finished { .. }, _) => vec![],
            (_, Event::Cancelled) => self.finish(Verdict::Cancelled, now),
            (_, Event::GivenUp { reason }) => self.finish(Verdict::Escalated { reason }, now),
            (_, Event::DeadlinePassed) if self.deadline.is_some() => {
                self.finish(Verdict::Exhausted { cause: Cause::Deadline }, now)
            }
            (Phase::Acting { .. }, event) => self.on_acting(event, plan, now),
            (Phase::Waiting { .. }, event) => self.on_waiting(event, plan, now),
            (Phase::Asking { .. } | Phase::Parked { .. }, event) => self.on_lane(event, plan, now),
            (Phase::Saving { .. } | Phase::Carrying { .. }, event) => self.on_carrying(event, plan, now),
            (Phase::Redoing { .. }, event) => self.on_redoing(event, plan, now),
        }
    }

    /// Chooses the failure's chain and goes on at its remembered place.
    pub(super) fn enter_chain_of(&mut self, error: Arc<RecoveryError>, plan: &Plan, now: Timestamp) -> Vec<Command> {
        let choice = plan.config.choose(&error);
        self.error = error;
        let (kind, pattern) = (self.error.kind.clone(), Arc::clone(&self.error.pattern));
        match choice {
            Choice::Chain { chain, because } => {
                let place = Place { step: 0, attempt: 1, chain: chain.hash() };
                let known = self.places.entry(chain.key.clone()).or_insert(place);
                if known.chain != place.chain {
                    *known = place;
                }
                self.chain = chain.key.clone();
                self.note(
                    now,
                    NoteKind::ChainChosen {
                        kind,
                        pattern,
                        chain: chain.key.clone(),
                        because: because.to_string().into(),
                        origin: chain.origin.to_string().into(),
                    },
                );
                self.act(plan, now)
            }
            Choice::Escalate { reason } => {
                self.note(now, NoteKind::NoChain { kind, reason: reason.into() });
                self.finish(Verdict::Escalated { reason: reason.into() }, now)
            }
            Choice::Unhandled(why) => {
                let verdict = Verdict::Unhandled(why);
                self.note(now, NoteKind::NoChain { kind, reason: verdict.to_string().into() });
                self.finish(verdict, now)
            }
        }
    }

    /// Ends the episode; the verdict is durable before it is returned (R10).
    pub(super) fn finish(&mut self, verdict: Verdict, now: Timestamp) -> Vec<Command> {
        self.new_epoch();
        self.note(now, NoteKind::Ended { verdict: verdict.clone() });
        self.phase = Phase::Closing { verdict };
        vec![Command::Persist { seq: self.seq, record: Record::Verdict }]
    }

    /// The lane that the current redo goes to.
    pub fn redo_lane(&self) -> Option<LaneKey> {
        let lane = self.error.lane.as_ref()?;
        let directive = match &self.phase {
            Phase::Redoing { directive, .. } => directive.as_ref(),
            _ => None,
        };
        let switched = directive.and_then(|redo| redo.turn.model.as_ref());
        Some(switched.map_or_else(|| lane.clone(), |model| lane.with_model(model)))
    }

    /// What was asked under an earlier epoch is answered in vain from now on.
    pub(super) fn new_epoch(&mut self) {
        self.epoch = self.epoch.wrapping_add(1);
    }

    /// Adds texts for the next redo; of too many the oldest are dropped.
    pub(super) fn inject(&mut self, texts: impl IntoIterator<Item = Injection>) {
        self.injections.extend(texts);
        let excess = self.injections.len().saturating_sub(Self::INJECTIONS_KEPT);
        self.injections.drain(..excess);
    }

    pub(super) fn note(&mut self, at: Timestamp, what: NoteKind) {
        self.notes.push(Note { at, seq: self.seq, what });
    }

    /// The decisions taken since the last call, oldest first.
    pub fn take_notes(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.notes)
    }

    /// The verdict of a redo that nobody contradicted for long enough.
    pub(super) fn assumed() -> Verdict {
        Verdict::Recovered(Proof::Assumed)
    }
}
