//! What the self-healing loop promises.

#![allow(clippy::unwrap_used)]

mod budgets;
mod crash;
mod fixture;
mod iterations;
mod remedies;
mod seeds;
mod spirals;
