use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::History;
use crate::failure::{RecoveryError, SessionId, Timestamp};
use crate::policy::machine::{
    Command, Episode, Event, Fence, Looked, Moment, Note, NoteKind, Opening, Plan, Record, Redoer,
};
use crate::policy::{Injection, Limits, RecoveryAttempt, Verdict};

/// Everything that is remembered of one session: what its log record holds.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SessionMemory {
    pub(super) episodes: u64,
    /// What the episodes so far have used up.
    pub(super) fence: Fence,
    pub(super) history: History,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) episode: Option<Box<Episode>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) kept: Option<Box<KeptVerdict>>,
    /// The last verdict where it is not kept: a recovery, or that the session was reset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ended: Option<Verdict>,
}

/// A verdict that stays until the host resets the session or its retention ends (R11).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KeptVerdict {
    /// The episode's number within the session.
    pub episode: u64,
    /// How it ended.
    pub verdict: Verdict,
    /// The last failure.
    pub error: Arc<RecoveryError>,
    /// When it ended.
    pub at: Timestamp,
    /// Executions made.
    pub executions: u32,
    /// The attempts, oldest first.
    pub attempts: Vec<RecoveryAttempt>,
    /// Texts that no redo delivered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub injections: Vec<Injection>,
}

/// Why a failure opens no episode.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// The verdict.
    pub verdict: Verdict,
    /// Whether the host is to be called: once per streak of strikes (R16) and per full window (R7),
    /// always otherwise.
    pub calls_host: bool,
    /// What decided it (R15).
    pub notes: Vec<Note>,
}

impl Refusal {
    fn by_limit(reason: String, calls_host: bool, at: Timestamp) -> Self {
        let reason: Arc<str> = reason.into();
        let notes = vec![Note { at, seq: 0, what: NoteKind::Remark { text: Arc::clone(&reason) } }];
        Self { verdict: Verdict::Escalated { reason }, calls_host, notes }
    }
}

impl SessionMemory {
    /// A session whose last episode was kept elsewhere: it counts, but no limit knows of it.
    pub fn imported(kept: KeptVerdict) -> Self {
        Self { episodes: kept.episode, kept: Some(Box::new(kept)), ..Self::default() }
    }

    /// Opens an episode, the session's limits permitting. To be called only when [`intake`](Self::intake)
    /// says [`Opens`](super::Intake::Opens): it would take the place of an open episode.
    ///
    /// # Errors
    ///
    /// A [`Refusal`] when the failure has no chain, a person must decide, or a limit over several
    /// episodes is reached (R7, R16).
    #[allow(clippy::too_many_arguments, reason = "each is one fact of the failure's beginning")]
    pub fn open(
        &mut self,
        session: &SessionId,
        error: Arc<RecoveryError>,
        redoer: Redoer,
        turn: Option<u64>,
        deadline: Option<Timestamp>,
        plan: &Plan,
        at: Moment,
    ) -> Result<Vec<Command>, Refusal> {
        let limits = plan.limits();
        self.history.failed(error.fingerprint, limits, at.now);
        if let Some(calls_host) = self.history.struck_out(error.fingerprint, limits) {
            let times = limits.max_same_failure;
            let reason = format!("the same failure ended {times} episodes in a row");
            return Err(Refusal::by_limit(reason, calls_host, at.now));
        }
        let opening = Opening { episode: self.episodes + 1, error, redoer, turn, deadline, after: self.fence };
        let kind = opening.error.kind.clone();
        let (episode, commands) = Episode::start(session.clone(), opening, plan, at).map_err(|verdict| {
            let what = NoteKind::NoChain { kind, reason: verdict.to_string().into() };
            let calls_host = matches!(verdict, Verdict::Escalated { .. });
            Refusal { calls_host, verdict, notes: vec![Note { at: at.now, seq: 0, what }] }
        })?;
        if let Some(calls_host) = self.history.window_is_full(limits, at.now) {
            let reason = format!("{} episodes within the recovery window", limits.max_recoveries);
            return Err(Refusal::by_limit(reason, calls_host, at.now));
        }
        self.episodes += 1;
        self.kept = None;
        self.ended = None;
        self.episode = Some(Box::new(episode));
        self.settle(&commands, plan, at.now);
        Ok(commands)
    }

    /// Hands an event to the running episode if it is the one that the event was meant for; else
    /// nothing happens. For late deadlines, cancellations and answers.
    pub fn on_episode(&mut self, episode: u64, event: Event, plan: &Plan, now: Timestamp) -> Vec<Command> {
        if self.episode().is_none_or(|running| running.id() != episode) {
            return vec![];
        }
        self.on(event, plan, now)
    }

    /// Hands an event to the running episode; without one, nothing happens.
    pub fn on(&mut self, event: Event, plan: &Plan, now: Timestamp) -> Vec<Command> {
        let Some(episode) = &mut self.episode else { return vec![] };
        let commands = episode.on(event, plan, now);
        self.settle(&commands, plan, now);
        commands
    }

