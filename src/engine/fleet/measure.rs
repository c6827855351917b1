use std::time::Duration;

use serde::Serialize;

use super::scenario::{Fault, Scenario};

/// One call to the provider.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Call {
    /// When it began.
    pub at: Duration,
    /// Whose it was.
    pub session: usize,
    /// Whether it worked.
    pub worked: bool,
    /// How long it took.
    pub took: Duration,
}

/// One turn of a session, with all its redos.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TurnSeen {
    /// Whose it was.
    pub session: usize,
    /// When it began.
    pub begun: Duration,
    /// When it first failed.
    pub failed_at: Option<Duration>,
    /// When it ended.
    pub ended_at: Duration,
    /// Whether it worked in the end.
    pub worked: bool,
}

impl TurnSeen {
    pub(super) fn begun(session: usize, begun: Duration) -> Self {
        Self { session, begun, failed_at: None, ended_at: begun, worked: false }
    }

    pub(super) fn failed(&mut self, at: Duration) {
        self.failed_at.get_or_insert(at);
    }

    pub(super) fn ended(self, ended_at: Duration, worked: bool) -> Self {
        Self { ended_at, worked, ..self }
    }
}

/// Everything that happens, in order.
#[derive(Debug, Default)]
pub(super) struct Log {
    pub calls: Vec<Call>,
    pub turns: Vec<TurnSeen>,
    pub lane: Vec<(Duration, bool)>,
}

/// What was seen of a fleet under a policy.
#[derive(Debug, Clone, Serialize)]
pub struct Measured {
    /// The scenario's name.
    pub scenario: String,
    /// The policy's name.
    pub policy: String,
    /// The seed.
    pub seed: u64,
    /// Every call, in the order of their beginnings.
    pub calls: Vec<Call>,
    /// Every turn, in the order of their ends.
    pub turns: Vec<TurnSeen>,
    /// When refusals brought the provider down.
    pub collapses: Vec<Duration>,
    /// When the lane closed (true) and opened.
    pub lane: Vec<(Duration, bool)>,
    #[serde(skip)]
    trouble: Option<(Duration, Duration)>,
    #[serde(skip)]
    lost: Vec<bool>,
    #[serde(skip)]
    /// Turns a second that the provider can do, and how long one takes.
    capacity: Option<(f64, f64)>,
}

/// The row of a table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Table {
    /// The policy's name.
    pub policy: String,
    /// Turns that worked.
    pub worked: usize,
    /// Of the failed turns whose session can work again: the share that worked in the end.
    pub recovered_percent: Option<f64>,
    /// From a turn's first failure until it worked, in seconds: the median.
    pub recover_p50: f64,
    /// The same: 95 of 100 are faster.
    pub recover_p95: f64,
    /// Calls sent for each turn that worked.
    pub calls_per_turn: f64,
    /// Calls begun while the first fault that ends lasted.
    pub calls_in_trouble: usize,
    /// Calls under way when it began.
    pub in_flight: usize,
    /// Times that refusals brought the provider down.
    pub second_trips: usize,
    /// From that fault's end until 95 of 100 sessions that waited have had a call that worked, in seconds.
    pub moving_p95: Option<f64>,
    /// The least that could take at the provider's rate.
    pub moving_bound: Option<f64>,
    /// Jain's index over the turns that worked of sessions that can work: 1 is perfectly fair.
    pub fairness: f64,
}

impl Measured {
    pub(super) fn new(scenario: &Scenario, policy: String, seed: u64, log: Log, collapses: Vec<Duration>) -> Self {
        Self {
            scenario: scenario.name.clone(),
            policy,
            seed,
            calls: log.calls,
            turns: log.turns,
            collapses,
            lane: log.lane,
            trouble: scenario.trouble().map(|span| (span.at, span.end())),
            lost: (0..scenario.sessions).map(|session| scenario.is_lost(session)).collect(),
            capacity: capacity(scenario).map(|rate| (rate, scenario.provider.latency.as_secs_f64())),
        }
    }

    /// Calls begun within these bounds.
    pub fn calls_within(&self, from: Duration, to: Duration) -> usize {
        self.calls.iter().filter(|call| from <= call.at && call.at < to).count()
    }

