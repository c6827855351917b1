//! What holds on every path: random plans, answers, events (late and stale ones too), times and crashes.

use std::time::Duration;

use proptest::prelude::*;

use super::super::Redoer;
use super::super::fixture::{chain, plan_of};
use super::walk::{FAIR_STEPS, Setup, Walk};
use crate::failure::Category;
use crate::policy::{Chain, ChainKey, Layer, Limits, Origin};

fn chains() -> impl Strategy<Value = Vec<Chain>> {
    let names = prop::sample::select(vec!["own", "other", "retry", "compact", "skip", "abort", "escalate"]);
    let written = (prop::collection::vec(names, 1..5), any::<bool>()).prop_map(|(steps, users)| {
        let origin = if users { Origin { layer: Layer::File, place: None } } else { Origin::BUILT_IN };
        Chain { origin, ..chain(Category::SessionError, &steps) }
    });
    prop::collection::vec(written, 3).prop_map(|chains| {
        let keys = [Category::SessionError, Category::ContextWindow, Category::EditError].map(ChainKey::Category);
        chains.into_iter().zip(keys).map(|(chain, key)| Chain { key, ..chain }).collect()
    })
}

fn span() -> impl Strategy<Value = Duration> {
    prop_oneof![
        Just(Duration::ZERO),
        Just(Duration::from_nanos(1)),
        (0_u64..100).prop_map(Duration::from_secs),
        Just(Duration::from_secs(u64::MAX)),
        Just(Duration::MAX),
    ]
}

fn setup() -> impl Strategy<Value = Setup> {
    let redoers = prop::sample::select(vec![Redoer::Nobody, Redoer::Caller, Redoer::Client, Redoer::Host]);
    let starts = prop::sample::select(vec![0, 1_000_000, u64::MAX - 5_000, u64::MAX]);
    (chains(), 0_u32..12, span(), span(), prop::option::of(span()), redoers, starts, any::<bool>(), any::<u64>())
        .prop_map(|(chains, max_total_attempts, max_wait, max_park, deadline, redoer, start, extreme, seed)| {
            let limits = Limits { max_total_attempts, max_wait, max_park, ..Limits::default() };
            Setup { plan: plan_of(chains, limits), redoer, start, deadline, extreme, seed }
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_path_keeps_its_bounds_and_ends(setup in setup(), script in prop::collection::vec(any::<u8>(), 0..120)) {
        let walk = Walk::run(&setup, &script, false);
        prop_assert!(walk.verdict.is_some(), "it did not end in {FAIR_STEPS} fair steps: {:?}", walk.memory);
    }

    #[test]
    fn every_path_with_crashes_keeps_its_bounds_and_ends(
        setup in setup(),
        script in prop::collection::vec(any::<u8>(), 0..120),
    ) {
        let walk = Walk::run(&setup, &script, true);
        prop_assert!(walk.verdict.is_some(), "it did not end in {FAIR_STEPS} fair steps: {:?}", walk.memory);
    }

    #[test]
    fn equal_events_times_and_seeds_give_equal_commands(
        setup in setup(),
        script in prop::collection::vec(any::<u8>(), 0..60),
    ) {
        let (one, two) = (Walk::run(&setup, &script, true), Walk::run(&setup, &script, true));
        prop_assert_eq!(one.trace, two.trace);
        prop_assert_eq!(one.memory, two.memory);
    }
}
