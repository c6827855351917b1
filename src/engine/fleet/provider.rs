use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use super::draws::Draws;
use super::scenario::{Context, Fault, Scenario};

/// How a call ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    Worked,
    /// The provider is down.
    Down,
    /// It has more to do than it can.
    Overloaded,
    /// It worked on it and failed.
    Failed,
    /// The caller's rate is used up.
    Throttled {
        retry_after: Option<Duration>,
    },
    /// This caller's key is refused.
    Revoked,
    /// This caller's request makes it fail.
    Poisoned,
    /// The request is too long.
    TooLong {
        tokens: u64,
        window: u64,
    },
}

/// The modelled provider. Pure: the time since the beginning is an argument, and answers are decided when
/// a call begins.
pub(super) struct Model {
    scenario: Rc<Scenario>,
    draws: Draws,
    in_flight: usize,
    /// Calls that the rate still lets in, and when that was reckoned.
    tokens: (f64, Duration),
    /// When it refused lately.
    refused: VecDeque<Duration>,
    /// Until when its own refusals have brought it down.
    collapsed_until: Duration,
    /// When that happened.
    pub collapses: Vec<Duration>,
}

/// A refusal takes no work, but a way there and back.
const REFUSAL: Duration = Duration::from_millis(100);

impl Model {
    pub fn new(scenario: Rc<Scenario>, seed: u64) -> Self {
        let burst = scenario.provider.burst.or(scenario.provider.rate).unwrap_or_default();
        Self {
            scenario,
            draws: Draws::new(seed, 0x70),
            in_flight: 0,
            tokens: (burst, Duration::ZERO),
            refused: VecDeque::new(),
            collapsed_until: Duration::ZERO,
            collapses: vec![],
        }
    }

    /// A session's call begins: how it will end, and after how long. [`end`](Self::end) is due then.
    pub fn begin(&mut self, at: Duration, session: usize, tokens: u64) -> (Answer, Duration) {
        self.in_flight += 1;
        let answer = self.answer(at, session, tokens);
        let took = match answer {
            Answer::Worked | Answer::Failed => self.latency(at),
            _ => self.draws.about(REFUSAL),
        };
        if matches!(answer, Answer::Down | Answer::Overloaded | Answer::Throttled { .. }) {
            self.refuse(at);
        }
        (answer, took)
    }

    pub fn end(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// Whether it is down for everybody now.
    pub fn is_down(&self, at: Duration) -> bool {
        at < self.collapsed_until
            || self.scenario.faults.iter().any(|fault| match fault {
                Fault::Outage { .. } => fault.holds(at),
                Fault::Flapping { at: from, period, .. } => {
                    let into = at.saturating_sub(*from).as_secs_f64() / period.as_secs_f64();
                    fault.holds(at) && into.fract() < 0.5
                }
                _ => false,
            })
    }

    fn answer(&mut self, at: Duration, session: usize, tokens: u64) -> Answer {
        let sessions = self.scenario.sessions;
        for fault in &self.scenario.faults {
            match *fault {
                Fault::Revoked { at: from, sessions: lost } if at >= from && session < lost => return Answer::Revoked,
                Fault::Poisoned { at: from, sessions: lost } if at >= from && session >= sessions - lost => {
                    return Answer::Poisoned;
                }
                _ => {}
            }
        }
        if self.is_down(at) {
            return Answer::Down;
        }
        let share = self.share(at);
        let scenario = Rc::clone(&self.scenario);
        let provider = &scenario.provider;
        if let Some(Context { window, .. }) = provider.context
            && tokens > window
        {
            return Answer::TooLong { tokens, window };
        }
        if !self.is_let_in(at, share) {
            return Answer::Throttled { retry_after: provider.retry_after };
        }
        if self.in_flight as f64 > provider.concurrency as f64 * share {
            return Answer::Overloaded;
        }
        if self.fails(at) { Answer::Failed } else { Answer::Worked }
    }

    /// What is left of its capacity.
    fn share(&self, at: Duration) -> f64 {
        let cuts = self.scenario.faults.iter().filter_map(|fault| match fault {
            Fault::Throttle { to, .. } if fault.holds(at) => Some(*to),
            _ => None,
        });
        cuts.fold(1.0, f64::min)
    }

    fn is_let_in(&mut self, at: Duration, share: f64) -> bool {
        let Some(rate) = self.scenario.provider.rate else { return true };
        let burst = self.scenario.provider.burst.unwrap_or(rate).max(1.0);
        let (tokens, then) = self.tokens;
        let now = (tokens + at.saturating_sub(then).as_secs_f64() * rate * share).min(burst);
        let lets_in = now >= 1.0;
        self.tokens = (if lets_in { now - 1.0 } else { now }, at);
        lets_in
    }

    fn fails(&mut self, at: Duration) -> bool {
        let shares = self.scenario.faults.iter().filter_map(|fault| match fault {
            Fault::BrownOut { fails, .. } if fault.holds(at) => Some(*fails),
            _ => None,
        });
        let share = shares.fold(0.0, f64::max);
        share > 0.0 && self.draws.unit() < share
    }

    fn latency(&mut self, at: Duration) -> Duration {
        let slow = self.scenario.faults.iter().filter_map(|fault| match fault {
            Fault::Slow { times, .. } if fault.holds(at) => Some(*times),
            _ => None,
        });
        let times = slow.fold(1.0, f64::max);
        self.draws.about(self.scenario.provider.latency.mul_f64(times))
    }

    fn refuse(&mut self, at: Duration) {
        let Some(collapse) = self.scenario.provider.collapse else { return };
        self.refused.push_back(at);
        while self.refused.front().is_some_and(|first| *first + collapse.within < at) {
            self.refused.pop_front();
        }
        if self.refused.len() >= collapse.refusals && !self.is_down(at) {
            self.refused.clear();
            self.collapsed_until = at + collapse.lasts;
            self.collapses.push(at);
        }
    }
}
