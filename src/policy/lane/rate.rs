use std::time::Duration;

use crate::failure::Timestamp;

/// How often something happens: a count in which older happenings weigh less.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Rate {
    span: Duration,
    count: f64,
    at: Timestamp,
    begun: Timestamp,
}

impl Rate {
    /// One that looks back about this far.
    pub fn over(span: Duration, now: Timestamp) -> Self {
        Self { span, count: 0.0, at: now, begun: now }
    }

    pub fn add(&mut self, now: Timestamp) {
        self.decay(now);
        self.count += 1.0;
    }

    /// The weighed count.
    pub fn count(&mut self, now: Timestamp) -> f64 {
        self.decay(now);
        self.count
    }

    /// Happenings per second: of a count that has not looked back the whole span, over what it has seen.
    pub fn per_second(&mut self, now: Timestamp) -> f64 {
        let span = self.span.as_secs_f64();
        let seen = span * (1.0 - (-now.since(self.begun).as_secs_f64() / span).exp());
        self.count(now) / seen.max(1.0)
    }

    fn decay(&mut self, now: Timestamp) {
        let passed = now.since(self.at);
        if passed > Duration::ZERO {
            self.count *= (-passed.as_secs_f64() / self.span.as_secs_f64()).exp();
            self.at = now;
        }
    }
}

/// A span in seconds as a duration, rounded up to the millisecond that timestamps are made of.
pub(super) fn seconds(span: f64) -> Duration {
    /// Longer waits are all the same: the asker comes back earlier by itself.
    const LONGEST: f64 = 3_600.0;
    let millis = (span.clamp(0.0, LONGEST) * 1_000.0).ceil();
    Duration::from_millis(millis as u64)
}
