use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{RecoveryMetricsSnapshot, Tally};
use crate::failure::{RecoveryError, SessionId, Timestamp, mask};
use crate::policy::machine::{Episode, PhaseName};
use crate::policy::session::{KeptVerdict, SessionMemory};
use crate::policy::{ChainKey, RecoveryAttempt, Verdict};

/// A session's state as people and other programs read it, in `recovery-{stem}.json`.
///
/// The first five fields, but for `version`, are the original's; only further ones are ours. It is
/// written for reading: nothing is ever taken back from it, except when there is no log at all.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RecoveryState {
    /// The view's format; the original's files have none.
    pub version: u32,
    /// The session.
    #[serde(rename = "sessionID")]
    pub session: SessionId,
    /// The last episode's attempts, oldest first.
    pub attempts: Vec<RecoveryAttempt>,
    /// Where the open episode stands in each chain that it entered.
    pub active_chains: BTreeMap<String, ActiveChain>,
    /// Counted over the attempts listed and this episode's verdict.
    pub metrics: RecoveryMetricsSnapshot,
    /// The open episode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub episode: Option<EpisodeView>,
    /// The last episode's verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<VerdictView>,
    /// The last failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<RecoveryError>,
    /// Older attempts that did not fit into the file.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub attempts_left_out: usize,
}

/// A chain that an open episode has entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ActiveChain {
    /// The step's index, from 0.
    pub current_step: usize,
    /// When the episode began.
    pub start_time: Timestamp,
    /// Attempts listed of this chain.
    pub total_attempts: usize,
}

/// An open episode.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EpisodeView {
    /// Its number within the session.
    pub number: u64,
    /// Where it is.
    pub phase: PhaseName,
    /// The chain that runs.
    pub chain: ChainKey,
    /// The current attempt.
    pub seq: u64,
    /// Executions so far.
    pub executions: u32,
    /// Redos so far.
    pub redos: u32,
    /// When it began.
    pub started: Timestamp,
    /// When it has to be over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// Until when it waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_until: Option<Timestamp>,
}

/// How the last episode ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VerdictView {
    /// The episode's number within the session.
    pub episode: u64,
    /// The verdict.
    pub verdict: Verdict,
    /// The same in words.
    pub text: Arc<str>,
    /// Executions made.
    pub executions: u32,
    /// When it ended.
    pub at: Timestamp,
}

impl RecoveryState {
    /// The format that is written.
    pub const VERSION: u32 = 1;
    /// The largest file, unless the configuration says otherwise.
    pub const MAX_BYTES: usize = 256 * 1024;

    /// The view of a session; `None` for one that has neither an open episode nor a kept verdict: what
    /// recovered leaves no file (R11).
    pub fn of(session: &SessionId, memory: &SessionMemory) -> Option<Self> {
        let mut view = Self {
            version: Self::VERSION,
            session: session.clone(),
            attempts: vec![],
            active_chains: BTreeMap::new(),
            metrics: RecoveryMetricsSnapshot::default(),
            episode: None,
            verdict: None,
            last_error: None,
            attempts_left_out: 0,
        };
        if let Some(episode) = memory.open_episode() {
            view.show_episode(episode);
        } else {
            view.show_verdict(memory.kept()?);
        }
        view.count();
        Some(view)
    }

    fn show_episode(&mut self, episode: &Episode) {
        self.attempts = episode.attempts().iter().map(clipped).collect();
        let chains = episode.places().take(CHAINS_SHOWN).map(|(key, current_step, _)| {
            let is_of_chain = |attempt: &&RecoveryAttempt| attempt.chain.as_ref() == Some(key);
            let total_attempts = self.attempts.iter().filter(is_of_chain).count();
            (key.to_string(), ActiveChain { current_step, start_time: episode.started(), total_attempts })
        });
        self.active_chains = chains.collect();
        self.episode = Some(EpisodeView {
            number: episode.id(),
            phase: episode.phase(),
            chain: episode.chain().clone(),
            seq: episode.seq(),
            executions: episode.executions(),
            redos: episode.redos(),
            started: episode.started(),
            deadline: episode.deadline(),
            waits_until: episode.waits_until(),
        });
        self.last_error = Some(shown(episode.error()));
    }

    fn show_verdict(&mut self, kept: &KeptVerdict) {
        self.attempts = kept.attempts.iter().map(clipped).collect();
        self.verdict = Some(VerdictView {
            episode: kept.episode,
            verdict: clipped_verdict(&kept.verdict),
            text: clip(&kept.verdict.to_string()),
            executions: kept.executions,
            at: kept.at,
        });
        self.last_error = Some(shown(&kept.error));
    }

