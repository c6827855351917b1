use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::failure::Timestamp;
use crate::policy::{Limits, Verdict};

/// A session's past episodes, as far as limits over several episodes need them.
///
/// Neither a restart nor a recovery refills what is counted here.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct History {
    /// When the episodes inside the window began (R7).
    pub(super) recoveries: VecDeque<Timestamp>,
    /// Whether the host was called for the window that is full now.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) called_for_window: bool,
    /// The current streak of one fingerprint (R16).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) strikes: Option<Strikes>,
    /// The last recovery, until a turn is seen to work: its failure's return is a strike.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) fragile: Option<Fragile>,
}

/// Strikes of one fingerprint in a row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Strikes {
    /// The failure's fingerprint.
    pub fingerprint: u64,
    /// When each strike fell, oldest first; none older than the window.
    pub at: VecDeque<Timestamp>,
    /// Whether the host was called for this streak.
    pub called: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Fragile {
    pub fingerprint: u64,
    pub until: Timestamp,
}

impl History {
    /// Notes a new failure before an episode opens: the return of one that had "recovered" is a
    /// strike (R16).
    pub fn failed(&mut self, fingerprint: u64, limits: &Limits, now: Timestamp) {
        match self.fragile.take() {
            Some(fragile) if now > fragile.until => self.held(fragile),
            Some(fragile) if fragile.fingerprint == fingerprint => self.strike(fingerprint, limits, now),
            Some(_) | None => {}
        }
        self.forget_old(limits, now);
    }

    /// Notes that an episode opens, unless the window has no room for it (R7): then the value is true
    /// once, when the host is to be called.
    pub fn window_is_full(&mut self, limits: &Limits, now: Timestamp) -> Option<bool> {
        self.forget_old(limits, now);
        if self.recoveries.len() >= limits.max_recoveries as usize {
            return Some(!std::mem::replace(&mut self.called_for_window, true));
        }
        self.called_for_window = false;
        self.recoveries.push_back(now);
        None
    }

    /// The last episode's beginning or end that is known of.
    pub fn last(&self) -> Option<Timestamp> {
        let strike = self.strikes.as_ref().and_then(|strikes| strikes.at.back());
        self.recoveries.back().into_iter().chain(strike).max().copied()
    }

    /// Whether this failure's streak has reached `max_same_failure`; the second value is true once
    /// per streak, when the host is to be called.
    pub fn struck_out(&mut self, fingerprint: u64, limits: &Limits) -> Option<bool> {
        let strikes = self.strikes.as_mut().filter(|strikes| strikes.fingerprint == fingerprint)?;
        if strikes.at.len() < limits.max_same_failure as usize {
            return None;
        }
        Some(!std::mem::replace(&mut strikes.called, true))
    }

    /// Notes an episode's verdict.
    pub fn ended(&mut self, verdict: &Verdict, fingerprint: u64, thawed: bool, limits: &Limits, now: Timestamp) {
        match verdict {
            Verdict::Recovered(_) => {
                self.fragile = Some(Fragile { fingerprint, until: now + limits.quiet_period });
            }
            Verdict::Aborted { .. } | Verdict::Exhausted { .. } => self.strike(fingerprint, limits, now),
            Verdict::Escalated { .. } | Verdict::Cancelled | Verdict::Unhandled(_) => {}
        }
        if thawed && verdict.is_recovered() {
            self.recoveries.pop_back();
        }
    }

    /// A turn was seen to work outside episodes: the last recovery held.
    pub fn turn_worked(&mut self) {
        if let Some(fragile) = self.fragile.take() {
            self.held(fragile);
        }
    }

    /// A recovery that held ends the row of its failure's strikes.
    fn held(&mut self, fragile: Fragile) {
        self.strikes.take_if(|strikes| strikes.fingerprint == fragile.fingerprint);
    }

    /// The current streak.
    pub fn strikes(&self) -> Option<&Strikes> {
        self.strikes.as_ref()
    }

    /// Episodes that count against the window.
    pub fn recoveries(&self) -> usize {
        self.recoveries.len()
    }

    fn strike(&mut self, fingerprint: u64, limits: &Limits, now: Timestamp) {
        match &mut self.strikes {
            Some(strikes) if strikes.fingerprint == fingerprint => {
                strikes.at.push_back(now);
                if strikes.at.len() > limits.max_same_failure.max(1) as usize {
                    strikes.at.pop_front();
                }
            }
            strikes => *strikes = Some(Strikes { fingerprint, at: [now].into(), called: false }),
        }
    }

    fn forget_old(&mut self, limits: &Limits, now: Timestamp) {
        let old = |at: &Timestamp| now.since(*at) > limits.recovery_window;
        while self.recoveries.front().is_some_and(old) {
            self.recoveries.pop_front();
        }
        if let Some(strikes) = &mut self.strikes {
            while strikes.at.front().is_some_and(old) {
                strikes.at.pop_front();
                // Should it be full once more, that is another streak.
                strikes.called = false;
            }
            if strikes.at.is_empty() {
                self.strikes = None;
            }
        }
    }
}