    /// Gives the running episode another deadline: that of the caller who goes on with it.
    pub fn set_deadline(&mut self, deadline: Timestamp) {
        if let Some(episode) = &mut self.episode {
            episode.set_deadline(deadline);
        }
    }

    /// Lets a wait that is over last until this moment; see [`Episode::put_off`].
    pub fn put_off(&mut self, until: Timestamp) {
        if let Some(episode) = &mut self.episode {
            episode.put_off(until);
        }
    }

    /// Goes on after a restart; see [`Episode::resume`].
    pub fn resume(&mut self, redoer: Redoer, looked: Looked, plan: &Plan, now: Timestamp) -> Vec<Command> {
        let Some(episode) = &mut self.episode else { return vec![] };
        let commands = episode.resume(redoer, looked, plan, now);
        self.settle(&commands, plan, now);
        commands
    }

    /// Keeps the books as soon as the verdict is known, so that its record holds them.
    fn settle(&mut self, commands: &[Command], plan: &Plan, now: Timestamp) {
        let ends = |command: &Command| matches!(command, Command::Persist { record: Record::Verdict, .. });
        let Some(episode) = self.episode.as_mut().filter(|_| commands.iter().any(ends)) else { return };
        let Some(verdict) = episode.verdict().cloned() else { return };
        let fingerprint = episode.first_error().fingerprint;
        self.history.ended(&verdict, fingerprint, episode.thawed(), plan.limits(), now);
        self.fence = episode.fence();
        if verdict.is_recovered() {
            self.ended = Some(verdict);
            return;
        }
        self.kept = Some(Box::new(KeptVerdict {
            episode: episode.id(),
            verdict,
            error: Arc::clone(episode.error()),
            at: now,
            executions: episode.executions(),
            attempts: episode.attempts().to_vec(),
            injections: episode.injections().to_vec(),
        }));
    }

    /// Lets go of a finished episode and returns it.
    pub fn close(&mut self) -> Option<Episode> {
        self.episode.take_if(|episode| episode.verdict().is_some()).map(|episode| *episode)
    }

    /// A turn was seen to work outside episodes (R16).
    pub fn turn_worked(&mut self) {
        self.history.turn_worked();
    }

    /// The episode, unless its verdict is known.
    pub fn open_episode(&self) -> Option<&Episode> {
        self.episode.as_deref().filter(|episode| episode.verdict().is_none())
    }

    /// The episode, its verdict known or not.
    pub fn episode(&self) -> Option<&Episode> {
        self.episode.as_deref()
    }

    /// The episode, its verdict known or not.
    pub fn episode_mut(&mut self) -> Option<&mut Episode> {
        self.episode.as_deref_mut()
    }

    /// The last verdict, if it is one that is kept (R11).
    pub fn kept(&self) -> Option<&KeptVerdict> {
        self.kept.as_deref()
    }

    /// How the last episode ended, kept or not: the answer to what is [stale](super::Intake::Stale) when
    /// no episode runs. A reset session's is [`Verdict::Cancelled`].
    pub fn last_verdict(&self) -> Option<&Verdict> {
        self.kept.as_ref().map(|kept| &kept.verdict).or(self.ended.as_ref())
    }

    /// The highest numbers that the session's episodes have given out.
    pub fn fence(&self) -> Fence {
        self.episode.as_ref().map_or(self.fence, |episode| episode.fence())
    }

    /// How many episodes the session has had.
    pub fn episodes(&self) -> u64 {
        self.episodes
    }

    /// What is counted over several episodes.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// Forgets everything but the numbers given out, so that late answers stay fenced (R11).
    ///
    /// An open episode is gone with the rest, and answers nobody: whoever waits for its verdict is owed
    /// a [`Verdict::Cancelled`].
    pub fn reset(&mut self) {
        let ended = (self.episodes > 0).then_some(Verdict::Cancelled);
        *self = Self { episodes: self.episodes, fence: self.fence(), ended, ..Self::default() };
    }

    /// From when on the session need not be remembered: its last verdict and the windows that count it
    /// have passed their retention (R11). Its numbers fence late answers until then. `None` while an
    /// episode is open; `now` counts where no time is known.
    pub fn spent_from(&self, limits: &Limits, now: Timestamp) -> Option<Timestamp> {
        if self.open_episode().is_some() {
            return None;
        }
        let kept = self.kept.as_ref().map(|kept| kept.at);
        let last = kept.into_iter().chain(self.history.last()).max().unwrap_or(now);
        Some(last + limits.retention.max(limits.recovery_window).max(limits.quiet_period))
    }

    /// What is to be written: a finished episode is none any more.
    pub fn snapshot(&self) -> Self {
        Self {
            episodes: self.episodes,
            fence: self.fence(),
            ended: self.ended.clone(),
            history: self.history.clone(),
            episode: self.open_episode().cloned().map(Box::new),
            kept: self.kept.clone(),
        }
    }
}
