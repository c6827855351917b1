use super::metrics::Percentiles;

/// Counts of spans in fixed buckets that grow with the span: each power of two has eight, so a
/// percentile is at most an eighth too long, and never too short.
#[derive(Debug, Clone)]
pub(super) struct Histogram {
    buckets: Box<[u64; Self::BUCKETS]>,
    count: u64,
    sum: u64,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { buckets: Box::new([0; Self::BUCKETS]), count: 0, sum: 0, max: 0 }
    }
}

impl Histogram {
    /// Eight for the numbers below 8, and eight for each of the 61 powers of two above.
    const BUCKETS: usize = 62 * 8;

    pub(super) fn record(&mut self, value: u64) {
        self.buckets[bucket_of(value)] += 1;
        self.count += 1;
        self.sum = self.sum.saturating_add(value);
        self.max = self.max.max(value);
    }

    pub(super) fn percentiles(&self) -> Percentiles {
        Percentiles {
            count: self.count,
            sum: self.sum,
            p50: self.at_most(50),
            p90: self.at_most(90),
            p99: self.at_most(99),
            max: self.max,
        }
    }

    /// The span that this share of all spans, in per cent, did not exceed.
    fn at_most(&self, percent: u64) -> u64 {
        // Rounded up, so that no percentile of a few spans is below the smallest.
        let rank = u64::try_from((u128::from(self.count) * u128::from(percent)).div_ceil(100)).unwrap_or(u64::MAX);
        let mut seen = 0;
        for (index, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= rank && seen > 0 {
                return last_of(index).min(self.max);
            }
        }
        self.max
    }
}

/// Three bits below the leading one choose the bucket within a power of two.
fn bucket_of(value: u64) -> usize {
    if value < 8 {
        return value as usize;
    }
    let power = value.ilog2();
    let part = (value >> (power - 3)) & 7;
    (power as usize - 2) * 8 + part as usize
}

/// The largest value of a bucket.
fn last_of(bucket: usize) -> u64 {
    if bucket < 8 {
        return bucket as u64;
    }
    let shift = (bucket / 8 - 1) as u32;
    let first = (8 + bucket as u64 % 8) << shift;
    first + ((1_u64 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn nothing_seen_is_all_zero() {
        assert_eq!(Histogram::default().percentiles(), Percentiles::default());
    }

    #[test]
    fn one_span_is_every_percentile() {
        let mut histogram = Histogram::default();
        histogram.record(1_234_567);
        let Percentiles { p50, p90, p99, max, .. } = histogram.percentiles();
        assert_eq!([p50, p90, p99, max], [1_234_567; 4]);
    }

    #[test]
    fn the_longest_span_has_a_bucket() {
        let mut histogram = Histogram::default();
        histogram.record(u64::MAX);
        histogram.record(u64::MAX);
        assert_eq!((histogram.percentiles().p99, histogram.percentiles().sum), (u64::MAX, u64::MAX));
        assert_eq!(last_of(Histogram::BUCKETS - 1), u64::MAX);
    }

    proptest! {
        #[test]
        fn a_percentile_is_never_too_short_and_at_most_an_eighth_too_long(
            mut values in prop::collection::vec(prop_oneof![0_u64..100, any::<u64>(), 0_u64..10_000_000], 1..300),
        ) {
            let mut histogram = Histogram::default();
            for value in &values {
                histogram.record(*value);
            }
            values.sort_unstable();
            let Percentiles { p50, p90, p99, .. } = histogram.percentiles();
            for (percent, found) in [(50, p50), (90, p90), (99, p99)] {
                let exact = values[(values.len() * percent).div_ceil(100) - 1];
                prop_assert!(found >= exact && found - exact <= exact / 8, "p{percent}: {found} for {exact}");
            }
        }
    }
}
