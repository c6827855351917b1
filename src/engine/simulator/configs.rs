use std::time::Duration;

use super::dice::Dice;
use super::strategies::OWN;
use crate::failure::{Category, Kind};
use crate::policy::config::ConfigBuilder;
use crate::policy::{ChainKey, Durability, RecoveryConfig, Step};

/// A configuration that a user might have: some chains of his own, limits small enough to be reached.
pub(super) fn config(durability: Durability, dice: &mut Dice) -> RecoveryConfig {
    let mut builder = ConfigBuilder::new()
        .durability(durability)
        .known_strategies(OWN.iter().map(|(name, _)| *name))
        .known_strategy("not_registered")
        .enabled(!dice.chance(2));
    for _ in 0..dice.below(6) {
        let key = match dice.below(6) {
            0 => ChainKey::Kind(dice.pick(Kind::BUILT_IN).clone()),
            // Most failures are of this one.
            1..=3 => ChainKey::Category(Category::SessionError),
            _ => ChainKey::Category(*dice.pick(Category::ALL)),
        };
        let steps = (0..dice.between(1, 4)).map(|_| step(dice)).collect();
        builder = builder.chain(key, steps);
    }
    let mut dice = dice.clone();
    let builder = builder.limits(move |limits| {
        limits.max_total_attempts = dice.below(13) as u32;
        limits.max_recoveries = dice.between(1, 6) as u32;
        limits.recovery_window = dice.millis(60_000, 3_600_000);
        limits.max_same_failure = dice.between(1, 3) as u32;
        limits.max_wait = dice.millis(0, 60_000);
        limits.max_park = dice.millis(0, 300_000);
        limits.turn_timeout = dice.millis(10_000, 600_000);
        limits.strategy_timeout = dice.millis(1, 30_000);
        limits.strategies_at_once = dice.between(1, 4) as usize;
        limits.waiting_reports = dice.between(1, 8) as usize;
        limits.quiet_period = dice.millis(1_000, 300_000);
        limits.passivate_after = dice.millis(1_000, 60_000);
        limits.shutdown_timeout = Duration::from_secs(10);
        limits.lane_concurrency = dice.between(1, 3) as usize;
        limits.lane_queue = dice.between(1, 8) as usize;
    });
    builder.build().expect("all values are within their ranges").config
}

fn step(dice: &mut Dice) -> Step {
    match dice.below(24) {
        0..=2 => Step::new("retry").with("max_retries", dice.between(1, 3)).with("backoff_ms", dice.between(0, 5_000)),
        3 => Step::new("remind_and_retry").with("max_retries", dice.between(1, 2)),
        4 => Step::new("truncate").with("max_truncations", dice.between(1, 3)),
        5 => Step::new("compact"),
        6 => Step::new("summarize"),
        7 => Step::new("fallback_model").with("models", vec!["acme/small", "acme/old"]),
        8 => Step::new(*dice.pick(&["rollback", "degrade", "skip"])),
        9 => Step::new("escalate"),
        10 => Step::new(*dice.pick(&["abort", "not_registered"])),
        _ => {
            let own = Step::new(dice.pick(OWN).0);
            if dice.chance(30) { own.with("timeout_ms", dice.between(1, 5_000)) } else { own }
        }
    }
}
