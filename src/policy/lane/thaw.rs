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
    /// The rate goes no lower: a share of what was carried before. If that is too much the circuit opens again.
    slowest: f64,
    /// Calls that worked, and that failed, since the rate last changed course.
    worked: u32,
    failures: u32,
    seed: u64,
}

impl Thaw {
    /// Growth per success while nothing failed: a quarter of the rate in each second.
    const FAST: f64 = 0.25;
    /// The same once something failed.
    const SLOW: f64 = 0.1;
    /// The share of failures that a ramp bears without slowing: a provider that fails so much at any rate is not
    /// healed by less work.
    const BORNE: f64 = 0.25;
    /// What a failure leaves of the rate.
    const BACK_OFF: f64 = 0.6;
    /// How long a failure stops the ramp; failures within twice this time are one.
    const PAUSE: Duration = Duration::from_millis(500);
    const SLOWEST: f64 = 0.25;
    const FASTEST: f64 = 10_000.0;
    /// A lane without failures for this long, and nobody waiting, has thawed.
    pub const QUIET: Duration = Duration::from_secs(5);

    /// A ramp that starts at the calls per second that worked before: a provider that is back carried that, and
    /// evenly, as its clients never asked for it.
    pub fn new(worked_before: f64, seed: u64, now: Timestamp) -> Self {
        let rate = worked_before.clamp(1.0, Self::FASTEST);
        Self {
            rate,
            slowest: rate * Self::SLOWEST,
            worked: 0,
            failures: 0,
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
        self.worked = self.worked.saturating_add(1);
        self.rate += if self.has_failed { Self::SLOW } else { Self::FAST };
        self.rate = self.rate.min(Self::FASTEST);
    }

    /// Tells whether that was news.
    pub fn failed(&mut self, now: Timestamp) -> bool {
        self.refill(now);
        self.failures = self.failures.saturating_add(1);
        let share = f64::from(self.failures) / f64::from(self.failures.saturating_add(self.worked));
        let is_much = !self.has_failed || (self.failures > 1 && share > Self::BORNE);
        let is_news = is_much && (!self.has_failed || now.since(self.quiet_since) >= 2 * Self::PAUSE);
        if is_news {
            (self.worked, self.failures) = (0, 0);
            self.has_failed = true;
            self.rate = (self.rate * Self::BACK_OFF).max(self.slowest);
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
