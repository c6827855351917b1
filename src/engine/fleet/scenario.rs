use std::time::Duration;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::duration;
use crate::policy::RecoveryConfig;
use crate::policy::config::ConfigErrors;

/// Who works when, what the provider can take, and what goes wrong.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// Its name, for tables.
    pub name: String,
    /// Sessions that work side by side.
    pub sessions: usize,
    /// How long new turns are begun.
    pub duration: Duration,
    /// Between a session's turns, on average.
    pub pause: Duration,
    /// After this long a turn that does not work is given up, whatever the policy.
    pub deadline: Duration,
    /// Who answers.
    pub provider: Provider,
    /// What goes wrong.
    pub faults: Vec<Fault>,
    /// The policy that the scenario is written for.
    pub policy: RecoveryConfig,
}

/// What the provider can take.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provider {
    /// How long an answer takes, on average.
    #[serde(with = "duration")]
    pub latency: Duration,
    /// Calls that it serves at once; more are refused as overload.
    #[serde(default = "unlimited")]
    pub concurrency: usize,
    /// Calls a second that it lets in; more are throttled.
    #[serde(default)]
    pub rate: Option<f64>,
    /// Calls that may come at once within the rate; a second's worth unless set.
    #[serde(default)]
    pub burst: Option<f64>,
    /// The wait that it states when it throttles.
    #[serde(default, deserialize_with = "duration::optional")]
    pub retry_after: Option<Duration>,
    /// When refusals themselves bring it down.
    #[serde(default)]
    pub collapse: Option<Collapse>,
    /// Requests grow, and at most so many tokens fit.
    #[serde(default)]
    pub context: Option<Context>,
}

/// Too many refusals in too short a time bring the provider down again: the second trip.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Collapse {
    /// So many refusals …
    pub refusals: usize,
    /// … within so long …
    #[serde(with = "duration")]
    pub within: Duration,
    /// … and it is down for so long.
    #[serde(with = "duration")]
    pub lasts: Duration,
}

/// How requests grow.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Context {
    /// Tokens that fit.
    pub window: u64,
    /// Tokens that a turn adds, on average.
    pub growth: u64,
}

/// Something that goes wrong. Times are since the beginning.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Fault {
    /// Every call fails at once.
    Outage {
        /// Its beginning.
        #[serde(with = "duration")]
        at: Duration,
        /// Its length.
        #[serde(with = "duration")]
        lasts: Duration,
    },
    /// A share of the calls fails, after the usual time.
    BrownOut {
        /// Its beginning.
        #[serde(with = "duration")]
        at: Duration,
        /// Its length.
        #[serde(with = "duration")]
        lasts: Duration,
        /// The share, from 0 to 1.
        fails: f64,
    },
    /// The rate and the concurrency are cut to a share.
    Throttle {
        /// Its beginning.
        #[serde(with = "duration")]
        at: Duration,
        /// Its length.
        #[serde(with = "duration")]
        lasts: Duration,
        /// The share that is left.
        to: f64,
    },
    /// Answers take a multiple of their time.
    Slow {
        /// Its beginning.
        #[serde(with = "duration")]
        at: Duration,
        /// Its length.
        #[serde(with = "duration")]
        lasts: Duration,
        /// The multiple.
        times: f64,
    },
    /// Down and up again, over and over.
    Flapping {
        /// Its beginning.
        #[serde(with = "duration")]
        at: Duration,
        /// Its length.
        #[serde(with = "duration")]
        lasts: Duration,
        /// A whole turn, half of it down.
        #[serde(with = "duration")]
        period: Duration,
    },
    /// The keys of the first sessions are refused from then on.
    Revoked {
        /// From when on.
        #[serde(with = "duration")]
        at: Duration,
        /// How many.
        sessions: usize,
    },
    /// Every call of the last sessions makes the provider fail, for them alone.
    Poisoned {
        /// From when on.
        #[serde(with = "duration")]
        at: Duration,
        /// How many.
        sessions: usize,
    },
}

/// From when, for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Its beginning.
    pub at: Duration,
    /// Its length.
    pub lasts: Duration,
}

impl Span {
    /// Whether this moment lies in it.
    pub fn holds(&self, at: Duration) -> bool {
        self.at <= at && at < self.end()
    }

    /// The first moment after it.
    pub fn end(&self) -> Duration {
        self.at.saturating_add(self.lasts)
    }
}

impl Fault {
    /// Whether it is under way; one that never ends is not.
    pub(super) fn holds(&self, at: Duration) -> bool {
        self.span().is_some_and(|span| span.holds(at))
    }

