use std::time::Duration;

use crate::policy::seed::{mix, unit};

/// Numbers from one seed, one after the other: the only variety of a simulated world.
#[derive(Debug, Clone)]
pub(super) struct Dice {
    seed: u64,
    rolled: u64,
}

impl Dice {
    /// Dice told apart from the seed's other dice by `salt`.
    pub fn new(seed: u64, salt: u64) -> Self {
        Self { seed: mix(seed, salt), rolled: 0 }
    }

    pub fn roll(&mut self) -> u64 {
        self.rolled += 1;
        mix(self.seed, self.rolled)
    }

    /// A number from 0 up to, not including, `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        (unit(self.roll()) * bound as f64) as u64
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of them; there must be one.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }

    /// A span of `low` to `high` milliseconds.
    pub fn millis(&mut self, low: u64, high: u64) -> Duration {
        Duration::from_millis(self.between(low, high))
    }
}
