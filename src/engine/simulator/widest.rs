use std::time::Duration;

use crate::policy::RecoveryConfig;

/// The widest bounds of all configurations that have been in force.
#[derive(Debug, Clone, Copy)]
pub(super) struct Widest {
    pub attempts: u32,
    pub recoveries: usize,
    pub window: Duration,
    pub strikes: usize,
}

impl Widest {
    pub fn of(config: &RecoveryConfig) -> Self {
        let limits = config.limits();
        Self {
            attempts: limits.max_total_attempts,
            recoveries: limits.max_recoveries as usize,
            window: limits.recovery_window,
            strikes: limits.max_same_failure as usize,
        }
    }

    pub fn widen(&mut self, other: &Self) {
        self.attempts = self.attempts.max(other.attempts);
        self.recoveries = self.recoveries.max(other.recoveries);
        self.window = self.window.min(other.window);
        self.strikes = self.strikes.max(other.strikes);
    }
}
