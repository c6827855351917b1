//! A whole engine in a simulated world: real actors on paused time, scripted hosts, clients,
//! strategies and disk, faults in between, everything from one seed.
//!
//! A model outside the engine watches what can be seen at its edge and checks what it promises:
//!
//! - P1 an attempt that was acknowledged is never lost and never made twice;
//! - P2 every stored record can be read;
//! - P3 executions per episode, episodes per window and strikes are bounded, over restarts;
//! - P4 everybody gets an answer, whatever strategies, clients and other sessions do;
//! - P5 no planted secret is stored or handed out;
//! - P6 a shutdown ends within its limit, with P1 kept.
//!
//! ```
//! use backstop::engine::simulator::run_seed;
//!
//! let trace = run_seed(7);
//! assert!(trace.broken().is_empty(), "{}", trace.report());
//! ```

mod agent;
mod callers;
mod chaos;
mod client_loop;
mod closed_loop;
mod configs;
mod dice;
mod disk;
mod failures;
mod faults;
mod life;
mod model;
mod open_loop;
mod scenario;
mod strategies;
mod trace;
mod watch;
mod widest;
mod world;

pub use life::run_seed;
pub use trace::Trace;

/// What a strategy or client that panics on purpose says.
const SCRIPTED_PANIC: &str = "scripted panic";

/// Keeps panics that happen on purpose off the error output; all others are shown as before.
pub fn hush_scripted_panics() {
    let shown = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let said = panic.payload().downcast_ref::<String>().map(String::as_str);
        let said = said.or_else(|| panic.payload().downcast_ref::<&str>().copied());
        if !said.is_some_and(|said| [SCRIPTED_PANIC, "asked to panic"].contains(&said)) {
            shown(panic);
        }
    }));
}
