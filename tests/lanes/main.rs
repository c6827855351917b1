//! Lanes among many sessions: a provider fails, and they behave as one.

#![allow(clippy::unwrap_used)]

mod fairness;
mod killing;
mod outage;
mod parking;
mod provider;
