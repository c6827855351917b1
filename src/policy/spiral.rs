//! Telling a loop that only keeps itself busy from one that is hard but gets there.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How many rounds without improvement each kind of spiral is given; 0 switches that kind off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SpiralLimits {
    /// Overflows in a row whose size a compaction before them did not bring down.
    pub useless_compactions: u32,
    /// Compactions in a row after which the context was full again at once.
    pub refills: u32,
    /// Returns to the failure before the last one.
    pub alternations: u32,
    /// Rounds in a row that worked only degraded or skipped: their share of the work grows.
    pub shrinking_quality: u32,
    /// Rounds in a row that worked only with a lower fallback than the one before.
    pub lower_fallbacks: u32,
    /// What a compaction must free to count as one that helped, in per cent of the size before.
    pub least_freed_percent: u32,
    /// How many rounds the context must stay below its limit for a compaction not to count as refilled.
    pub refilled_within: u32,
}

impl Default for SpiralLimits {
    fn default() -> Self {
        Self {
            useless_compactions: 3,
            refills: 3,
            alternations: 3,
            shrinking_quality: 3,
            lower_fallbacks: 3,
            least_freed_percent: 10,
            refilled_within: 2,
        }
    }
}

/// What kind of going round a loop was seen to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SpiralKind {
    /// Compaction frees nothing any more.
    UselessCompaction,
    /// The context is full again right after each compaction.
    Refill,
    /// The cure of one failure brings the other.
    Alternation,
    /// More and more of the work is degraded or skipped.
    ShrinkingQuality,
    /// Each round works only with a lower fallback.
    LowerFallbacks,
}

/// A spiral, with the numbers that showed it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spiral {
    /// Its kind.
    pub kind: SpiralKind,
    /// Rounds without improvement.
    pub rounds: u32,
}

impl fmt::Display for Spiral {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rounds = self.rounds;
        match self.kind {
            SpiralKind::UselessCompaction => write!(f, "{rounds} compactions in a row freed nothing"),
            SpiralKind::Refill => write!(f, "the context was full again right after {rounds} compactions"),
            SpiralKind::Alternation => write!(f, "two failures took turns over {rounds} rounds"),
            SpiralKind::ShrinkingQuality => {
                write!(f, "{rounds} rounds in a row were degraded or skipped: a growing share of the work")
            }
            SpiralKind::LowerFallbacks => write!(f, "{rounds} rounds in a row each needed a lower fallback"),
        }
    }
}

/// What one execution of a loop's step came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Round {
    /// The failure's fingerprint; `None`: it worked.
    pub failure: Option<u64>,
    /// The size of an overflow, in tokens, where the failure told it.
    pub overflow: Option<u64>,
    /// The history was compacted before this round.
    pub compacted: bool,
    /// It was done by the host's alternative, or left out.
    pub lesser: bool,
    /// How low the fallback was that it used: 0 is the usual way.
    pub fallback: u32,
    /// How much is left to do, in any unit of the host's that sinks with progress.
    pub remaining: Option<u64>,
}

/// Watches the rounds of one loop. It is a value: kept with a loop's progress, it survives a crash.
///
/// Whatever a host can measure wins: a round that brings [`Round::remaining`] below its lowest so far is
/// an improvement, and every count starts anew.
///
/// ```
/// use backstop::policy::spiral::{Round, SpiralKind, SpiralLimits, SpiralWatch};
///
/// let mut watch = SpiralWatch::default();
/// let failed = |fingerprint| Round { failure: Some(fingerprint), ..Round::default() };
/// let seen: Vec<_> = [1, 2, 1, 2, 1].map(|it| watch.observe(failed(it), &SpiralLimits::default())).into();
/// assert!(seen[..4].iter().all(Option::is_none));
/// assert_eq!(seen[4].as_ref().map(|spiral| spiral.kind), Some(SpiralKind::Alternation));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SpiralWatch {
    lowest_remaining: Option<u64>,
    last_failures: [Option<u64>; 2],
    alternations: u32,
    last_overflow: Option<u64>,
    useless_compactions: u32,
    rounds_since_compaction: Option<u32>,
    refills: u32,
    shrinking: u32,
    last_fallback: u32,
    falls: u32,
}

