use super::SessionMemory;
use crate::policy::machine::Redoer;
use crate::policy::{Proof, Verdict};

/// How a report says what it belongs to (R8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReportKey {
    /// The attempt whose redo failed.
    pub seq: Option<u64>,
    /// The host's number of the turn that failed.
    pub turn: Option<u64>,
}

/// What a new report is, beside the episode that runs (R8).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Intake {
    /// A failure of its own: it opens an episode.
    Opens,
    /// The result of the current redo.
    Result,
    /// It gets the running episode's verdict; an open loop its current directive.
    Joins,
    /// It is out of date: it changes nothing and is answered by the current directive or last verdict.
    Stale,
    /// A later turn: it waits for the running episode's end.
    Waits,
    /// A later turn of an open loop: the pending redo worked, and this failure is a new one.
    Supersedes,
}

impl SessionMemory {
    /// Tells what a report is. The order of the questions is R8's: `seq`, turn number, neither.
    pub fn intake(&self, key: ReportKey) -> Intake {
        let Some(episode) = self.open_episode() else {
            return self.intake_when_idle(key);
        };
        if let Some(seq) = key.seq {
            let is_current = seq == episode.seq() && episode.is_redoing();
            return if is_current { Intake::Result } else { Intake::Stale };
        }
        let host_redoes = episode.redoer() == Redoer::Host && episode.is_redoing();
        if let (Some(turn), Some(current)) = (key.turn, episode.turn()) {
            return match turn.cmp(&current) {
                std::cmp::Ordering::Equal => Intake::Joins,
                std::cmp::Ordering::Less => Intake::Stale,
                std::cmp::Ordering::Greater if host_redoes => Intake::Supersedes,
                std::cmp::Ordering::Greater => Intake::Waits,
            };
        }
        if host_redoes { Intake::Result } else { Intake::Joins }
    }

    fn intake_when_idle(&self, key: ReportKey) -> Intake {
        match (key.seq, self.last_verdict()) {
            // Its silence was taken for success, and it was none.
            (Some(seq), Some(Verdict::Recovered(Proof::Assumed))) if seq == self.fence().seq => Intake::Opens,
            (Some(seq), Some(_)) if seq <= self.fence().seq => Intake::Stale,
            _ => Intake::Opens,
        }
    }
}
