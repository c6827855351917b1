//! What went wrong: the vocabulary of failures and their detection.
//!
//! Pure: values and functions, without clock, I/O, async or randomness.

mod classify;
mod command;
mod convert;
mod details;
mod error;
mod evidence;
mod explain;
mod facts;
mod fingerprint;
mod gate;
mod json_text;
mod kind;
mod knowledge;
mod label;
mod lane;
mod lexicon;
#[cfg(feature = "test-util")]
#[doc(hidden)]
pub mod measure;
mod need;
#[cfg(any(test, feature = "test-util"))]
mod one_by_one;
mod pattern;
mod redaction;
mod registry;
mod reply;
mod report;
mod rule;
mod search;
mod session;
mod tables;
mod text;
mod timestamp;
mod varying;
mod walk;

pub use classify::{ClassifyAnswer, classify};
pub use error::{Details, RecoveryError, TokenCounts};
pub use evidence::DEFAULT_CAP;
pub use explain::{Detection, Explanation, RunnerUp};
pub use kind::Kind;
pub use label::{Category, Domain, ErrorSeverity, RecoveryAction};
pub use lane::LaneKey;
pub use pattern::{ErrorPattern, PatternError};
pub use redaction::{fence, mask};
pub use registry::{MAX_MESSAGE, PatternRegistry};
pub use report::{Report, Source};
pub use session::{EmptySessionId, SessionId};
pub use timestamp::Timestamp;
