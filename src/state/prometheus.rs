use std::fmt::{Display, Write};

use super::metrics::{Percentiles, RecoveryMetricsSnapshot, Tally};

/// A snapshot in Prometheus' text format, version 0.0.4.
///
/// Every label's value comes from a closed list, as
/// [`RecoveryMetricsCollector`](super::RecoveryMetricsCollector) keeps them; they are escaped and cut
/// all the same, since a snapshot may be read from a file.
///
/// ```
/// use backstop::state::{RecoveryMetricsSnapshot, to_prometheus};
///
/// let text = to_prometheus(&RecoveryMetricsSnapshot { total_attempts: 3, ..Default::default() });
/// assert!(text.contains("\nbackstop_attempts_total 3\n"));
/// ```
pub fn to_prometheus(snapshot: &RecoveryMetricsSnapshot) -> String {
    let mut text = Exposition(String::new());
    text.one("attempts_total", "Executions of strategies.", snapshot.total_attempts);
    text.one("thawed_recoveries_total", "Recoveries that a lane's thaw brought.", snapshot.thawed_recoveries);
    text.one("refused_writes_total", "Batches of records that the disk refused.", snapshot.refused_writes);
    text.gauge(
        "sessions_not_durable",
        "Sessions whose newest record is in memory only.",
        snapshot.sessions_not_durable,
    );
    text.each("episodes_total", "Episodes by verdict.", "verdict", &snapshot.by_verdict, |count| *count);
    text.each("failures_total", "Detected failures by kind.", "kind", &snapshot.error_type_frequency, |count| *count);
    text.tallies("category", &snapshot.by_category);
    text.tallies("kind", &snapshot.by_kind);
    text.tallies("strategy", &snapshot.by_strategy);
    text.summary(&snapshot.time_to_recover_ms);
    text.0
}

struct Exposition(String);

impl Exposition {
    fn head(&mut self, name: &str, help: &str, kind: &str) {
        self.line(format_args!("# HELP backstop_{name} {help}"));
        self.line(format_args!("# TYPE backstop_{name} {kind}"));
    }

    fn one(&mut self, name: &str, help: &str, value: u64) {
        self.head(name, help, "counter");
        self.line(format_args!("backstop_{name} {value}"));
    }

    fn gauge(&mut self, name: &str, help: &str, value: u64) {
        self.head(name, help, "gauge");
        self.line(format_args!("backstop_{name} {value}"));
    }

    fn each<'a, K: Display + 'a, V: 'a>(
        &mut self,
        name: &str,
        help: &str,
        label: &str,
        values: impl IntoIterator<Item = (&'a K, &'a V)>,
        count: impl Fn(&V) -> u64,
    ) {
        self.head(name, help, "counter");
        for (of, value) in values {
            let (of, value) = (escaped(&of.to_string()), count(value));
            self.line(format_args!("backstop_{name}{{{label}=\"{of}\"}} {value}"));
        }
    }

    fn tallies<'a, K: Display + 'a>(
        &mut self,
        label: &str,
        tallies: impl IntoIterator<Item = (&'a K, &'a Tally)> + Clone,
    ) {
        let (attempts, recoveries) = (format!("{label}_attempts_total"), format!("{label}_recoveries_total"));
        let help = format!("Executions of strategies by {label}.");
        self.each(&attempts, &help, label, tallies.clone(), |tally| tally.attempts);
        let help = format!("Recovered episodes by {label}.");
        self.each(&recoveries, &help, label, tallies, |tally| tally.successes);
    }

    fn summary(&mut self, times: &Percentiles) {
        let name = "time_to_recover_seconds";
        self.head(name, "From a recovered episode's first failure to its verdict.", "summary");
        for (quantile, ms) in [("0.5", times.p50), ("0.9", times.p90), ("0.99", times.p99)] {
            self.line(format_args!("backstop_{name}{{quantile=\"{quantile}\"}} {}", seconds(ms)));
        }
        self.line(format_args!("backstop_{name}_sum {}", seconds(times.sum)));
        self.line(format_args!("backstop_{name}_count {}", times.count));
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "{line}");
    }
}

fn seconds(ms: u64) -> f64 {
    ms as f64 / 1_000.0
}

/// A label's value: cut, without control characters, and escaped.
fn escaped(value: &str) -> String {
    /// Longer names are of no use on a dashboard.
    const MAX_CHARS: usize = 100;
    let mut out = String::with_capacity(value.len().min(MAX_CHARS));
    for c in value.chars().take(MAX_CHARS) {
        match c {
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            '\n' => out.push_str("\\n"),
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::{Category, Kind};

    fn snapshot() -> RecoveryMetricsSnapshot {
        let mut snapshot = RecoveryMetricsSnapshot { total_attempts: 7, ..Default::default() };
        snapshot.by_verdict.insert("recovered".into(), 2);
        snapshot.error_type_frequency.insert(Kind::RateLimit, 3);
        snapshot.by_category.insert(Category::SessionError, Tally { attempts: 7, successes: 2 });
        snapshot.by_strategy.insert("retry".into(), Tally { attempts: 7, successes: 2 });
        snapshot.time_to_recover_ms =
            Percentiles { count: 2, sum: 5_500, p50: 1_500, p90: 4_000, p99: 4_000, max: 4_000 };
        snapshot
    }

    #[test]
    fn every_number_has_its_line() {
        let text = to_prometheus(&snapshot());
        for line in [
            "backstop_attempts_total 7",
            "backstop_episodes_total{verdict=\"recovered\"} 2",
            "backstop_failures_total{kind=\"rate_limit\"} 3",
            "backstop_category_attempts_total{category=\"session_error\"} 7",
            "backstop_category_recoveries_total{category=\"session_error\"} 2",
            "backstop_strategy_recoveries_total{strategy=\"retry\"} 2",
            "backstop_time_to_recover_seconds{quantile=\"0.5\"} 1.5",
            "backstop_time_to_recover_seconds_sum 5.5",
            "backstop_time_to_recover_seconds_count 2",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is missing in\n{text}");
        }
    }

    #[test]
    fn every_family_is_described_once_before_its_series() {
        let text = to_prometheus(&snapshot());
        let mut described = vec![];
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                let name = rest.split(' ').next().unwrap_or_default();
                assert!(!described.contains(&name), "{name} twice");
                described.push(name);
            } else if !line.starts_with('#') {
                let name = line.split(['{', ' ']).next().unwrap_or_default();
                let family = name.trim_end_matches("_sum").trim_end_matches("_count");
                assert!(described.last().is_some_and(|last| *last == name || *last == family), "{line}");
            }
        }
        assert!(text.ends_with('\n'));
    }

    #[test]
    fn a_label_cannot_break_out_of_its_line() {
        let mut hostile = RecoveryMetricsSnapshot::default();
        let name = format!("a\"}} 1\nfake_metric 2\\\u{1b}{}", "x".repeat(1_000));
        hostile.by_strategy.insert(name.into(), Tally { attempts: 1, successes: 0 });
        let text = to_prometheus(&hostile);
        assert!(text.contains("{strategy=\"a\\\"} 1\\nfake_metric 2\\\\xxx"), "{text}");
        assert!(text.lines().all(|line| line.starts_with('#') || line.starts_with("backstop_")));
        assert!(text.lines().all(|line| line.len() < 200));
    }
}