    /// The figures that tables show.
    pub fn table(&self) -> Table {
        let worked = self.turns.iter().filter(|turn| turn.worked).count();
        let failed: Vec<&TurnSeen> =
            self.turns.iter().filter(|turn| turn.failed_at.is_some() && self.can_work(turn.session)).collect();
        let recovered: Vec<&&TurnSeen> = failed.iter().filter(|turn| turn.worked).collect();
        let mut took: Vec<f64> = recovered
            .iter()
            .filter_map(|turn| Some(turn.ended_at.saturating_sub(turn.failed_at?).as_secs_f64()))
            .collect();
        took.sort_by(f64::total_cmp);
        let (moving_p95, moving_bound) = self.moving();
        Table {
            policy: self.policy.clone(),
            worked,
            recovered_percent: (!failed.is_empty()).then(|| 100.0 * recovered.len() as f64 / failed.len() as f64),
            recover_p50: quantile(&took, 0.5),
            recover_p95: quantile(&took, 0.95),
            calls_per_turn: self.calls.len() as f64 / worked.max(1) as f64,
            calls_in_trouble: self.trouble.map_or(0, |(from, to)| self.calls_within(from, to)),
            in_flight: self.trouble.map_or(0, |(from, _)| self.in_flight(from)),
            second_trips: self.collapses.len(),
            moving_p95,
            moving_bound,
            fairness: self.fairness(),
        }
    }

    fn can_work(&self, session: usize) -> bool {
        !self.lost.get(session).copied().unwrap_or(false)
    }

    fn in_flight(&self, at: Duration) -> usize {
        self.calls.iter().filter(|call| call.at < at && at < call.at + call.took).count()
    }

    /// How long it takes after the trouble's end until 95 of 100 waiting sessions move again, and the least
    /// that can be.
    fn moving(&self) -> (Option<f64>, Option<f64>) {
        let Some((_, end)) = self.trouble else { return (None, None) };
        let mut waiting = vec![false; self.lost.len()];
        for turn in &self.turns {
            if turn.begun < end && turn.ended_at > end && self.can_work(turn.session) {
                waiting[turn.session] = true;
            }
        }
        let count = waiting.iter().filter(|waits| **waits).count();
        if count == 0 {
            return (None, None);
        }
        let mut moved: Vec<f64> = vec![];
        for call in self.calls.iter().filter(|call| call.worked && call.at + call.took >= end) {
            if std::mem::take(&mut waiting[call.session]) {
                moved.push((call.at + call.took).saturating_sub(end).as_secs_f64());
            }
        }
        moved.sort_by(f64::total_cmp);
        let needed = (count as f64 * 0.95).ceil() as usize;
        let p95 = needed.checked_sub(1).and_then(|last| moved.get(last)).copied();
        (p95.or(Some(f64::INFINITY)), self.capacity.map(|(rate, latency)| count as f64 * 0.95 / rate + latency))
    }

    /// Jain's index: (Σx)² / n·Σx².
    fn fairness(&self) -> f64 {
        let mut done = vec![0.0_f64; self.lost.len()];
        for turn in self.turns.iter().filter(|turn| turn.worked) {
            done[turn.session] += 1.0;
        }
        let done: Vec<f64> =
            done.into_iter().enumerate().filter(|(session, _)| self.can_work(*session)).map(|(_, done)| done).collect();
        let (sum, squares) = done.iter().fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
        if squares == 0.0 { 0.0 } else { sum * sum / (done.len() as f64 * squares) }
    }
}

/// Turns a second that the provider can do: its rate, or what its places allow.
fn capacity(scenario: &Scenario) -> Option<f64> {
    let provider = &scenario.provider;
    let places = (provider.concurrency < usize::MAX)
        .then(|| provider.concurrency as f64 / provider.latency.as_secs_f64().max(0.001));
    let throttled = scenario.faults.iter().any(|fault| matches!(fault, Fault::Throttle { .. }));
    // A throttle has no end after which a backlog is worked off at full rate.
    if throttled { None } else { [provider.rate, places].into_iter().flatten().reduce(f64::min) }
}

fn quantile(sorted: &[f64], share: f64) -> f64 {
    match sorted.len() {
        0 => 0.0,
        count => sorted[(((count - 1) as f64) * share).round() as usize],
    }
}
