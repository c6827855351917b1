//! What goes wrong in a simulated world: failures of many kinds, most with a secret in their text.

use serde_json::json;

use super::dice::Dice;
use crate::failure::{Report, Source};

/// A part of every secret that is planted: it may be found in nothing that leaves the engine (P5).
pub(super) const CANARY: &str = "CANARY";

/// How many different failures there are.
pub(super) const FAILURES: u64 = 24;

/// One failure; the same number gives the same failure.
pub(super) fn failure(which: u64) -> Report {
    match which {
        0 => Report::text("503 Service Unavailable (Authorization: Bearer CANARYtoken0123456789abcdef)"),
        1 => Report::new(json!({
            "status": 429,
            "headers": {"retry-after": "7", "authorization": "Bearer CANARYtoken0123456789abcdef"},
            "message": "Rate limit reached for key sk-ant-api03-CANARY0123456789abcdef",
        })),
        2 => Report::text("429 Too Many Requests. Please try again in 90s. api_key=CANARY0123456789abcdef"),
        3 => Report::text("429 rate_limit_exceeded: try again in 3h"),
        4 => Report::text("prompt is too long: 250000 tokens > 200000 maximum, sk-proj-CANARY0123456789abcdef"),
        5 => Report::text("Error: oldString not found in content").with_tool("edit").with_source(Source::Tool),
        6 => Report::text("Unexpected end of JSON input: {\"password\": \"CANARYhunter2000\", \"a\": "),
        7 => Report::new(json!(null)).with_source(Source::Provider),
        8 => Report::text("401 Incorrect API key provided: sk-CANARY0123456789abcdef").with_status(401),
        9 => {
            Report::new(json!({"error": {"type": "insufficient_quota", "message": "You exceeded your current quota"}}))
        }
        10 => Report::text("404 model_not_found: no such model (postgres://user:CANARYpass99@db/main)"),
        11 => Report::text("the database disk image is malformed"),
        12 => Report::text("The user rejected this tool call"),
        13 => Report::text("blocked by guard: policy violation, ghp_CANARY0123456789abcdefabcd"),
        14 => Report::text("the flux capacitor is empty; AKIACANARY0123456789"),
        15 => Report::text("connect ECONNRESET https://bot:CANARYpass99@api.example.com/v1?key=CANARY0123456789"),
        16 => Report::text("ENOENT: no such file or directory, open 'src/main.rs'").with_tool("read"),
        17 => Report::text("cargo test failed: 3 tests failed").with_exit_code(101).with_source(Source::Command),
        18 => Report::text("overloaded_error: Overloaded (eyJhbGciOiJI.eyJDQU5BUllDQU5BUlkifQ.CANARYsig012345)"),
        19 => Report::text("stream disconnected before completion"),
        20 => Report::text("invalid_request_error: messages.1.content is missing").with_status(400),
        21 => Report::text("tool call timed out after 120s").with_tool("bash").with_source(Source::Tool),
        22 => Report::cancelled(),
        _ => Report::new(json!({"rows": 3})),
    }
}

/// What one session's turns meet.
#[derive(Debug, Clone)]
pub(super) struct Script {
    habit: Habit,
    failures: Vec<u64>,
    seed: u64,
    /// Some turns never end by themselves.
    hangs: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Habit {
    /// Each turn fails this often at most, with one failure after the other, then works.
    Recovers(u64),
    /// One failure and no other, for ever.
    NeverWorks,
    /// One failure, which is cured by the first redo and comes back with the next turn.
    ComesBack,
    /// Two failures by turns, for ever.
    Alternates,
}

impl Script {
    pub fn new(dice: &mut Dice, hangs: bool) -> Self {
        let habit = match dice.below(10) {
            0..=4 => Habit::Recovers(dice.between(1, 6)),
            5..=6 => Habit::NeverWorks,
            7 => Habit::ComesBack,
            _ => Habit::Alternates,
        };
        // Mostly those that have a chain.
        let common = |dice: &mut Dice| if dice.chance(80) { 20 } else { FAILURES };
        let failures = (0..dice.between(1, 4)).map(|_| {
            let among = common(dice);
            dice.below(among)
        });
        Self { habit, failures: failures.collect(), seed: dice.roll(), hangs }
    }

    /// Whether all failures of the session are the same one.
    pub fn is_monotonous(&self) -> bool {
        matches!(self.habit, Habit::NeverWorks | Habit::ComesBack)
    }

    /// How this try of this turn ends, and how long it takes in milliseconds; `None` is for ever.
    pub fn outcome(&self, turn: u64, tried: u64) -> (Option<u64>, Result<(), Report>) {
        let mut dice = Dice::new(self.seed, turn.wrapping_mul(1_000) + tried);
        let first = self.failures[0];
        let fails = match self.habit {
            Habit::Recovers(most) => (tried < Dice::new(self.seed, turn).between(0, most))
                .then(|| self.failures[((turn + tried) % self.failures.len() as u64) as usize]),
            Habit::NeverWorks => Some(first),
            Habit::ComesBack => (tried == 0).then_some(first),
            Habit::Alternates => Some(self.failures[(tried % 2).min(self.failures.len() as u64 - 1) as usize]),
        };
        let takes = match dice.below(20) {
            0 if self.hangs => None,
            0..=4 => Some(0),
            _ => Some(dice.between(1, 20_000)),
        };
        (takes, fails.map_or(Ok(()), |which| Err(failure(which))))
    }
}
