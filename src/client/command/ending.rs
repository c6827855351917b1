use std::time::Duration;

use super::control::Asked;
use super::{EndedBy, Limits};

/// What to send to the child's process group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Send {
    Interrupt,
    Terminate,
    Kill,
}

/// How far the ending of a child has gone; each step waits for the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Running,
    Interrupted { at: Duration },
    Terminated { at: Duration },
    Killed,
}

/// What the streams did, as far as the idle time-out cares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Activity {
    /// The last byte read or passed on.
    pub(super) last: Duration,
    /// The parent's own output is blocked, so the child cannot be blamed for its silence.
    pub(super) blocked: bool,
}

/// Decides when a child is asked to end, and how firmly. Time is handed in, counted from its start.
#[derive(Debug)]
pub(super) struct Ending {
    limits: Limits,
    phase: Phase,
    cause: EndedBy,
}

impl Ending {
    pub(super) fn new(limits: Limits) -> Self {
        Self { limits, phase: Phase::Running, cause: EndedBy::Own }
    }

    /// Who ended the child; the first cause counts.
    pub(super) fn cause(&self) -> EndedBy {
        self.cause
    }

    /// The limit that was exceeded.
    pub(super) fn limit(&self) -> Option<Duration> {
        match self.cause {
            EndedBy::TurnTimeout => self.limits.turn_timeout,
            EndedBy::IdleTimeout => self.limits.idle_timeout,
            EndedBy::Own | EndedBy::Cancelled | EndedBy::Suspended => None,
        }
    }

    /// Something was asked from outside.
    pub(super) fn ask(&mut self, asked: Asked, now: Duration) -> Option<Send> {
        match asked {
            Asked { cancels: 2.., .. } => self.kill(EndedBy::Cancelled),
            Asked { suspends: 2.., .. } => self.kill(EndedBy::Suspended),
            Asked { suspends: 1, .. } => self.terminate(EndedBy::Suspended, now),
            Asked { cancels: 1, .. } => self.interrupt(now),
            Asked { cancels: 0, suspends: 0 } => None,
        }
    }

    /// The next moment at which [`tick`](Self::tick) has something to decide.
    pub(super) fn due(&self, now: Duration, activity: Activity) -> Option<Duration> {
        match self.phase {
            Phase::Running => {
                let since = if activity.blocked { now } else { activity.last };
                let idle = self.limits.idle_timeout.map(|limit| since + limit);
                [self.limits.turn_timeout, idle].into_iter().flatten().min()
            }
            Phase::Interrupted { at } => Some(at + self.limits.interrupt_grace),
            Phase::Terminated { at } => Some(at + self.limits.grace),
            Phase::Killed => None,
        }
    }

    /// Time has passed.
    pub(super) fn tick(&mut self, now: Duration, activity: Activity) -> Option<Send> {
        if self.due(now, activity).is_none_or(|due| now < due) {
            return None;
        }
        match self.phase {
            Phase::Running if self.limits.turn_timeout.is_some_and(|limit| now >= limit) => {
                self.terminate(EndedBy::TurnTimeout, now)
            }
            Phase::Running => self.terminate(EndedBy::IdleTimeout, now),
            Phase::Interrupted { .. } => self.terminate(self.cause, now),
            Phase::Terminated { .. } => self.kill(self.cause),
            Phase::Killed => None,
        }
    }

    fn interrupt(&mut self, now: Duration) -> Option<Send> {
        self.blame(EndedBy::Cancelled);
        match self.phase {
            Phase::Running => {
                self.phase = Phase::Interrupted { at: now };
                Some(Send::Interrupt)
            }
            Phase::Interrupted { .. } | Phase::Terminated { .. } | Phase::Killed => None,
        }
    }

    fn terminate(&mut self, cause: EndedBy, now: Duration) -> Option<Send> {
        self.blame(cause);
        match self.phase {
            Phase::Running | Phase::Interrupted { .. } => {
                self.phase = Phase::Terminated { at: now };
                Some(Send::Terminate)
            }
            Phase::Terminated { .. } | Phase::Killed => None,
        }
    }

    fn kill(&mut self, cause: EndedBy) -> Option<Send> {
        self.blame(cause);
        match self.phase {
            Phase::Running | Phase::Interrupted { .. } | Phase::Terminated { .. } => {
                self.phase = Phase::Killed;
                Some(Send::Kill)
            }
            Phase::Killed => None,
        }
    }

