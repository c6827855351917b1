//! Variety that can be repeated: numbers mixed from a seed that was passed in.

/// The increment of the SplitMix64 sequence: 2⁶⁴ divided by the golden ratio, made odd.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// A new seed for one use of `seed`, told apart from its other uses by `salt`.
///
/// The finaliser of SplitMix64: every bit of both inputs reaches every bit of the result, so
/// neighbouring seeds and salts give unrelated numbers. Not for secrets.
///
/// ```
/// use backstop::policy::seed::mix;
///
/// assert_eq!(mix(7, 1), mix(7, 1));
/// assert_ne!(mix(7, 1), mix(7, 2));
/// ```
pub const fn mix(seed: u64, salt: u64) -> u64 {
    let mut bits = seed.wrapping_add(GOLDEN.wrapping_mul(salt.wrapping_add(1)));
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// A number from 0 up to, not including, 1, spread evenly over the seeds.
///
/// ```
/// use backstop::policy::seed::{mix, unit};
///
/// assert!((0.0..1.0).contains(&unit(mix(7, 1))));
/// ```
pub fn unit(seed: u64) -> f64 {
    /// 2⁵³: the largest power of two below which an `f64` holds every whole number.
    const STEPS: f64 = (1_u64 << 53) as f64;
    (mix(seed, 0) >> 11) as f64 / STEPS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_splitmix64() {
        // The published first outputs of SplitMix64 seeded with 1 234 567.
        assert_eq!(mix(1_234_567, 0), 6_457_827_717_110_365_317);
        assert_eq!(mix(1_234_567, 1), 3_203_168_211_198_807_973);
    }

    #[test]
    fn units_stay_below_one_and_spread_evenly() {
        let units: Vec<f64> = (0..10_000).map(unit).collect();
        assert!(units.iter().all(|unit| (0.0..1.0).contains(unit)));
        let mean = units.iter().sum::<f64>() / 10_000.0;
        assert!((0.48..0.52).contains(&mean), "{mean}");
        let low = units.iter().filter(|unit| **unit < 0.1).count();
        assert!((900..1_100).contains(&low), "{low}");
    }

    #[test]
    fn the_extreme_seeds_are_seeds_like_any_other() {
        for seed in [0, 1, u64::MAX] {
            assert!((0.0..1.0).contains(&unit(seed)));
            assert_ne!(mix(seed, u64::MAX), mix(seed, 1));
        }
    }
}
