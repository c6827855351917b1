//! A provider that can be out of order, refuse part of what it gets, and throttle; and sessions that use it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use backstop::actors::TokioClock;
use backstop::engine::EngineBuilder;
use backstop::policy::lane::Standing;
use backstop::{LaneKey, RecoveryConfig, RecoveryEngine, Runner, SessionId, Timestamp};
use tokio::time::{Instant, sleep};

pub const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);

pub fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub fn lane() -> LaneKey {
    LaneKey::of("acme", "large", "team-a")
}

pub fn id(name: impl std::fmt::Display) -> SessionId {
    SessionId::new(name.to_string()).unwrap()
}

pub fn builder(yaml: &str, seed: u64) -> EngineBuilder {
    let config = match yaml {
        "" => RecoveryConfig::default(),
        yaml => RecoveryConfig::parse("test.yaml", yaml).unwrap().config,
    };
    let builder = RecoveryEngine::builder().config(config).in_memory();
    builder.runner(Runner::Inline).clock(TokioClock::starting_at(START)).seed(seed)
}

pub async fn engine(yaml: &str, seed: u64) -> RecoveryEngine {
    builder(yaml, seed).spawn().await.unwrap()
}

pub fn standing(engine: &RecoveryEngine) -> Standing {
    let all = engine.pressure().borrow().clone();
    all.iter().find(|one| one.lane == lane()).map(|one| one.standing).unwrap_or_default()
}

/// Serves so many calls a second, with a burst, unless it is out of order.
#[derive(Clone)]
pub struct Provider {
    inner: Arc<Mutex<Inner>>,
    begun: Instant,
}

struct Inner {
    /// Out of order from, until.
    outage: (Duration, Duration),
    /// Calls of a hundred that fail outside of it.
    bad: u64,
    rate: f64,
    burst: f64,
    tokens: f64,
    at: Duration,
    dice: u64,
    calls: Vec<Duration>,
}

impl Provider {
    pub const LATENCY: Duration = Duration::from_secs(2);

    pub fn new(rate: f64, burst: f64, seed: u64) -> Self {
        let outage = (Duration::MAX, Duration::MAX);
        let (calls, at) = (vec![], Duration::ZERO);
        let inner = Inner { outage, bad: 0, rate, burst, tokens: burst, at, dice: seed, calls };
        Self { inner: Arc::new(Mutex::new(inner)), begun: Instant::now() }
    }

    pub fn out_of_order(self, from: Duration, lasts: Duration) -> Self {
        self.inner.lock().unwrap().outage = (from, from + lasts);
        self
    }

    pub fn set_bad(&self, percent: u64) {
        self.inner.lock().unwrap().bad = percent;
    }

    /// Calls that began in this span.
    pub fn calls(&self, from: Duration, until: Duration) -> usize {
        self.inner.lock().unwrap().calls.iter().filter(|at| **at >= from && **at < until).count()
    }

    pub async fn call(&self) -> Result<(), std::io::Error> {
        let refused = {
            let mut inner = self.inner.lock().unwrap();
            let now = self.begun.elapsed();
            inner.calls.push(now);
            let gained = (now - inner.at).as_secs_f64() * inner.rate;
            inner.tokens = (inner.tokens + gained).min(inner.burst);
            inner.at = now;
            inner.dice = backstop::policy::seed::mix(inner.dice, 1);
            let is_bad = inner.dice % 100 < inner.bad;
            if now >= inner.outage.0 && now < inner.outage.1 {
                Some("503 Service Unavailable")
            } else if inner.tokens < 1.0 {
                Some("429 Too Many Requests")
            } else {
                inner.tokens -= 1.0;
                is_bad.then_some("500 Internal Server Error")
            }
        };
        match refused {
            Some(why) => {
                sleep(Duration::from_millis(200)).await;
                Err(std::io::Error::other(why))
            }
            None => {
                sleep(Self::LATENCY).await;
                // One that is out of order by now breaks off what it began.
                let inner = self.inner.lock().unwrap();
                let now = self.begun.elapsed();
                match now >= inner.outage.0 && now < inner.outage.1 {
                    true => Err(std::io::Error::other("503 Service Unavailable")),
                    false => Ok(()),
                }
            }
        }
    }
}

/// When turns of each session ended well.
pub type Done = Arc<Mutex<Vec<Vec<Duration>>>>;

/// So many sessions, each making turns with pauses of `pause` on average until then.
pub async fn fleet(
    engine: &RecoveryEngine,
    provider: &Provider,
    sessions: usize,
    pause: Duration,
    until: Duration,
) -> Done {
    let done: Done = Arc::new(Mutex::new(vec![vec![]; sessions]));
    let begun = Instant::now();
    let tasks: Vec<_> = (0..sessions)
        .map(|index| {
            let (engine, provider, done) = (engine.clone(), provider.clone(), Arc::clone(&done));
            tokio::spawn(async move {
                let mut dice = index as u64;
                while begun.elapsed() < until {
                    dice = backstop::policy::seed::mix(dice, 9);
                    sleep(pause.mul_f64(2.0 * backstop::policy::seed::unit(dice))).await;
                    let session = engine.session(id(format!("s{index}"))).lane(lane());
                    let provider = provider.clone();
                    let turn = session.run_with(move |_| {
                        let provider = provider.clone();
                        async move { provider.call().await }
                    });
                    // A fleet that is over is not waited for.
                    let left = (until + secs(60)).saturating_sub(begun.elapsed());
                    if let Ok(Ok(_)) = tokio::time::timeout(left, turn).await {
                        done.lock().unwrap()[index].push(begun.elapsed());
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    done
}
