//! How to recover: the strategy and client traits, the registry, and the built-in strategies.
//!
//! A strategy decides; what it decides is carried out elsewhere: a [remedy](crate::Remedy) goes to the
//! session's [`SessionClient`], to the host, or rides on the next [`Turn`](crate::Turn). The
//! [built-in strategies](built_in) with their settings and defaults:
//!
//! | strategy | settings | answers |
//! | --- | --- | --- |
//! | [`retry`](built_in::retry) | `max_retries` 2, `backoff_ms` 2000, `backoff_factor` 2, | `retry` up to its number, |
//! | | `max_backoff_ms` 30 000, `jitter` true | then `next_strategy` |
//! | [`remind_and_retry`](built_in::remind_and_retry) | `max_retries` 2, `reminder_text` | the same, with a text |
//! | [`truncate`](built_in::truncate) | `max_truncations` 8, `target_ratio` 0.5, | the same, with a cut, |
//! | | `min_output_size` 500 | as long as that helps |
//! | [`compact`](built_in::compact) | `preserve` | `success` with a compaction |
//! | [`summarize`](built_in::summarize) | `model` | `success` with a summary, once |
//! | [`fallback_model`](built_in::fallback_model) | `model`, `models` | `retry` per model, the last `success` |
//! | [`rollback`](built_in::rollback) | `checkpoint` | `success` with a rollback |
//! | [`degrade`](built_in::degrade) | – | `success` with the host's alternative |
//! | [`skip`](built_in::skip) | – | `success` without the sub-task |
//! | [`escalate`](built_in::escalate) | `message` | `escalate` |
//! | [`abort`](built_in::abort) | `message` | `abort` |
//!
//! Strategies of the host's own enter by [`StrategyRegistry`], as a [`RecoveryStrategy`] or as an async
//! closure.

mod attempt;
pub mod built_in;
mod carry;
#[cfg(test)]
mod chain_vectors;
mod client;
mod delivery;
mod forecast;
mod func;
mod registry;
mod settings;
#[cfg(test)]
mod testing;
mod traits;
#[cfg(test)]
mod vectors;

pub use attempt::{Attempt, AttemptParts, EarlierAttempt};
pub(crate) use carry::carry;
pub use client::{ClientCall, ClientError, Prompt, SessionClient};
pub(crate) use delivery::{Delivery, delivery};
pub use forecast::forecast;
pub use func::FnStrategy;
pub(crate) use registry::Strategy;
pub use registry::{StrategyRegistry, UnnamedStrategy};
pub(crate) use traits::Decide;
pub use traits::{Execution, RecoveryStrategy};
