use std::time::Duration;

use crate::policy::Limits;

/// What a lane keeps to: the `lane_…` limits.
#[derive(Debug, Clone, PartialEq)]
pub struct LaneSettings {
    /// Whether evidence, budget and ramp are in force; stated waits and `concurrency` are in any case.
    pub is_guarded: bool,
    /// The most calls at once.
    pub concurrency: usize,
    /// Throttling narrows the lane no further than to this many calls at once.
    pub min_concurrency: usize,
    /// Failing sessions that it takes to open the circuit; 0 for no circuit.
    pub trip_sessions: usize,
    /// The first wait of an open circuit before a probe.
    pub probe: Duration,
    /// The longest such wait.
    pub probe_max: Duration,
    /// Redos allowed for 100 fresh calls; 0 for no bound.
    pub retry_percent: u32,
    /// Redos per minute that are allowed in any case.
    pub retry_floor: u32,
}

impl LaneSettings {
    /// The lane's part of an engine's limits.
    pub fn of(limits: &Limits) -> Self {
        let concurrency = limits.lane_concurrency.max(1);
        Self {
            is_guarded: limits.lane_guard > 0,
            concurrency,
            min_concurrency: limits.lane_min_concurrency.clamp(1, concurrency),
            trip_sessions: limits.lane_trip_sessions,
            probe: limits.lane_probe,
            probe_max: limits.lane_probe_max.max(limits.lane_probe),
            retry_percent: limits.lane_retry_percent,
            retry_floor: limits.lane_retry_floor,
        }
    }
}
