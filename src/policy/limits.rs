use std::time::Duration;

/// Every bound of an engine, with its default (DESIGN §10).
#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    /// Executions of an episode, over all its chains and over restarts (R7).
    pub max_total_attempts: u32,
    /// Episodes of a session in [`recovery_window`](Self::recovery_window) (R7).
    pub max_recoveries: u32,
    /// The rolling window for [`max_recoveries`](Self::max_recoveries) and strikes.
    pub recovery_window: Duration,
    /// Strikes of one fingerprint in a row before the next report escalates (R16).
    pub max_same_failure: u32,
    /// The longest wait that is begun (R4).
    pub max_wait: Duration,
    /// The longest time parked at a closed lane before the next step.
    pub max_park: Duration,
    /// How long a client's redo may take (client loop).
    pub turn_timeout: Duration,
    /// How long a strategy may take; a step's `timeout_ms` overrides it.
    pub strategy_timeout: Duration,
    /// Strategies running at once.
    pub strategies_at_once: usize,
    /// Threads that may be stuck in strategies that do not return.
    pub stuck_threads: usize,
    /// Reports that may wait for one session's running episode.
    pub waiting_reports: usize,
    /// How long an open loop's redo may stay silent before it counts as working; also R16's window.
    pub quiet_period: Duration,
    /// Idle time after which a session's actor is put away.
    pub passivate_after: Duration,
    /// Restarts of an actor allowed within [`restart_window`](Self::restart_window).
    pub restart_intensity: u32,
    /// The window for [`restart_intensity`](Self::restart_intensity).
    pub restart_window: Duration,
    /// Degradations in one self-healing loop.
    pub max_degrades: u32,
    /// Skips in one self-healing loop.
    pub max_skips: u32,
    /// How long kept verdicts stay on disk.
    pub retention: Duration,
    /// The largest state file of one session, in bytes.
    pub state_file_bytes: u64,
    /// The largest journal, both its files together, in bytes; 0 for none.
    pub journal_bytes: u64,
    /// How long a shutdown may take.
    pub shutdown_timeout: Duration,
    /// How many bytes of a failure's text are looked at, half from each end (R2).
    pub detect_bytes: usize,
    /// Turns at once on one lane; further ones queue in `admit`.
    pub lane_concurrency: usize,
    /// Callers that may queue at one lane.
    pub lane_queue: usize,
    /// 1: a lane learns from its calls and holds back what would fail; 0: it only bounds the calls at once and
    /// honours stated waits.
    pub lane_guard: u32,
    /// Throttling narrows a lane no further than to this many turns at once.
    pub lane_min_concurrency: usize,
    /// Failing sessions that it takes to open a lane's circuit; 0 for no circuit.
    pub lane_trip_sessions: usize,
    /// The first wait of an open circuit before a probe; it doubles with each probe that fails.
    pub lane_probe: Duration,
    /// The longest wait between probes.
    pub lane_probe_max: Duration,
    /// Redos allowed for 100 fresh turns of a lane; 0 for no bound.
    pub lane_retry_percent: u32,
    /// Redos per minute that a lane allows in any case.
    pub lane_retry_floor: u32,
    /// A redo that would wait longer than this for its lane goes on with the chain's `fallback_model` step, if one
    /// follows; 0 for never.
    pub lane_fallback_after: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        const MINUTE: u64 = 60;
        Self {
            max_total_attempts: 10,
            max_recoveries: 30,
            recovery_window: Duration::from_secs(60 * MINUTE),
            max_same_failure: 3,
            max_wait: Duration::from_secs(5 * MINUTE),
            max_park: Duration::from_secs(30 * MINUTE),
            turn_timeout: Duration::from_secs(60 * MINUTE),
            strategy_timeout: Duration::from_secs(120),
            strategies_at_once: 64,
            stuck_threads: 16,
            waiting_reports: 16,
            quiet_period: Duration::from_secs(10 * MINUTE),
            passivate_after: Duration::from_secs(60),
            restart_intensity: 5,
            restart_window: Duration::from_secs(30),
            max_degrades: 3,
            max_skips: 5,
            retention: Duration::from_secs(7 * 24 * 60 * MINUTE),
            state_file_bytes: 256 * 1024,
            journal_bytes: 64 * 1024 * 1024,
            shutdown_timeout: Duration::from_secs(10),
            detect_bytes: 16 * 1024,
            lane_concurrency: 256,
            lane_queue: 4096,
            lane_guard: 1,
            lane_min_concurrency: 4,
            lane_trip_sessions: 3,
            lane_probe: Duration::from_secs(1),
            lane_probe_max: Duration::from_secs(5),
            lane_retry_percent: 20,
            lane_retry_floor: 60,
            lane_fallback_after: Duration::ZERO,
        }
    }
}