    fn count(&mut self) {
        let metrics = &mut self.metrics;
        metrics.total_attempts = self.attempts.len() as u64;
        for attempt in &self.attempts {
            let add = |tally: &mut Tally| tally.attempts += 1;
            add(metrics.by_category.entry(attempt.category).or_default());
            add(metrics.by_strategy.entry(Arc::clone(&attempt.strategy)).or_default());
            add(metrics.by_kind.entry(attempt.error_type.clone()).or_default());
            *metrics.error_type_frequency.entry(attempt.error_type.clone()).or_default() += 1;
        }
        let Some(VerdictView { verdict, .. }) = &self.verdict else { return };
        metrics.aborted_chains = matches!(verdict, Verdict::Aborted { .. }).into();
        metrics.exhausted_chains = matches!(verdict, Verdict::Exhausted { .. }).into();
        metrics.by_verdict.insert(verdict.name().into(), 1);
    }

    /// The file's text: two blanks of indent, no line feed at the end, at most `limit` bytes. What does not
    /// fit is left out: first the oldest attempts, which `attemptsLeftOut` counts, then what is counted over
    /// them, then the last failure and the end of long words. `None` if it does not fit even then, for a very long id.
    pub fn to_json(&self, limit: usize) -> Option<Vec<u8>> {
        let text = |view: &Self| serde_json::to_vec_pretty(view).ok().filter(|json| json.len() <= limit);
        if let Some(json) = text(self) {
            return Some(json);
        }
        let (mut fewest, mut most) = (1, self.attempts.len());
        let mut largest = None;
        // The fewest attempts left out with which it fits: the more are, the shorter it is.
        while fewest <= most {
            let dropped = fewest.midpoint(most);
            match text(&self.without_oldest(dropped)) {
                Some(json) => (largest, most) = (Some(json), dropped - 1),
                None => fewest = dropped + 1,
            }
        }
        largest.or_else(|| {
            let mut view = self.without_oldest(self.attempts.len());
            view.metrics = RecoveryMetricsSnapshot::default();
            text(&view).or_else(|| {
                view.last_error = None;
                view.active_chains.clear();
                if let Some(shown) = &mut view.verdict {
                    shown.text = cut(&shown.text, BRIEF).into();
                    match &mut shown.verdict {
                        Verdict::Aborted { reason } | Verdict::Escalated { reason } => {
                            *reason = cut(reason, BRIEF).into();
                        }
                        _ => {}
                    }
                }
                text(&view)
            })
        })
    }

    fn without_oldest(&self, dropped: usize) -> Self {
        let attempts = self.attempts[dropped..].to_vec();
        Self { attempts, attempts_left_out: self.attempts_left_out + dropped, ..self.clone() }
    }
}

/// Texts are shown up to this many bytes: enough to understand, too little to fill the file.
const TEXT_SHOWN: usize = 2_000;
/// Where there is hardly any room.
const BRIEF: usize = 100;
/// More chains than this of one episode are not shown.
const CHAINS_SHOWN: usize = 64;

/// How much of a text is looked at for secrets: more than is shown, so that none is cut in two.
const TEXT_READ: usize = 2 * TEXT_SHOWN;

/// The text as it is kept and shown: secrets masked, then cut (R12).
pub(super) fn clip(text: &str) -> Arc<str> {
    cut(&mask(cut(text, TEXT_READ)), TEXT_SHOWN).into()
}

/// At most this many bytes of a text, cut between two characters.
pub(super) fn cut(text: &str, bytes: usize) -> &str {
    let end = (0..=bytes.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}

fn clipped(attempt: &RecoveryAttempt) -> RecoveryAttempt {
    let message = attempt.message.as_deref().map(clip);
    RecoveryAttempt { message, ..attempt.clone() }
}

fn clipped_verdict(verdict: &Verdict) -> Verdict {
    match verdict {
        Verdict::Aborted { reason } => Verdict::Aborted { reason: clip(reason) },
        Verdict::Escalated { reason } => Verdict::Escalated { reason: clip(reason) },
        other => other.clone(),
    }
}

/// A failure as it is shown: never the value that was reported.
fn shown(error: &RecoveryError) -> RecoveryError {
    RecoveryError { message: clip(&error.message), diagnosis: clip(&error.diagnosis), raw: None, ..error.clone() }
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}
