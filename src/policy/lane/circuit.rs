use std::time::Duration;

use super::settings::LaneSettings;
use super::thaw::Thaw;
use crate::failure::Timestamp;
use crate::policy::seed;

/// Where the circuit is; what belongs to one phase lives in it.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Circuit {
    /// Calls go.
    Closed,
    /// No call goes before this time.
    Open { until: Timestamp, strikes: u32 },
    /// Single calls go, to see.
    HalfOpen { probe: Option<Timestamp>, strikes: u32 },
    /// Those who waited go one by one.
    Thawing(Thaw),
}

impl Circuit {
    /// A probe that says nothing for this long no longer keeps the next one waiting.
    pub const PATIENCE: Duration = Duration::from_secs(5);

    /// Open after this many failed probes in a row: the wait doubles with each, 75 % to 100 % of it by chance.
    pub fn opened(strikes: u32, settings: &LaneSettings, seed: u64, now: Timestamp) -> Self {
        let full = settings.probe.saturating_mul(2_u32.saturating_pow(strikes)).min(settings.probe_max);
        let wait = full.mul_f64(0.75 + 0.25 * seed::unit(seed));
        Self::Open { until: now + wait.max(Duration::from_millis(1)), strikes }
    }
}
