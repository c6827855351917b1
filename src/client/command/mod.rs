//! A command as an agent: run it once, judge how it ended, report what failed.
//!
//! [`run`] starts one [`ChildSpec`] and returns a [`ChildOutcome`]; [`judge`] turns that outcome,
//! with the [`FailureRules`] of the options and of a [`Preset`], into a [`Judgement`]. [`Invocation`]
//! fills placeholders and `BACKSTOP_*` variables, [`HookClient`] offers users' hooks as a
//! [`SessionClient`](crate::SessionClient).

mod child;
mod control;
mod ending;
mod group;
mod guard;
mod hook;
mod hook_client;
mod invocation;
mod json;
mod judge;
mod leftovers;
mod outcome;
mod placeholders;
mod preset;
mod pump;
mod rules;
mod signals;
mod spec;
mod start_error;
mod tail;

pub use child::run;
pub use control::{Asked, Control, Watch};
pub(crate) use guard::{VERB as CHILD_VERB, become_command};
pub use hook::{Hook, HookError};
pub use hook_client::HookClient;
pub use invocation::Invocation;
pub use json::{InvalidPointer, JsonPointer};
pub use judge::{Judgement, judge};
pub use leftovers::end_leftovers;
pub use outcome::{Captured, ChildOutcome, EndedBy, Exit};
pub use placeholders::{Placeholder, uses};
pub use preset::{ArgumentGroup, Preset, PresetError};
pub use rules::{ExitMeaning, FactPointers, FailureRules, KindHint, Match, ResultRules};
pub use signals::listen;
pub use spec::{ChildSpec, Limits, Output, Outputs, Stdin};
pub use start_error::StartError;
