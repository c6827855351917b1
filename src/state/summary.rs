use serde::{Deserialize, Serialize};

use super::StateRecord;
use crate::failure::{SessionId, Timestamp};
use crate::policy::Verdict;
use crate::policy::machine::PhaseName;

/// One line about a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionSummary {
    /// The session.
    pub session: SessionId,
    /// Its record's revision.
    pub revision: u64,
    /// Whether an episode is open.
    pub open: bool,
    /// The kept verdict of the last episode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// Where the open episode is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<PhaseName>,
    /// Until when it waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_until: Option<Timestamp>,
    /// Executions of the open, else of the last episode.
    pub attempts: u32,
    /// When the state last changed, as far as it says: the last attempt or verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated: Option<Timestamp>,
    /// Whether this version can read the session's memory; if not, all else here is unknown.
    pub readable: bool,
}

impl SessionSummary {
    /// What a record says, in one line.
    pub fn of(record: &StateRecord) -> Self {
        let mut line = Self {
            session: record.session.clone(),
            revision: record.revision,
            open: false,
            verdict: None,
            phase: None,
            waits_until: None,
            attempts: 0,
            updated: None,
            readable: false,
        };
        let Ok(memory) = record.read() else { return line };
        line.readable = true;
        let Some(memory) = memory else { return line };
        if let Some(kept) = memory.kept() {
            line.verdict = Some(kept.verdict.clone());
            line.attempts = kept.executions;
            line.updated = Some(kept.at);
        }
        if let Some(episode) = memory.open_episode() {
            line.open = true;
            line.phase = Some(episode.phase());
            line.waits_until = episode.waits_until();
            line.attempts = episode.executions();
            line.updated = Some(episode.attempts().last().map_or(episode.started(), |attempt| attempt.timestamp));
        }
        line
    }
}