impl SpiralWatch {
    /// Takes one round in; answers with a spiral as soon as one is plain.
    pub fn observe(&mut self, round: Round, limits: &SpiralLimits) -> Option<Spiral> {
        if self.improved(round.remaining) {
            self.start_anew();
        }
        self.see_compaction(round, limits);
        match round.failure {
            Some(failure) => self.see_failure(failure),
            None => self.see_completed(round),
        }
        self.found(limits)
    }

    /// A host brought its agent back on course: all counts start anew.
    pub fn start_anew(&mut self) {
        let lowest_remaining = self.lowest_remaining;
        *self = Self { lowest_remaining, ..Self::default() };
    }

    fn improved(&mut self, remaining: Option<u64>) -> bool {
        let Some(remaining) = remaining else { return false };
        let is_lower = self.lowest_remaining.is_some_and(|lowest| remaining < lowest);
        self.lowest_remaining = Some(self.lowest_remaining.map_or(remaining, |lowest| lowest.min(remaining)));
        is_lower
    }

    fn see_compaction(&mut self, round: Round, limits: &SpiralLimits) {
        if let Some(size) = round.overflow {
            let enough = |before: u64| before.saturating_mul(100 - u64::from(limits.least_freed_percent.min(100)));
            if round.compacted {
                let is_useless = self.last_overflow.is_some_and(|before| size.saturating_mul(100) > enough(before));
                self.useless_compactions = if is_useless { self.useless_compactions + 1 } else { 0 };
            }
            self.last_overflow = Some(size);
        }
        if round.compacted {
            self.rounds_since_compaction = Some(0);
        }
        let Some(rounds) = self.rounds_since_compaction else { return };
        if round.overflow.is_some() {
            // Full again before a stretch of work fitted in; a redo that still overflows is no refill.
            if rounds > 0 {
                self.refills = if rounds <= limits.refilled_within { self.refills + 1 } else { 0 };
                self.rounds_since_compaction = None;
            }
        } else if round.failure.is_none() {
            let rounds = rounds + 1;
            self.rounds_since_compaction = Some(rounds);
            self.useless_compactions = 0;
            if rounds > limits.refilled_within {
                self.refills = 0;
            }
        }
    }

    fn see_failure(&mut self, failure: u64) {
        let [before_last, last] = self.last_failures;
        if last != Some(failure) {
            if before_last == Some(failure) {
                self.alternations += 1;
            } else {
                self.alternations = 0;
            }
            self.last_failures = [last, Some(failure)];
        }
    }

    fn see_completed(&mut self, round: Round) {
        // A run of such rounds makes their share of the work grow, whatever came before it.
        self.shrinking = if round.lesser { self.shrinking + 1 } else { 0 };
        if !round.lesser {
            // Work of full quality came through: what took turns before it is over.
            self.last_failures = [None, None];
            self.alternations = 0;
        }
        self.falls = if round.fallback > self.last_fallback { self.falls + 1 } else { 0 };
        self.last_fallback = round.fallback;
    }

    fn found(&self, limits: &SpiralLimits) -> Option<Spiral> {
        let counts = [
            (SpiralKind::UselessCompaction, self.useless_compactions, limits.useless_compactions),
            (SpiralKind::Refill, self.refills, limits.refills),
            (SpiralKind::Alternation, self.alternations, limits.alternations),
            (SpiralKind::ShrinkingQuality, self.shrinking, limits.shrinking_quality),
            (SpiralKind::LowerFallbacks, self.falls, limits.lower_fallbacks),
        ];
        let over = counts.into_iter().find(|(_, rounds, limit)| *limit > 0 && rounds >= limit);
        over.map(|(kind, rounds, _)| Spiral { kind, rounds })
    }
}
