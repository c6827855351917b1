use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use crate::failure::{SessionId, Timestamp};
use crate::policy::Limits;

/// How often something was restarted lately.
#[derive(Debug, Default)]
pub(crate) struct Intensity {
    restarts: VecDeque<Timestamp>,
}

impl Intensity {
    /// Notes a restart; false if `limit` restarts within `window` have happened already.
    pub fn restart(&mut self, limit: u32, window: Duration, now: Timestamp) -> bool {
        while self.restarts.front().is_some_and(|at| now.since(*at) > window) {
            self.restarts.pop_front();
        }
        if self.restarts.len() >= limit as usize {
            return false;
        }
        self.restarts.push_back(now);
        true
    }
}

/// The sessions whose actors failed lately, so that one that fails again and again is given up.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    sessions: HashMap<SessionId, Intensity>,
    /// Oldest first, so that the map stays small.
    order: VecDeque<SessionId>,
}

impl Failures {
    /// Sessions whose failures are remembered.
    const REMEMBERED: usize = 10_000;

    /// Notes a failure; tells whether the session's actor may be restarted.
    pub fn may_restart(&mut self, id: &SessionId, limits: &Limits, now: Timestamp) -> bool {
        if !self.sessions.contains_key(id) {
            self.order.push_back(id.clone());
            if self.order.len() > Self::REMEMBERED
                && let Some(oldest) = self.order.pop_front()
            {
                self.sessions.remove(&oldest);
            }
        }
        let intensity = self.sessions.entry(id.clone()).or_default();
        intensity.restart(limits.restart_intensity, limits.restart_window, now)
    }
}

/// Whether an actor was killed: while it waits for a message it then gives its state back, like one that
/// ends by itself (ractor 0.16.5).
pub(crate) fn was_killed(reason: Option<&str>) -> bool {
    reason == Some("killed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_killed_actor_is_known_by_its_reason() {
        assert!(was_killed(Some(&ractor::Signal::Kill.to_string())));
        assert!(!was_killed(None) && !was_killed(Some("put away")));
    }

    #[test]
    fn the_limit_holds_within_the_window_and_is_free_again_after_it() {
        let mut intensity = Intensity::default();
        let (window, start) = (Duration::from_secs(30), Timestamp::from_millis(1_000_000));
        assert!(intensity.restart(2, window, start));
        assert!(intensity.restart(2, window, start));
        assert!(!intensity.restart(2, window, start + window));
        assert!(intensity.restart(2, window, start + window + Duration::from_millis(1)));
    }
}
