//! A fleet of sessions against one modelled provider, on virtual time: the real actors, machine and lanes,
//! and baselines beside them, so that a policy can be judged before a provider judges it.
//!
//! A [`Scenario`] says who works when, what the provider can take and what goes wrong. [`simulate`] lets it
//! happen under a [`Policy`] and returns what was [`Measured`]. Everything comes from the seed: the same
//! scenario, policy and seed give the same trace.
//!
//! ```
//! use backstop::engine::fleet::{Policy, Scenario, simulate};
//!
//! let scenario = Scenario::parse("tiny.yaml", "
//! name: tiny
//! sessions: 3
//! duration: 2m
//! pause: 10s
//! provider: {latency: 2s}
//! faults: [{outage: {at: 30s, lasts: 20s}}]
//! ")?;
//! let seen = simulate(&scenario, &Policy::engine("backstop", scenario.policy.clone()), 7);
//! assert!(seen.table().worked > 0);
//! # Ok::<(), backstop::engine::fleet::ScenarioError>(())
//! ```

mod baseline;
mod draws;
mod duration;
mod measure;
mod plot;
mod policy;
mod provider;
mod run;
mod scenario;
mod session;
mod shipped;

pub use measure::{Measured, Table};
pub use plot::plot;
pub use policy::Policy;
pub use run::simulate;
pub use scenario::{Fault, Provider, Scenario, ScenarioError};
pub use shipped::{SHIPPED, shipped};
