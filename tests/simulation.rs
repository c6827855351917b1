//! What holds in every simulated world: the promises P1 to P6, and that a seed tells all.

use backstop::engine::simulator::{hush_scripted_panics, run_seed};

fn promises_hold_in(seeds: std::ops::Range<u64>) {
    hush_scripted_panics();
    let failing: Vec<String> =
        seeds.map(run_seed).filter(|trace| !trace.broken().is_empty()).map(|trace| trace.report()).collect();
    assert!(failing.is_empty(), "promises were broken; these lines show it again:\n{}", failing.concat());
}

#[test]
fn the_promises_hold_in_the_first_hundred_worlds() {
    promises_hold_in(0..100);
}

#[test]
fn the_promises_hold_in_the_second_hundred_worlds() {
    promises_hold_in(100..200);
}

#[test]
fn two_runs_of_one_seed_are_equal() {
    hush_scripted_panics();
    for seed in 0..20 {
        let (first, second) = (run_seed(seed), run_seed(seed));
        let differs = first.steps().iter().zip(second.steps()).find(|(one, other)| one != other);
        assert_eq!(first.digest(), second.digest(), "seed {seed} differs at {differs:?}");
    }
}

#[test]
fn another_seed_is_another_world() {
    hush_scripted_panics();
    assert_ne!(run_seed(1).digest(), run_seed(2).digest());
}
