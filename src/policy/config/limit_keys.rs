use std::time::Duration;

use super::form::Form;
use crate::policy::Limits;

/// A limit's key in YAML, its range, and its field.
pub(super) struct LimitKey {
    pub(super) name: &'static str,
    pub(super) min: u64,
    pub(super) max: u64,
    pub(super) get: fn(&Limits) -> u64,
    pub(super) set: fn(&mut Limits, u64),
    /// One sentence for the schema.
    pub(super) about: &'static str,
}

impl LimitKey {
    pub(super) const fn form(&self) -> Form {
        Form::Whole(self.min as i64, self.max as i64)
    }
}

/// A count that no fleet reaches: it keeps sums of counts far from overflowing.
const MANY: u64 = 1_000_000;
/// One year in milliseconds: it keeps times far from overflowing.
const YEAR: u64 = 365 * 24 * 60 * 60 * 1_000;
/// The largest file, in bytes.
const TIB: u64 = 1 << 40;

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// `count` fields are numbers, `span` fields are durations written in milliseconds.
macro_rules! limits {
    ($($form:ident $key:literal = $field:ident from $min:expr, to $max:expr; $about:literal)+) => {
        &[$(LimitKey {
            name: $key,
            min: $min,
            max: $max,
            get: |limits| limits!(@get $form limits.$field),
            set: |limits, value| limits.$field = limits!(@set $form value),
            about: $about,
        }),+]
    };
    (@get count $value:expr) => { $value as u64 };
    (@get span $value:expr) => { millis($value) };
    // The ranges fit every field's type; a test sets each key to its maximum.
    (@set count $value:expr) => { $value as _ };
    (@set span $value:expr) => { Duration::from_millis($value) };
}

/// Every limit, in the order of [`Limits`].
pub(super) const LIMIT_KEYS: &[LimitKey] = limits! {
    count "max_total_attempts" = max_total_attempts from 0, to MANY; "Executions of an episode, over all its chains."
    count "max_recoveries" = max_recoveries from 0, to MANY; "Episodes of a session in the recovery window."
    span "recovery_window_ms" = recovery_window from 1, to YEAR; "The rolling window of recoveries and strikes."
    count "max_same_failure" = max_same_failure from 1, to MANY; "Strikes of one failure before it escalates."
    span "max_wait_ms" = max_wait from 0, to YEAR; "The longest wait that is begun."
    span "max_park_ms" = max_park from 0, to YEAR; "The longest time parked at a closed lane."
    span "turn_timeout_ms" = turn_timeout from 1, to YEAR; "How long a client's redo may take."
    span "strategy_timeout_ms" = strategy_timeout from 1, to YEAR; "How long a strategy may take."
    count "strategies_at_once" = strategies_at_once from 1, to MANY; "Strategies running at once."
    count "stuck_threads" = stuck_threads from 1, to MANY; "Threads that may be stuck in strategies."
    count "waiting_reports" = waiting_reports from 0, to MANY; "Reports that may wait for one session."
    span "quiet_period_ms" = quiet_period from 1, to YEAR; "How long an open loop's redo may stay silent."
    span "passivate_after_ms" = passivate_after from 1, to YEAR; "Idle time after which a session is put away."
    count "restart_intensity" = restart_intensity from 0, to MANY; "Restarts of an actor in the restart window."
    span "restart_window_ms" = restart_window from 1, to YEAR; "The window of the restart intensity."
    count "max_degrades" = max_degrades from 0, to MANY; "Degradations in one self-healing loop."
    count "max_skips" = max_skips from 0, to MANY; "Skips in one self-healing loop."
    span "retention_ms" = retention from 0, to 10 * YEAR; "How long kept verdicts stay on disk."
    count "state_file_bytes" = state_file_bytes from 1_024, to TIB; "The largest state file of one session."
    count "journal_bytes" = journal_bytes from 0, to TIB; "The largest journal, both its files together; 0 for none."
    span "shutdown_timeout_ms" = shutdown_timeout from 1, to YEAR; "How long a shutdown may take."
    count "detect_bytes" = detect_bytes from 256, to 16 * 1_024 * 1_024; "Bytes of a failure's text that are looked at."
    count "lane_concurrency" = lane_concurrency from 1, to MANY; "Turns at once on one lane."
    count "lane_queue" = lane_queue from 0, to MANY; "Callers that may queue at one lane."
    count "lane_guard" = lane_guard from 0, to 1; "1: lanes learn from their calls; 0: only bounds and stated waits."
    count "lane_min_concurrency" = lane_min_concurrency from 1, to MANY; "Throttling narrows a lane no further than this."
    count "lane_trip_sessions" = lane_trip_sessions from 0, to MANY; "Failing sessions that open a circuit; 0 for none."
    span "lane_probe_ms" = lane_probe from 1, to YEAR; "The first wait of an open circuit before a probe."
    span "lane_probe_max_ms" = lane_probe_max from 1, to YEAR; "The longest wait between probes."
    count "lane_retry_percent" = lane_retry_percent from 0, to 10_000; "Redos for 100 fresh turns; 0 for no bound."
    count "lane_retry_floor" = lane_retry_floor from 0, to MANY; "Redos per minute that are allowed in any case."
    span "lane_fallback_after_ms" = lane_fallback_after from 0, to YEAR; "A longer wait goes on with fallback_model; 0 for never."
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_is_in_its_range_and_every_key_sets_its_own_field() {
        for key in LIMIT_KEYS {
            let before = Limits::default();
            assert!((key.min..=key.max).contains(&(key.get)(&before)), "{}", key.name);
            let mut after = before.clone();
            let other = if (key.get)(&before) == key.max { key.min } else { key.max };
            (key.set)(&mut after, other);
            let changed: Vec<&str> =
                LIMIT_KEYS.iter().filter(|key| (key.get)(&after) != (key.get)(&before)).map(|k| k.name).collect();
            assert_eq!(changed, [key.name]);
            assert_eq!((key.get)(&after), other);
        }
    }

    #[test]
    fn every_field_has_a_key() {
        let fields = format!("{:?}", Limits::default()).matches(": ").count();
        assert_eq!(fields, LIMIT_KEYS.len());
    }

    #[test]
    fn spans_end_in_their_unit() {
        for key in LIMIT_KEYS {
            let longest_is_a_span = key.max >= YEAR && key.max < TIB;
            assert_eq!(key.name.ends_with("_ms"), longest_is_a_span, "{}", key.name);
        }
    }
}
