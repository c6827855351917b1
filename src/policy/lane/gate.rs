use std::time::Duration;

use super::settings::LaneSettings;
use crate::failure::Timestamp;

/// A server's stated wait, honoured once for everybody, and how many calls may be under way at once.
///
/// Throttling takes three tenths of what is under way, at most once a second; each success while the lane is
/// full gives a little back, one call per full round.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Gate {
    hold: Option<Timestamp>,
    window: f64,
    narrowed: Option<Timestamp>,
}

impl Gate {
    /// What throttling leaves of the calls at once.
    const NARROWS: f64 = 0.7;
    /// Calls that were under way together are throttled together: that is one sign.
    const ROUND: Duration = Duration::from_secs(1);
    /// So few calls under way are not what the server minds.
    const FEW: usize = 4;
    /// Without throttling for this long the lane widens twice as wide a round.
    const CALM: Duration = Duration::from_secs(30);

    pub fn new(settings: &LaneSettings) -> Self {
        Self { hold: None, window: settings.concurrency as f64, narrowed: None }
    }

    pub fn hold(&mut self, until: Timestamp, now: Timestamp) -> bool {
        if until <= now || self.hold.is_some_and(|known| known >= until) {
            return false;
        }
        self.hold = Some(until);
        true
    }

    pub fn held_until(&self, now: Timestamp) -> Option<Timestamp> {
        self.hold.filter(|until| *until > now)
    }

    /// Forgets a hold that is over; tells whether there was one.
    pub fn is_released(&mut self, now: Timestamp) -> bool {
        self.hold.take_if(|until| *until <= now).is_some()
    }

    /// Calls that may be under way at once.
    pub fn window(&self, settings: &LaneSettings) -> usize {
        if settings.is_guarded { (self.window as usize).clamp(1, settings.concurrency) } else { settings.concurrency }
    }

    /// Other limits: a narrowed lane stays as narrow, an open one gets all of them.
    pub fn adjust(&mut self, settings: &LaneSettings) {
        let most = settings.concurrency as f64;
        self.window = if self.narrowed.is_none() { most } else { self.window.min(most) };
    }

    pub fn throttled(&mut self, inside: usize, settings: &LaneSettings, now: Timestamp) -> bool {
        if inside < Self::FEW || self.narrowed.is_some_and(|at| now.since(at) < Self::ROUND) {
            return false;
        }
        // The one that was refused has left by now.
        let under_way = (inside as f64 + 1.0).min(self.window);
        self.window = (under_way * Self::NARROWS).max(settings.min_concurrency as f64);
        self.narrowed = Some(now);
        true
    }

    pub fn worked(&mut self, inside: usize, settings: &LaneSettings, now: Timestamp) {
        let most = settings.concurrency as f64;
        let Some(narrowed) = self.narrowed else { return };
        if (inside as f64 + 1.0) < self.window.floor() {
            return;
        }
        self.window += if now.since(narrowed) > Self::CALM { 1.0 } else { 1.0 / self.window.max(1.0) };
        if self.window >= most {
            (self.window, self.narrowed) = (most, None);
        }
    }
}
