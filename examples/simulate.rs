//! Runs simulated worlds from their seeds and says which promises were broken in them.
//!
//! ```sh
//! cargo run --example simulate --features test-util -- --seed 7            # one world, with its trace
//! cargo run --example simulate --features test-util -- --seed 0 --seeds 1000
//! ```

use std::process::ExitCode;

use backstop::engine::simulator::{hush_scripted_panics, run_seed};

fn main() -> ExitCode {
    let Some((seed, seeds)) = arguments() else {
        eprintln!("usage: simulate --seed N [--seeds K]");
        return ExitCode::from(2);
    };
    hush_scripted_panics();
    let mut failing = 0_u64;
    for seed in (seed..).take(usize::try_from(seeds).unwrap_or(usize::MAX)) {
        let trace = run_seed(seed);
        if seeds == 1 {
            trace.steps().iter().for_each(|step| println!("{step}"));
            println!("digest {:016x}", trace.digest());
        }
        if !trace.broken().is_empty() {
            failing += 1;
            print!("{}", trace.report());
        }
    }
    println!("{seeds} worlds, {failing} with broken promises");
    if failing == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn arguments() -> Option<(u64, u64)> {
    let (mut seed, mut seeds) = (None, 1);
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next()?.parse().ok()?;
        match name.as_str() {
            "--seed" => seed = Some(value),
            "--seeds" => seeds = value,
            _ => return None,
        }
    }
    Some((seed?, seeds))
}
