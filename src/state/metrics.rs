use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::failure::{Category, Kind};

/// What recovery has done so far: the original's counters under their JSON names, and ours beside them.
///
/// Every field has a default, so a snapshot written by the original, or by an older version, reads.
///
/// ```
/// use backstop::failure::Category;
/// use backstop::state::RecoveryMetricsSnapshot;
///
/// let theirs = r#"{"totalAttempts": 3, "byCategory": {"edit_error": {"attempts": 3, "successes": 1}}}"#;
/// let snapshot: RecoveryMetricsSnapshot = serde_json::from_str(theirs)?;
/// assert_eq!(snapshot.by_category[&Category::EditError].successes, 1);
/// assert_eq!(snapshot.time_to_recover_ms.count, 0);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RecoveryMetricsSnapshot {
    /// Executions of strategies.
    pub total_attempts: u64,
    /// Episodes that ended recovered.
    pub successful_recoveries: u64,
    /// Recovered episodes that a lane's thaw ended (ours).
    pub thawed_recoveries: u64,
    /// Batches of records that the disk refused (ours).
    pub refused_writes: u64,
    /// Sessions whose newest record is in memory only, now (ours).
    pub sessions_not_durable: u64,
    /// Episodes that ended aborted.
    pub aborted_chains: u64,
    /// Episodes that ended exhausted.
    pub exhausted_chains: u64,
    /// Attempts per category; a success is an episode that recovered, counted once.
    pub by_category: BTreeMap<Category, Tally>,
    /// Attempts per strategy; a success belongs to the strategy that was asked last.
    pub by_strategy: BTreeMap<Arc<str>, Tally>,
    /// Detected failures per kind.
    pub error_type_frequency: BTreeMap<Kind, u64>,
    /// Attempts and recovered episodes per kind (ours).
    pub by_kind: BTreeMap<Kind, Tally>,
    /// Episodes per verdict, by [`Verdict::name`](crate::policy::Verdict::name) (ours).
    pub by_verdict: BTreeMap<Arc<str>, u64>,
    /// From a recovered episode's first failure to its verdict, in milliseconds (ours).
    pub time_to_recover_ms: Percentiles,
}

/// How often something was tried, and how often it helped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Tally {
    /// Executions.
    pub attempts: u64,
    /// Recovered episodes.
    pub successes: u64,
}

/// Percentiles of a span; all zero while `count` is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Percentiles {
    /// How many spans were seen.
    pub count: u64,
    /// All of them together.
    pub sum: u64,
    /// Half of them were at most this long.
    pub p50: u64,
    /// Nine in ten were at most this long.
    pub p90: u64,
    /// Ninety-nine in a hundred were at most this long.
    pub p99: u64,
    /// The longest.
    pub max: u64,
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn the_originals_field_names_are_kept() {
        let mut snapshot = RecoveryMetricsSnapshot { total_attempts: 2, ..Default::default() };
        snapshot.by_category.insert(Category::JsonError, Tally { attempts: 2, successes: 1 });
        snapshot.by_strategy.insert("retry".into(), Tally { attempts: 2, successes: 1 });
        snapshot.error_type_frequency.insert(Kind::JsonSyntax, 2);
        let written = serde_json::to_value(&snapshot).unwrap();
        let theirs = json!({
            "totalAttempts": 2, "successfulRecoveries": 0, "abortedChains": 0, "exhaustedChains": 0,
            "byCategory": {"json_error": {"attempts": 2, "successes": 1}},
            "byStrategy": {"retry": {"attempts": 2, "successes": 1}},
            "errorTypeFrequency": {"json_syntax": 2},
        });
        for (name, value) in theirs.as_object().unwrap() {
            assert_eq!(&written[name], value, "{name}");
        }
        assert_eq!(serde_json::from_value::<RecoveryMetricsSnapshot>(written).unwrap(), snapshot);
    }

    #[test]
    fn an_empty_object_reads_as_nothing_done() {
        let read: RecoveryMetricsSnapshot = serde_json::from_value(Value::Object(Default::default())).unwrap();
        assert_eq!(read, RecoveryMetricsSnapshot::default());
    }
}