    /// A person who cancels wins over a time-out: the turn must not be redone.
    fn blame(&mut self, cause: EndedBy) {
        match (self.cause, cause) {
            (EndedBy::Own, first) => self.cause = first,
            (EndedBy::TurnTimeout | EndedBy::IdleTimeout, EndedBy::Cancelled | EndedBy::Suspended) => {
                self.cause = cause;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    const fn spoke_at(seconds: u64) -> Activity {
        Activity { last: s(seconds), blocked: false }
    }

    fn ending() -> Ending {
        let limits = Limits { turn_timeout: Some(s(100)), idle_timeout: Some(s(30)), ..Limits::default() };
        Ending::new(limits)
    }

    #[test]
    fn a_silent_child_is_terminated_then_killed() {
        let mut ending = ending();
        assert_eq!(ending.tick(s(29), spoke_at(0)), None);
        assert_eq!(ending.due(s(29), spoke_at(10)), Some(s(40)));
        assert_eq!(ending.tick(s(40), spoke_at(10)), Some(Send::Terminate));
        assert_eq!(ending.due(s(40), spoke_at(10)), Some(s(45)));
        assert_eq!(ending.tick(s(44), spoke_at(10)), None);
        assert_eq!(ending.tick(s(45), spoke_at(10)), Some(Send::Kill));
        assert_eq!(ending.due(s(45), spoke_at(10)), None);
        assert_eq!((ending.cause(), ending.limit()), (EndedBy::IdleTimeout, Some(s(30))));
    }

    #[test]
    fn a_child_that_talks_for_ever_meets_the_turn_timeout() {
        let mut ending = ending();
        assert_eq!(ending.due(s(90), spoke_at(90)), Some(s(100)));
        assert_eq!(ending.tick(s(100), spoke_at(100)), Some(Send::Terminate));
        assert_eq!((ending.cause(), ending.limit()), (EndedBy::TurnTimeout, Some(s(100))));
    }

    #[test]
    fn a_reader_that_blocks_us_is_not_the_childs_silence() {
        let mut ending = ending();
        let blocked = Activity { last: s(1), blocked: true };
        assert_eq!(ending.tick(s(50), blocked), None);
        assert_eq!(ending.due(s(50), blocked), Some(s(80)));
    }

    #[test]
    fn cancelling_interrupts_first_and_kills_the_second_time() {
        let mut ending = ending();
        assert_eq!(ending.ask(Asked { cancels: 1, suspends: 0 }, s(1)), Some(Send::Interrupt));
        assert_eq!(ending.ask(Asked { cancels: 2, suspends: 0 }, s(2)), Some(Send::Kill));
        assert_eq!(ending.ask(Asked { cancels: 3, suspends: 0 }, s(3)), None);
        assert_eq!(ending.cause(), EndedBy::Cancelled);
    }

    #[test]
    fn a_child_that_ignores_the_interrupt_is_terminated_in_the_end() {
        let mut ending = ending();
        ending.ask(Asked { cancels: 1, suspends: 0 }, s(1));
        assert_eq!(ending.tick(s(11), spoke_at(11)), Some(Send::Terminate));
        assert_eq!(ending.tick(s(16), spoke_at(11)), Some(Send::Kill));
        assert_eq!(ending.cause(), EndedBy::Cancelled);
    }

    #[test]
    fn cancelling_after_a_timeout_still_means_cancelled() {
        let mut ending = ending();
        ending.tick(s(30), spoke_at(0));
        assert_eq!(ending.ask(Asked { cancels: 1, suspends: 0 }, s(31)), None, "it is being ended already");
        assert_eq!(ending.cause(), EndedBy::Cancelled);
        assert_eq!(ending.limit(), None);
    }

    #[test]
    fn suspending_twice_kills() {
        let mut ending = ending();
        assert_eq!(ending.ask(Asked { cancels: 0, suspends: 1 }, s(1)), Some(Send::Terminate));
        assert_eq!(ending.ask(Asked { cancels: 0, suspends: 2 }, s(2)), Some(Send::Kill));
        assert_eq!(ending.cause(), EndedBy::Suspended);
    }
}
