//! What to do about a failure: configuration, the chain machine, back-off, budgets.
//!
//! Pure: values and functions, without clock, I/O, async or randomness.

mod answer;
mod backoff;
pub mod budget;
mod chain;
mod choice;
pub mod config;
mod forecast;
mod injection;
pub mod lane;
mod limits;
pub mod machine;
mod record;
pub mod seed;
pub mod session;
pub mod spiral;
mod turn;
mod verdict;

pub use answer::{Answer, Remedy};
pub use backoff::Backoff;
pub use chain::{Chain, ChainKey, Layer, Origin, Step, StepConfig, UnknownChain};
pub use choice::{Because, Choice, runnable};
pub use config::{Durability, RecoveryConfig};
pub use forecast::{Forecast, ForecastAttempt, ForecastChain, ForecastStep, Luck, Span};
pub use injection::Injection;
pub use limits::Limits;
pub use record::RecoveryAttempt;
pub use turn::Turn;
pub use verdict::{Cause, Proof, Unhandled, Verdict};
