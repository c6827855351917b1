use std::collections::VecDeque;
use std::time::Duration;

use crate::failure::Timestamp;

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

#[cfg(test)]
mod tests {
    use super::*;

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
