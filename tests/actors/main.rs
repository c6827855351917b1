//! What the actors and the engine promise, through the public API.

#![allow(clippy::unwrap_used)]

mod durability;
mod embedded;
mod engines;
mod failing;
mod fixture;
mod hosts;
mod intake;
mod journal;
mod lanes;
mod passivation;
mod reload;
mod shutdown;
mod strategies;
