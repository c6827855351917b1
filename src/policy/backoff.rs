use std::time::Duration;

use super::seed;

/// Waits that grow: before redo `n` it is `base · factor^(n-1)`, at most `cap` (R4).
///
/// ```
/// use backstop::policy::Backoff;
/// use std::time::Duration;
///
/// let exact = Backoff { jitter: false, ..Backoff::default() };
/// assert_eq!(exact.delay(1, 0), Duration::from_secs(2));
/// assert_eq!(exact.delay(2, 0), Duration::from_secs(4));
/// assert_eq!(exact.delay(99, 0), Duration::from_secs(30));
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Backoff {
    /// The wait before the first redo.
    pub base: Duration,
    /// What each wait is multiplied by to give the next; a negative one or `NaN` counts as 1.
    pub factor: f64,
    /// No wait is longer.
    pub cap: Duration,
    /// Spreads each wait over 50–100 % of its length, so that a fleet does not wake as one.
    pub jitter: bool,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { base: Duration::from_millis(2_000), factor: 2.0, cap: Duration::from_secs(30), jitter: true }
    }
}

impl Backoff {
    /// The share of a wait that jitter leaves at least.
    pub const SHORTEST_SHARE: f64 = 0.5;

    /// Steps of growth that are worked out. A factor of 2 outgrows every number by then; one so near
    /// to 1 that it has not reached the cap stays where it is.
    const MAX_GROWTH: u32 = 1_024;

    /// The wait before redo `n`, counted from 1; `seed` only moves it within the jitter.
    ///
    /// Total: no value of the fields makes it panic or exceed `cap`. Without jitter and with a factor
    /// of at least 1 it never shrinks as `n` grows.
    pub fn delay(&self, n: u32, seed: u64) -> Duration {
        let full = self.without_jitter(n);
        if !self.jitter {
            return full;
        }
        let share = Self::SHORTEST_SHARE + (1.0 - Self::SHORTEST_SHARE) * seed::unit(seed::mix(seed, u64::from(n)));
        bounded(full.as_secs_f64() * share, full)
    }

    fn without_jitter(&self, n: u32) -> Duration {
        let factor = if self.factor >= 0.0 { self.factor } else { 1.0 };
        let cap = millis(self.cap);
        let mut wait = millis(self.base);
        for _ in 1..n.min(Self::MAX_GROWTH) {
            // Zero times an infinite factor stays zero; a wait beyond the cap has grown enough.
            if wait == 0.0 || wait >= cap {
                break;
            }
            wait *= factor;
        }
        bounded(wait / 1_000.0, self.cap)
    }
}

/// Whole milliseconds come out of powers and products exact; seconds would not.
fn millis(span: Duration) -> f64 {
    span.as_secs_f64() * 1_000.0
}

fn bounded(seconds: f64, most: Duration) -> Duration {
    Duration::try_from_secs_f64(seconds).map_or(most, |wait| wait.min(most))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const fn exact(base_ms: u64, factor: f64) -> Backoff {
        Backoff { base: Duration::from_millis(base_ms), factor, cap: Duration::from_secs(30), jitter: false }
    }

    #[test]
    fn attempts_counted_from_one_wait_as_long_as_the_originals_counted_from_zero() {
        // (base in ms, factor, n, wait in µs)
        let table = [
            (2_000, 2.0, 1, 2_000_000),
            (2_000, 2.0, 2, 4_000_000),
            (2_000, 2.0, 3, 8_000_000),
            (250, 3.0, 1, 250_000),
            (250, 3.0, 5, 20_250_000),
            (100, 1.5, 3, 225_000),
            (1_000, 1.0, 4, 1_000_000),
            (1_000, 0.0, 1, 1_000_000),
            (1_000, 0.0, 2, 0),
            (2_000, 2.0, 21, 30_000_000),
        ];
        for (base, factor, n, wait) in table {
            assert_eq!(exact(base, factor).delay(n, 9), Duration::from_micros(wait), "{base}·{factor}^({n}-1)");
        }
    }

    #[test]
    fn nonsense_factors_leave_the_base() {
        for factor in [f64::NAN, -2.0, f64::NEG_INFINITY] {
            assert_eq!(exact(1_000, factor).delay(7, 0), Duration::from_secs(1));
        }
        assert_eq!(exact(1_000, f64::INFINITY).delay(2, 0), Duration::from_secs(30));
        assert_eq!(exact(0, f64::INFINITY).delay(3, 0), Duration::ZERO);
        assert_eq!(exact(1_000, 2.0).delay(0, 0), Duration::from_secs(1));
    }

    #[test]
    fn jitter_uses_the_upper_half_of_the_wait_and_all_of_it() {
        let jittered = Backoff::default();
        let waits: Vec<Duration> = (0..1_000).map(|seed| jittered.delay(1, seed)).collect();
        assert!(waits.iter().all(|wait| (1_000..=2_000).contains(&wait.as_millis())));
        for quarter in [1_000..1_250, 1_250..1_500, 1_500..1_750, 1_750..2_001] {
            let hits = waits.iter().filter(|wait| quarter.contains(&wait.as_millis())).count();
            assert!((200..300).contains(&hits), "{hits} of 1000 in {quarter:?}");
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_wait() {
        assert_eq!(Backoff::default().delay(3, 41), Backoff::default().delay(3, 41));
        assert_ne!(Backoff::default().delay(3, 41), Backoff::default().delay(3, 42));
    }

    fn any_span() -> impl Strategy<Value = Duration> {
        prop_oneof![
            any::<u64>().prop_map(Duration::from_millis),
            (any::<u64>(), 0..1_000_000_000_u32).prop_map(|(seconds, nanos)| Duration::new(seconds, nanos))
        ]
    }

    proptest! {
        #[test]
        fn every_value_gives_a_wait_within_the_cap(
            (base, cap) in (any_span(), any_span()),
            factor in any::<f64>(),
            jitter: bool,
            n: u32,
            seed: u64,
        ) {
            let backoff = Backoff { base, factor, cap, jitter };
            prop_assert!(backoff.delay(n, seed) <= cap);
        }

        #[test]
        fn without_jitter_the_wait_never_shrinks(
            (base, cap) in (any_span(), any_span()),
            factor in prop_oneof![1.0..1.000_001, 1.0..10.0, 1.0..f64::MAX],
            n in prop_oneof![1..50_u32, 1..u32::MAX],
        ) {
            let backoff = Backoff { base, factor, cap, jitter: false };
            prop_assert!(backoff.delay(n, 0) <= backoff.delay(n + 1, 0));
        }

        #[test]
        fn jitter_never_lengthens_a_wait_and_never_halves_it_away(
            base in any_span(), cap in any_span(), factor in any::<f64>(), n: u32, seed: u64,
        ) {
            let jittered = Backoff { base, factor, cap, jitter: true };
            let full = Backoff { jitter: false, ..jittered }.delay(n, seed);
            let wait = jittered.delay(n, seed);
            prop_assert!(wait <= full);
            // A millionth of slack: the longest waits have more digits than an `f64`.
            prop_assert!(wait.as_secs_f64() >= full.as_secs_f64() * 0.499_999);
        }
    }
}
