use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group, test_kill_process_group};
use tokio::time::{Instant, sleep};

use super::ending::Send;
use super::leftovers::members;

/// How often a group that is being ended is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// How long killed processes are waited for.
const DYING: Duration = Duration::from_secs(1);

/// A child's process group. Dropped before the child was seen to end, it is killed whole.
#[derive(Debug)]
pub(super) struct Group {
    leader: Pid,
    /// The child has been waited for: its number may belong to somebody else, its group's only
    /// while a member lives.
    reaped: bool,
}

impl Group {
    /// The group that a child just started leads; `None` when it has ended already.
    pub(super) fn of(child: &tokio::process::Child) -> Option<Self> {
        let leader = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw)?;
        Some(Self::of_leader(leader))
    }

    /// The group with this number.
    pub(super) fn of_leader(leader: Pid) -> Self {
        Self { leader, reaped: false }
    }

    /// Its number.
    pub(super) fn leader(&self) -> Pid {
        self.leader
    }

    /// Sends to every member. One that is stopped is woken, or it would never see the signal.
    pub(super) fn send(&self, what: Send) {
        match what {
            Send::Interrupt => self.signal(&[Signal::INT, Signal::CONT]),
            Send::Terminate => self.signal(&[Signal::TERM, Signal::CONT]),
            Send::Kill => self.signal(&[Signal::KILL]),
        }
    }

    fn signal(&self, signals: &[Signal]) {
        for signal in signals {
            // No such group: the leader may have moved to another one.
            if kill_process_group(self.leader, *signal).is_err() && !self.reaped {
                let _gone = kill_process(self.leader, *signal);
            }
        }
    }

    /// The child has been waited for.
    pub(super) fn reaped(&mut self) {
        self.reaped = true;
    }

    /// Waits until the last member is gone; kills those that are still there after `grace`.
    ///
    /// An agent's wrapper can die at once while the real agent works on, and a tool that is killed
    /// while it cleans up leaves its lock files behind.
    pub(super) async fn end_leftovers(&self, grace: Duration) {
        if !self.empty_within(grace).await {
            self.send(Send::Kill);
            // A killed process needs a moment to die, but one whose parent never asks stays for ever.
            self.empty_within(DYING).await;
        }
    }

    /// Whether any member still works: one that is dead but not collected, by whoever adopted it, does not.
    fn lives(&self) -> bool {
        test_kill_process_group(self.leader).is_ok() && members(self.leader).is_none_or(|members| !members.is_empty())
    }

    async fn empty_within(&self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        while self.lives() {
            if Instant::now() >= deadline {
                return false;
            }
            sleep(LOOK).await;
        }
        true
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if !self.reaped {
            self.send(Send::Kill);
        }
    }
}
