use std::time::Duration;

use crate::policy::seed::{mix, unit};

/// Numbers of one seed, in order.
#[derive(Debug, Clone)]
pub(super) struct Draws {
    seed: u64,
    drawn: u64,
}

impl Draws {
    /// Draws told apart from the seed's others by `salt`.
    pub fn new(seed: u64, salt: u64) -> Self {
        Self { seed: mix(seed, salt), drawn: 0 }
    }

    /// A number from 0 up to, not including, 1.
    pub fn unit(&mut self) -> f64 {
        self.drawn += 1;
        unit(mix(self.seed, self.drawn))
    }

    /// A span from half of this one to one and a half.
    pub fn about(&mut self, span: Duration) -> Duration {
        span.mul_f64(0.5 + self.unit())
    }
}
