use std::collections::HashMap;
use std::time::Duration;

use super::rate::{Rate, seconds};
use super::settings::LaneSettings;
use crate::failure::Timestamp;

/// How many redos a lane stands, and whose turn it is.
///
/// All calls together stay within the fresh calls offered and `retry_percent` of them. Offered is what the lane
/// had in its usual hours: fresh turns that are not made because their sessions are stuck leave their room to the
/// redos that free them, else a long brown-out would starve everybody. With fresh turns as usual that is
/// `retry_percent` of fresh work.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Budget {
    fresh: Rate,
    offered: f64,
    tokens: f64,
    at: Timestamp,
    /// What each session got lately; sessions that got nothing are not in it.
    used: HashMap<u64, Rate>,
}

impl Budget {
    /// How far back fresh work counts.
    const FRESH: Duration = Duration::from_secs(30);
    /// How quickly the usual offer rises and falls.
    const RISES: f64 = 60.0;
    const FALLS: f64 = 600.0;
    /// Redos that may be saved up: these, or some seconds' worth.
    const SAVED: f64 = 10.0;
    const SAVED_SECONDS: f64 = 10.0;
    /// What a session used weighs this long.
    const USE: Duration = Duration::from_secs(60);
    /// Redos of one session before it has to leave some for others.
    const FREE: f64 = 2.0;
    /// Sessions remembered.
    const SESSIONS: usize = 4_096;

    pub fn new(now: Timestamp) -> Self {
        let fresh = Rate::over(Self::FRESH, now);
        Self { fresh, offered: 0.0, tokens: Self::SAVED, at: now, used: HashMap::new() }
    }

    pub fn fresh(&mut self, settings: &LaneSettings, now: Timestamp) {
        self.refill(settings, now);
        self.fresh.add(now);
    }

    /// When the session may redo: now, if that is not later. The more it had lately, the more must be left for
    /// the others, so that a noisy session slows only itself.
    pub fn next(&mut self, session: u64, settings: &LaneSettings, now: Timestamp) -> Timestamp {
        if settings.retry_percent == 0 {
            return now;
        }
        self.refill(settings, now);
        let (per_second, most) = (self.per_second(settings, now), self.most(settings, now));
        let had = self.used.get_mut(&session).map_or(0.0, |used| used.count(now));
        let needed = (1.0 + (had - Self::FREE).max(0.0)).min(most);
        let missing = needed - self.tokens;
        if missing <= 1e-9 {
            return now;
        }
        match per_second > 0.0 {
            true => now + seconds(missing / per_second).max(Duration::from_millis(1)),
            // The floor is none and nothing fresh came: fresh work will tell.
            false => now + Self::FRESH,
        }
    }

    pub fn redo(&mut self, session: u64, settings: &LaneSettings, now: Timestamp) {
        if settings.retry_percent == 0 {
            return;
        }
        self.refill(settings, now);
        self.tokens = (self.tokens - 1.0).max(0.0);
        if self.used.len() >= Self::SESSIONS && !self.used.contains_key(&session) {
            self.used.retain(|_, used| used.count(now) >= 0.5);
            if self.used.len() >= Self::SESSIONS {
                return;
            }
        }
        self.used.entry(session).or_insert_with(|| Rate::over(Self::USE, now)).add(now);
    }

    /// Fresh calls per second in the lane's usual hours.
    pub fn offered(&self) -> f64 {
        self.offered
    }

    /// Redos per second by now.
    pub fn per_second(&mut self, settings: &LaneSettings, now: Timestamp) -> f64 {
        let share = f64::from(settings.retry_percent) / 100.0;
        let displaced = (self.offered - self.fresh.per_second(now)).max(0.0);
        (share * self.offered + displaced).max(f64::from(settings.retry_floor) / 60.0)
    }

    fn most(&mut self, settings: &LaneSettings, now: Timestamp) -> f64 {
        (self.per_second(settings, now) * Self::SAVED_SECONDS).max(Self::SAVED)
    }

    fn refill(&mut self, settings: &LaneSettings, now: Timestamp) {
        let passed = now.since(self.at).as_secs_f64();
        if passed <= 0.0 {
            return;
        }
        self.at = now;
        let fresh = self.fresh.per_second(now);
        let pace = if fresh > self.offered { Self::RISES } else { Self::FALLS };
        self.offered += (fresh - self.offered) * (1.0 - (-passed / pace).exp());
        let gained = passed * self.per_second(settings, now);
        self.tokens = (self.tokens + gained).min(self.most(settings, now));
    }
}
