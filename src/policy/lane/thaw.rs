use std::time::Duration;

use super::rate::seconds;
use crate::failure::Timestamp;
use crate::policy::seed;

/// The ramp on which those who waited go: evenly, faster with every success, slower at a failure.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Thaw {
    /// Calls per second.
    rate: f64,
    /// Calls that may go now; what the next one costs varies by chance, 1 on average.
    credit: f64,
    cost: f64,
    at: Timestamp,
    /// Nobody goes before this.
    paused_until: Timestamp,
    /// Since when nothing failed.
    pub quiet_since: Timestamp,
    has_failed: bool,
    seed: u64,
}

impl Thaw {
    /// Growth per success while nothing failed: a quarter of the rate in each second.
    const FAST: f64 = 0.25;
    /// Growth once something failed: calls per second, in each second.
    const SLOW: f64 = 0.5;
    /// What a failure leaves of the rate.
    const BACK_OFF: f64 = 0.6;
    /// How long a failure stops the ramp; failures within twice this time are one.
    const PAUSE: Duration = Duration::from_millis(500);
    const SLOWEST: f64 = 0.2;
    const FASTEST: f64 = 10_000.0;
    /// A lane without failures for this long, and nobody waiting, has thawed.
    pub const QUIET: Duration = Duration::from_secs(5);

    /// A ramp that starts at half of the calls that worked per second before.
    pub fn new(worked_before: f64, seed: u64, now: Timestamp) -> Self {
        Self {
            rate: (worked_before / 2.0).clamp(1.0, Self::FASTEST),
            credit: 1.0,
            cost: 1.0,
            at: now,
            paused_until: now,
            quiet_since: now,
            has_failed: false,
            seed,
        }
    }

    pub fn rate(&self) -> f64 {
        self.rate
    }

    pub fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// When the next one may go: now, if that is not later.
    pub fn next(&mut self, now: Timestamp) -> Timestamp {
        self.refill(now);
        if self.paused_until > now {
            return self.paused_until;
        }
        // A hair's breadth short counts as there: timestamps are whole milliseconds.
        let missing = self.cost - self.credit;
        if missing <= 1e-9 { now } else { now + seconds(missing / self.rate).max(Duration::from_millis(1)) }
    }

    /// One goes.
    pub fn go(&mut self, now: Timestamp) {
        self.refill(now);
        self.credit -= self.cost;
        self.seed = seed::mix(self.seed, 1);
        self.cost = 0.75 + 0.5 * seed::unit(self.seed);
    }

    pub fn worked(&mut self, now: Timestamp) {
        self.refill(now);
        self.rate += if self.has_failed { Self::SLOW / self.rate.max(Self::SLOW) } else { Self::FAST };
        self.rate = self.rate.min(Self::FASTEST);
    }

    /// Tells whether that was news.
    pub fn failed(&mut self, now: Timestamp) -> bool {
        self.refill(now);
        let is_news = !self.has_failed || now.since(self.quiet_since) >= 2 * Self::PAUSE;
        if is_news {
            self.has_failed = true;
            self.rate = (self.rate * Self::BACK_OFF).max(Self::SLOWEST);
            self.credit = 0.0;
            self.paused_until = self.paused_until.max(now + Self::PAUSE);
            self.quiet_since = now;
        }
        is_news
    }

    fn refill(&mut self, now: Timestamp) {
        let passed = now.since(self.at.max(self.paused_until));
        // What a timer's millisecond can hold goes at once, and never a burst.
        let most = (self.rate * 0.002).max(1.25);
        self.credit = (self.credit + passed.as_secs_f64() * self.rate).min(most);
        self.at = self.at.max(now);
    }
}
