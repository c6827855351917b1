use std::time::Duration;

use crate::policy::RecoveryConfig;

/// How failed turns are dealt with.
#[derive(Debug, Clone)]
pub struct Policy {
    /// Its name, for tables.
    pub name: String,
    pub(super) way: Way,
}

#[derive(Debug, Clone)]
pub(super) enum Way {
    /// The engine; with or without a lane that the sessions share.
    Engine { config: Box<RecoveryConfig>, lane: bool },
    /// Each session for itself.
    BackOff(BackOff),
}

/// Independent exponential back-off, as agents have it today.
#[derive(Debug, Clone, Copy)]
pub(super) struct BackOff {
    pub first: Duration,
    pub longest: Duration,
    pub tries: u32,
    /// Each wait is drawn from all spans up to it.
    pub full_jitter: bool,
}

/// The chain that the original system has unless it is configured: it knows no lanes.
const ORIGINAL: &str = "
session_error:
  - {strategy: retry, config: {max_retries: 2, backoff_ms: 2000, backoff_factor: 2, jitter: false}}
  - compact
  - abort
";

impl Policy {
    /// The engine under this configuration, with all sessions on one lane.
    pub fn engine(name: impl Into<String>, config: RecoveryConfig) -> Self {
        Self { name: name.into(), way: Way::Engine { config: Box::new(config), lane: true } }
    }

    /// The engine under this configuration, each session for itself.
    pub fn without_lanes(name: impl Into<String>, config: RecoveryConfig) -> Self {
        Self { name: name.into(), way: Way::Engine { config: Box::new(config), lane: false } }
    }

    /// What others do: exponential back-off of 2 s to 60 s, twelve tries, without and with full jitter, and
    /// the original system's default chain.
    pub fn baselines() -> [Self; 3] {
        let back_off = |full_jitter| {
            let (first, longest) = (Duration::from_secs(2), Duration::from_secs(60));
            Way::BackOff(BackOff { first, longest, tries: 12, full_jitter })
        };
        let original = RecoveryConfig::parse("original.yaml", ORIGINAL).map(|loaded| loaded.config).unwrap_or_default();
        [
            Self { name: "back-off".to_owned(), way: back_off(false) },
            Self { name: "back-off, full jitter".to_owned(), way: back_off(true) },
            Self::without_lanes("the original's chain", original),
        ]
    }
}
