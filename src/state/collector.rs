use std::collections::BTreeSet;
use std::sync::Arc;

use super::histogram::Histogram;
use super::metrics::{RecoveryMetricsSnapshot, Tally};
use crate::failure::{Category, Kind, Timestamp};
use crate::policy::{RecoveryAttempt, Verdict};

/// Adds up what recovery does. It has no clock and no locks; its size is bounded whatever it is told.
///
/// Labels come from closed lists alone: categories, verdicts, built-in kinds, the strategies named at
/// its making, and the first [`MAX_OWN_KINDS`](Self::MAX_OWN_KINDS) of the users' own kinds. Whatever
/// else appears is counted as `other`.
///
/// ```
/// use backstop::Kind;
/// use backstop::state::RecoveryMetricsCollector;
///
/// let mut collector = RecoveryMetricsCollector::new(["retry", "compact"]);
/// collector.record_error(&Kind::RateLimit);
/// assert_eq!(collector.snapshot().error_type_frequency[&Kind::RateLimit], 1);
/// ```
#[derive(Debug, Clone)]
pub struct RecoveryMetricsCollector {
    strategies: BTreeSet<Arc<str>>,
    own_kinds: BTreeSet<Kind>,
    counts: RecoveryMetricsSnapshot,
    times: Histogram,
}

/// An episode's end, or a failure that opened none.
#[derive(Debug, Clone, Copy)]
pub struct EpisodeOutcome<'a> {
    /// How it ended.
    pub verdict: &'a Verdict,
    /// The last failure's category.
    pub category: Category,
    /// The last failure's kind.
    pub kind: &'a Kind,
    /// The attempts, oldest first.
    pub attempts: &'a [RecoveryAttempt],
    /// When the first failure was reported.
    pub started: Timestamp,
    /// When the verdict fell.
    pub ended: Timestamp,
    /// Whether a lane's thaw ended it.
    pub thawed: bool,
}

impl RecoveryMetricsCollector {
    /// Own kinds that have series of their own: with three metrics for each kind, about a hundred
    /// series.
    pub const MAX_OWN_KINDS: usize = 32;

    /// Strategies that have series of their own, two for each.
    pub const MAX_STRATEGIES: usize = 50;

    /// What is counted under the name of no strategy.
    const OTHER: &'static str = "other";

    /// A collector at zero. The strategies are those that chains can name; more than
    /// [`MAX_STRATEGIES`](Self::MAX_STRATEGIES) are counted as `other`.
    pub fn new<N: Into<Arc<str>>>(strategies: impl IntoIterator<Item = N>) -> Self {
        let strategies = strategies.into_iter().take(Self::MAX_STRATEGIES).map(Into::into).collect();
        let counts = RecoveryMetricsSnapshot::default();
        Self { strategies, own_kinds: BTreeSet::new(), counts, times: Histogram::default() }
    }

    /// Makes the name of a strategy that was registered later a label of its own, while there is room.
    pub fn register_strategy(&mut self, name: impl Into<Arc<str>>) {
        if self.strategies.len() < Self::MAX_STRATEGIES {
            self.strategies.insert(name.into());
        }
    }

    /// Counts a detected failure.
    pub fn record_error(&mut self, kind: &Kind) {
        let kind = self.label_of(kind);
        *self.counts.error_type_frequency.entry(kind).or_default() += 1;
    }

    /// Counts an episode and its attempts. A recovery is one success of its category, its kind, and the
    /// strategy that was asked last.
    pub fn record_episode(&mut self, outcome: &EpisodeOutcome<'_>) {
        self.counts.total_attempts += outcome.attempts.len() as u64;
        for attempt in outcome.attempts {
            let kind = self.label_of(&attempt.error_type);
            self.counts.by_category.entry(attempt.category).or_default().attempts += 1;
            self.counts.by_kind.entry(kind).or_default().attempts += 1;
            self.strategy(&attempt.strategy).attempts += 1;
        }
        *self.counts.by_verdict.entry(outcome.verdict.name().into()).or_default() += 1;
        match outcome.verdict {
            Verdict::Aborted { .. } => self.counts.aborted_chains += 1,
            Verdict::Exhausted { .. } => self.counts.exhausted_chains += 1,
            Verdict::Recovered(_) => self.recovered(outcome),
            Verdict::Escalated { .. } | Verdict::Cancelled | Verdict::Unhandled(_) => {}
        }
    }

