use std::sync::Arc;
use std::time::Duration;

use super::command::{Command, Execute};
use super::episode::Episode;
use super::event::{Carrier, Event};
use super::note::Note;
use super::plan::{Fence, Moment, Opening, Plan, Redoer};
use crate::failure::{RecoveryError, SessionId, Timestamp};
use crate::policy::{Answer, Injection, RecoveryAttempt, Remedy, Turn, Verdict};

/// Runs a chain from its first step to its verdict, in one call: the synchronous way, for scripts, tests
/// and hosts without a runtime.
///
/// It drives the same [`Episode`] as the engine does, without its memory: nothing is stored, no limit
/// over several episodes applies, and no lane is asked. What has to happen in the world is done by the
/// [`Hands`] that it is given; it has no clock, so time passes only as far as they are told to sleep.
///
/// ```
/// # fn run(error: backstop::RecoveryError) -> Result<(), backstop::failure::EmptySessionId> {
/// use backstop::policy::machine::{Execute, Hands, Moment, Plan, RecoveryChainExecutor};
/// use backstop::{Answer, RecoveryConfig, RecoveryError, SessionId, Timestamp};
/// use std::{sync::Arc, time::Duration};
///
/// struct Mine;
///
/// impl Hands for Mine {
///     fn execute(&mut self, attempt: &Execute, _: &RecoveryError) -> Answer {
///         match &*attempt.plan.strategy {
///             "retry" if attempt.attempt <= 2 => Answer::retry(Duration::from_secs(2), "once more"),
///             _ => Answer::next_strategy("not mine"),
///         }
///     }
///     fn sleep(&mut self, delay: Duration) {
///         std::thread::sleep(delay);
///     }
/// }
///
/// let plan = Plan { config: Arc::new(RecoveryConfig::default()), computing: Arc::default() };
/// let at = Moment { now: Timestamp::from_millis(0), seed: 7 };
/// let outcome = RecoveryChainExecutor::new(plan).run(SessionId::new("s-1")?, Arc::new(error), at, &mut Mine);
/// println!("{} after {} attempts", outcome.verdict, outcome.executions);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct RecoveryChainExecutor {
    plan: Plan,
    deadline: Option<Timestamp>,
}

/// What a [`RecoveryChainExecutor`] has done for it.
pub trait Hands {
    /// Asks the step's strategy. One that panics is the implementation's to catch: it counts as
    /// [`Answer::NextStrategy`].
    fn execute(&mut self, attempt: &Execute, error: &RecoveryError) -> Answer;

    /// Lets this time pass. Never called with zero.
    fn sleep(&mut self, delay: Duration);

    /// The texts that the last [`execute`](Self::execute) wants in the next system prompt.
    fn injections(&mut self) -> Vec<Injection> {
        vec![]
    }

    /// Carries a remedy out.
    ///
    /// # Errors
    ///
    /// Why it was not carried out: the chain goes on with the next step. By default nothing can be.
    fn carry(&mut self, remedy: &Remedy) -> Result<Carrier, Arc<str>> {
        Err(format!("nobody here can carry out `{}`", remedy.name()).into())
    }

    /// Whether [`redo`](Self::redo) is implemented. Without it a strategy's success is recovery, and
    /// `retry` runs the strategy again (R5, R6).
    fn can_redo(&self) -> bool {
        false
    }

    /// Redoes the turn.
    ///
    /// # Errors
    ///
    /// How it failed again; `None` if no pattern knows the failure.
    fn redo(&mut self, _turn: &Turn) -> Result<(), Option<Arc<RecoveryError>>> {
        Err(None)
    }
}

/// How a chain ended.
#[derive(Debug, Clone, PartialEq)]
pub struct ChainOutcome {
    /// The verdict.
    pub verdict: Verdict,
    /// The last failure.
    pub error: Arc<RecoveryError>,
    /// Executions that count against `max_total_attempts`.
    pub executions: u32,
    /// The attempts, oldest first.
    pub attempts: Vec<RecoveryAttempt>,
    /// Texts that no redo delivered.
    pub injections: Vec<Injection>,
    /// Every decision with its reason (R15).
    pub notes: Vec<Note>,
}

impl RecoveryChainExecutor {
    /// An executor of this plan's chains.
    pub fn new(plan: Plan) -> Self {
        Self { plan, deadline: None }
    }

    /// Ends chains at this time: no wait that would pass it is begun.
    #[must_use]
    pub fn with_deadline(self, deadline: Timestamp) -> Self {
        Self { deadline: Some(deadline), ..self }
    }

    /// Runs the failure's chain to its end. The plan's limits bound how often the hands are asked.
    pub fn run(
        &self,
        session: SessionId,
        error: Arc<RecoveryError>,
        at: Moment,
        hands: &mut impl Hands,
    ) -> ChainOutcome {
        let redoer = if hands.can_redo() { Redoer::Caller } else { Redoer::Nobody };
        let opening = Opening {
            episode: 1,
            error: Arc::clone(&error),
            redoer,
            turn: None,
            deadline: self.deadline,
            after: Fence::default(),
        };
        let (mut episode, mut commands) = match Episode::start(session, opening, &self.plan, at) {
            Ok(started) => started,
            Err(verdict) => {
                let (attempts, injections, notes) = (vec![], vec![], vec![]);
                return ChainOutcome { verdict, error, executions: 0, attempts, injections, notes };
            }
        };
        let mut now = at.now;
        loop {
            let mut events = vec![];
            for command in commands {
                match command {
                    Command::Finish(verdict) => return outcome(episode, verdict),
                    Command::Wait { until, epoch } => {
                        let delay = until.since(now);
                        if delay > Duration::ZERO {
                            hands.sleep(delay);
                        }
                        now = now.max(until);
                        events.push(Event::DelayElapsed { epoch });
                    }
                    command => events.extend(carry_out(command, &episode, hands)),
                }
            }
            commands = events.into_iter().flat_map(|event| episode.on(event, &self.plan, now)).collect();
        }
    }
}

fn carry_out(command: Command, episode: &Episode, hands: &mut impl Hands) -> Option<Event> {
    Some(match command {
        Command::Persist { seq, record } => Event::Persisted { seq, record },
        Command::Execute(attempt) => {
            let answer = hands.execute(&attempt, episode.error());
            Event::Answered { seq: attempt.seq, answer, injections: hands.injections() }
        }
        Command::Carry { seq, remedy } => match hands.carry(&remedy) {
            Ok(by) => Event::Carried { seq, by },
            Err(reason) => Event::RemedyFailed { seq, reason },
        },
        Command::AskLane { epoch, .. } => Event::LaneOpen { epoch },
        Command::Redo(redo) => match hands.redo(&redo.turn) {
            Ok(()) => Event::TurnWorked { seq: redo.turn.seq },
            Err(error) => Event::Reported { seq: redo.turn.seq, error },
        },
        Command::Wait { .. } | Command::Finish(_) => return None,
    })
}

fn outcome(mut episode: Episode, verdict: Verdict) -> ChainOutcome {
    ChainOutcome {
        verdict,
        error: Arc::clone(episode.error()),
        executions: episode.executions(),
        attempts: episode.attempts().to_vec(),
        injections: episode.injections().to_vec(),
        notes: episode.take_notes(),
    }
}