    /// When it lasts, if it ends at all.
    pub fn span(&self) -> Option<Span> {
        match *self {
            Self::Outage { at, lasts }
            | Self::BrownOut { at, lasts, .. }
            | Self::Throttle { at, lasts, .. }
            | Self::Slow { at, lasts, .. }
            | Self::Flapping { at, lasts, .. } => Some(Span { at, lasts }),
            Self::Revoked { .. } | Self::Poisoned { .. } => None,
        }
    }
}

/// Why a scenario cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScenarioError {
    /// It is no YAML, or says something unknown, or misses something.
    #[error("{place}: the scenario cannot be read")]
    Form {
        /// The file, with line and column where they are known.
        place: String,
        /// What is wrong there.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A number that makes no sense.
    #[error("{file}: {what}")]
    Number {
        /// Where it was read from.
        file: String,
        /// Which one, and what it must be.
        what: String,
    },
    /// Its policy is wrong.
    #[error(transparent)]
    Policy(#[from] ConfigErrors),
}

fn unlimited() -> usize {
    usize::MAX
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Form {
    name: String,
    sessions: usize,
    #[serde(with = "duration")]
    duration: Duration,
    #[serde(with = "duration")]
    pause: Duration,
    #[serde(default, deserialize_with = "duration::optional")]
    deadline: Option<Duration>,
    provider: Provider,
    #[serde(default, with = "serde_yaml::with::singleton_map_recursive")]
    faults: Vec<Fault>,
    /// Read by the policy's own parser.
    #[serde(default)]
    recovery: Option<IgnoredAny>,
}

impl Scenario {
    /// Most sessions: each is an actor while it recovers.
    pub const MOST_SESSIONS: usize = 100_000;

    /// Reads a scenario; `file` is named in errors.
    ///
    /// # Errors
    ///
    /// [`ScenarioError`], with line and column where the form is wrong.
    pub fn parse(file: &str, yaml: &str) -> Result<Self, ScenarioError> {
        let form: Form = serde_yaml::from_str(yaml).map_err(|source| {
            let at = source.location().map(|at| format!(":{}:{}", at.line(), at.column())).unwrap_or_default();
            ScenarioError::Form { place: format!("{file}{at}"), source: source.into() }
        })?;
        form.check().map_err(|what| ScenarioError::Number { file: file.to_owned(), what })?;
        let policy = match form.recovery {
            None => RecoveryConfig::default(),
            Some(_) => RecoveryConfig::parse(file, yaml)?.config,
        };
        Ok(Self {
            name: form.name,
            sessions: form.sessions,
            duration: form.duration,
            pause: form.pause,
            deadline: form.deadline.unwrap_or(Duration::from_secs(3_600)),
            provider: form.provider,
            faults: form.faults,
            policy,
        })
    }

    /// The first fault that is the provider's own and ends.
    pub(super) fn trouble(&self) -> Option<Span> {
        self.faults.iter().find_map(Fault::span)
    }

    /// Whether the sessions with this number can never work again.
    pub(super) fn is_lost(&self, session: usize) -> bool {
        self.faults.iter().any(|fault| match fault {
            Fault::Revoked { sessions, .. } => session < *sessions,
            Fault::Poisoned { sessions, .. } => session >= self.sessions.saturating_sub(*sessions),
            _ => false,
        })
    }
}

impl Form {
    fn check(&self) -> Result<(), String> {
        let within = |name: &str, value: f64, low: f64, high: f64| match (low..=high).contains(&value) {
            true => Ok(()),
            false => Err(format!("{name} is {value}: it must be from {low} to {high}")),
        };
        within("sessions", self.sessions as f64, 1.0, Scenario::MOST_SESSIONS as f64)?;
        within("pause, in seconds,", self.pause.as_secs_f64(), 0.1, 86_400.0)?;
        within("duration, in seconds,", self.duration.as_secs_f64(), 1.0, 7.0 * 86_400.0)?;
        for rate in [self.provider.rate, self.provider.burst].into_iter().flatten() {
            within("provider.rate or burst", rate, 0.001, 1e9)?;
        }
        for fault in &self.faults {
            match fault {
                Fault::BrownOut { fails, .. } => within("brown_out.fails", *fails, 0.0, 1.0)?,
                Fault::Throttle { to, .. } => within("throttle.to", *to, 0.0, 1.0)?,
                Fault::Slow { times, .. } => within("slow.times", *times, 0.01, 1e6)?,
                Fault::Flapping { period, .. } => {
                    within("flapping.period, in seconds,", period.as_secs_f64(), 0.1, 1e6)?
                }
                Fault::Revoked { sessions, .. } | Fault::Poisoned { sessions, .. } => {
                    within("sessions of a fault", *sessions as f64, 0.0, self.sessions as f64)?;
                }
                Fault::Outage { .. } => {}
            }
        }
        Ok(())
    }
}
