use std::time::Duration;

use crate::failure::Timestamp;

/// Whether the failures seen are an outage: a cumulative sum test.
///
/// Each outcome shifts a sum by the logarithm of how much likelier it is in an outage (98 % fail) than by the
/// lane's usual share of failures; the sum never falls below zero. Coming from good times five failures with no
/// success between them suffice, and with half of all calls failing it takes twelve, so a brown-out is left to
/// the budget.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Suspicion {
    sum: f64,
    usual: f64,
    suspects: Vec<u64>,
    last: Timestamp,
}

impl Suspicion {
    /// The share of calls that fail in an outage.
    const OUTAGE: f64 = 0.98;
    /// The usual share is taken to lie between these: few failures are never proof, many never normal.
    const USUAL: (f64, f64) = (0.2, 0.6);
    /// How much one outcome moves the usual share: some fifty make it.
    const LEARNS: f64 = 0.02;
    /// The sum at which it is an outage: the evidence for it is then e⁷·⁹ to one.
    const PROOF: f64 = 7.9;
    /// Sessions told apart; more only repeat it.
    const SUSPECTS: usize = 64;
    /// Failures this far apart are not one outage.
    const MEMORY: Duration = Duration::from_secs(60);

    pub fn new(now: Timestamp) -> Self {
        Self { sum: 0.0, usual: 0.0, suspects: vec![], last: now }
    }

    pub fn worked(&mut self, now: Timestamp) {
        self.weigh((1.0 - Self::OUTAGE) / (1.0 - self.usual()), 0.0, now);
    }

    /// A failure that speaks about the lane; tells whether it is an outage by now.
    pub fn failed(&mut self, session: u64, needed: usize, now: Timestamp) -> bool {
        if now.since(self.last) > Self::MEMORY {
            self.clear();
        }
        self.weigh(Self::OUTAGE / self.usual(), 1.0, now);
        if self.suspects.len() < Self::SUSPECTS && !self.suspects.contains(&session) {
            self.suspects.push(session);
        }
        self.sum >= Self::PROOF && self.suspects.len() >= needed.min(Self::SUSPECTS)
    }

    /// Starts anew, without forgetting what is usual.
    pub fn clear(&mut self) {
        self.sum = 0.0;
        self.suspects.clear();
    }

    /// After an outage failures among those who come back are no news.
    pub fn expect_trouble(&mut self) {
        self.clear();
        self.usual = Self::USUAL.1;
    }

    /// Whether half of the proof is there.
    pub fn is_grave(&self) -> bool {
        self.sum >= Self::PROOF / 2.0
    }

    pub fn suspects(&self) -> usize {
        self.suspects.len()
    }

    fn usual(&self) -> f64 {
        self.usual.clamp(Self::USUAL.0, Self::USUAL.1)
    }

    fn weigh(&mut self, likelier: f64, failed: f64, now: Timestamp) {
        self.sum = (self.sum + likelier.ln()).max(0.0);
        self.usual += Self::LEARNS * (failed - self.usual);
        self.last = now;
        if self.sum == 0.0 {
            self.suspects.clear();
        }
    }
}