    fn recovered(&mut self, outcome: &EpisodeOutcome<'_>) {
        let kind = self.label_of(outcome.kind);
        self.counts.successful_recoveries += 1;
        self.counts.thawed_recoveries += u64::from(outcome.thawed);
        self.counts.by_category.entry(outcome.category).or_default().successes += 1;
        self.counts.by_kind.entry(kind).or_default().successes += 1;
        if let Some(last) = outcome.attempts.last() {
            self.strategy(&last.strategy).successes += 1;
        }
        let took = outcome.ended.since(outcome.started);
        self.times.record(u64::try_from(took.as_millis()).unwrap_or(u64::MAX));
    }

    /// Counts a batch of records that the disk refused.
    pub fn record_refused_write(&mut self) {
        self.counts.refused_writes += 1;
    }

    /// What was counted so far.
    pub fn snapshot(&self) -> RecoveryMetricsSnapshot {
        RecoveryMetricsSnapshot { time_to_recover_ms: self.times.percentiles(), ..self.counts.clone() }
    }

    fn strategy(&mut self, name: &Arc<str>) -> &mut Tally {
        let label = self.strategies.get(name).cloned().unwrap_or_else(|| Self::OTHER.into());
        self.counts.by_strategy.entry(label).or_default()
    }

    fn label_of(&mut self, kind: &Kind) -> Kind {
        if kind.usual_category().is_some() || self.own_kinds.contains(kind) {
            return kind.clone();
        }
        if self.own_kinds.len() == Self::MAX_OWN_KINDS {
            return Kind::Other;
        }
        self.own_kinds.insert(kind.clone());
        kind.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::super::to_prometheus;
    use super::*;
    use crate::policy::{Cause, ChainKey, Proof};

    fn attempt(strategy: &str, kind: Kind) -> RecoveryAttempt {
        RecoveryAttempt {
            category: kind.usual_category().unwrap_or(Category::SessionError),
            error_type: kind,
            timestamp: Timestamp::from_millis(0),
            chain_position: 0,
            strategy: strategy.into(),
            result: "retry".into(),
            message: None,
            episode: 1,
            seq: 1,
            chain: Some(ChainKey::Category(Category::SessionError)),
            tokens: Default::default(),
        }
    }

    fn ended(verdict: &Verdict, strategies: &[&str], took_ms: u64) -> RecoveryMetricsCollector {
        let mut collector = RecoveryMetricsCollector::new(["retry", "compact", "abort"]);
        record(&mut collector, verdict, strategies, took_ms);
        collector
    }

    fn record(collector: &mut RecoveryMetricsCollector, verdict: &Verdict, strategies: &[&str], took_ms: u64) {
        let attempts: Vec<_> = strategies.iter().map(|name| attempt(name, Kind::RateLimit)).collect();
        collector.record_episode(&EpisodeOutcome {
            verdict,
            category: Category::SessionError,
            kind: &Kind::RateLimit,
            attempts: &attempts,
            started: Timestamp::from_millis(1_000),
            ended: Timestamp::from_millis(1_000 + took_ms),
            thawed: false,
        });
    }

    const RECOVERED: Verdict = Verdict::Recovered(Proof::Verified);

    fn tally(attempts: u64, successes: u64) -> Tally {
        Tally { attempts, successes }
    }

    #[test]
    fn a_recovery_is_one_success_of_its_category_and_of_the_strategy_asked_last() {
        let snapshot = ended(&RECOVERED, &["retry", "retry", "compact"], 5_000).snapshot();
        assert_eq!((snapshot.total_attempts, snapshot.successful_recoveries), (3, 1));
        assert_eq!(snapshot.by_category[&Category::SessionError], tally(3, 1));
        assert_eq!(snapshot.by_kind[&Kind::RateLimit], tally(3, 1));
        assert_eq!(snapshot.by_strategy["retry"], tally(2, 0));
        assert_eq!(snapshot.by_strategy["compact"], tally(1, 1));
        assert_eq!(snapshot.by_verdict["recovered"], 1);
        assert_eq!(snapshot.time_to_recover_ms.count, 1);
    }

    #[test]
    fn every_other_verdict_is_counted_under_its_name_and_is_no_success() {
        let reason: Arc<str> = "x".into();
        let verdicts = [
            Verdict::Aborted { reason: Arc::clone(&reason) },
            Verdict::Exhausted { cause: Cause::Deadline },
            Verdict::Escalated { reason },
            Verdict::Cancelled,
        ];
        for verdict in verdicts {
            let snapshot = ended(&verdict, &["retry", "abort"], 5_000).snapshot();
            assert_eq!(
                snapshot.by_verdict.iter().map(|(name, n)| (&**name, *n)).collect::<Vec<_>>(),
                [(verdict.name(), 1)]
            );
            assert_eq!(snapshot.by_category[&Category::SessionError], tally(2, 0));
            assert!(snapshot.by_strategy.values().all(|tally| tally.successes == 0));
            assert_eq!((snapshot.time_to_recover_ms.count, snapshot.successful_recoveries), (0, 0));
            let [aborted, exhausted] = [snapshot.aborted_chains, snapshot.exhausted_chains];
            let expected = [u64::from(verdict.name() == "aborted"), u64::from(verdict.name() == "exhausted")];
            assert_eq!([aborted, exhausted], expected);
        }
    }

    #[test]
    fn attempts_belong_to_the_failure_that_each_answered() {
        let mut collector = RecoveryMetricsCollector::new(["truncate", "fallback_model"]);
        let attempts = [attempt("truncate", Kind::ContextOverflow), attempt("fallback_model", Kind::Auth)];
        collector.record_episode(&EpisodeOutcome {
            verdict: &RECOVERED,
            category: Category::SessionError,
            kind: &Kind::Auth,
            attempts: &attempts,
            started: Timestamp::from_millis(9),
            ended: Timestamp::from_millis(3),
            thawed: true,
        });
        let snapshot = collector.snapshot();
        assert_eq!(snapshot.by_category[&Category::ContextWindow], tally(1, 0));
        assert_eq!(snapshot.by_category[&Category::SessionError], tally(1, 1));
        assert_eq!(snapshot.by_kind[&Kind::Auth], tally(1, 1));
        assert_eq!(snapshot.thawed_recoveries, 1);
        assert_eq!(snapshot.time_to_recover_ms.max, 0, "a clock that went back makes no span");
    }

    #[test]
    fn the_percentiles_are_those_of_recovered_episodes() {
        let mut collector = RecoveryMetricsCollector::new(["retry"]);
        for ms in 1..=100 {
            record(&mut collector, &RECOVERED, &["retry"], ms * 100);
            record(&mut collector, &Verdict::Cancelled, &["retry"], 1_000_000);
        }
        let times = collector.snapshot().time_to_recover_ms;
        assert_eq!((times.count, times.max), (100, 10_000));
        for (found, exact) in [(times.p50, 5_000), (times.p90, 9_000), (times.p99, 9_900)] {
            assert!(found >= exact && found <= exact + exact / 8, "{found} for {exact}");
        }
    }

    #[test]
    fn a_million_kinds_and_strategies_make_at_most_200_series() {
        let mut collector = RecoveryMetricsCollector::new(["retry"]);
        for n in 0..1_000_000_u32 {
            let kind = Kind::parse(&format!("kind-{n}"));
            collector.record_error(&kind);
            if n % 20 > 1 {
                continue;
            }
            let attempts = [attempt(if n % 2 == 0 { "retry" } else { "not-registered" }, kind.clone())];
            collector.record_episode(&EpisodeOutcome {
                verdict: &RECOVERED,
                category: Category::SessionError,
                kind: &kind,
                attempts: &attempts,
                started: Timestamp::from_millis(0),
                ended: Timestamp::from_millis(u64::from(n)),
                thawed: false,
            });
        }
        let snapshot = collector.snapshot();
        assert_eq!(snapshot.error_type_frequency.values().sum::<u64>(), 1_000_000, "nothing goes uncounted");
        assert_eq!(snapshot.by_strategy["other"], tally(50_000, 50_000));
        let text = to_prometheus(&snapshot);
        let series = text.lines().filter(|line| !line.starts_with('#')).count();
        assert!(series <= 200, "{series}");
        assert!(!text.contains("not-registered"));
    }

    #[test]
    fn a_strategy_registered_later_gets_a_label_while_there_is_room() {
        let mut collector = RecoveryMetricsCollector::new((0..1_000).map(|n| format!("s{n}")));
        collector.register_strategy("late");
        record(&mut collector, &RECOVERED, &["late", "s0"], 1);
        assert_eq!(collector.snapshot().by_strategy.keys().map(|name| &**name).collect::<Vec<_>>(), ["other", "s0"]);
        let mut collector = RecoveryMetricsCollector::new(["retry"]);
        collector.register_strategy("late");
        record(&mut collector, &RECOVERED, &["late"], 1);
        assert_eq!(collector.snapshot().by_strategy["late"], tally(1, 1));
    }
}
