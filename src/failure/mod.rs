//! What went wrong: the vocabulary of failures and their detection.
//!
//! Pure: values and functions, without clock, I/O, async or randomness.

mod classifier;
mod classify;
mod command;
mod convert;
mod details;
mod envelope;
mod error;
mod evidence;
mod explain;
mod facts;
mod fence;
mod fingerprint;
mod found;
mod frames;
mod gate;
mod gate_marks;
mod http_date;
mod json_text;
mod kind;
mod knowledge;
mod label;
mod lane;
mod lexicon;
mod machine_words;
mod marks;
#[cfg(feature = "test-util")]
#[doc(hidden)]
pub mod measure;
mod named_facts;
mod need;
#[cfg(any(test, feature = "test-util"))]
mod one_by_one;
mod pattern;
mod redaction;
mod registry;
mod reply;
mod report;
mod repr;
mod rule;
mod search;
mod secret_shapes;
mod session;
mod tables;
mod text;
mod timestamp;
mod token_counts;
mod typed;
mod varying;
mod waits;
mod walk;

pub use classifier::{ClassifiedError, ErrorClassifier};
pub use classify::{ClassifyAnswer, classify};
pub use error::{Details, RecoveryError, TokenCounts};
pub use evidence::DEFAULT_CAP;
pub use explain::{Detection, Explanation, RunnerUp};
pub(crate) use facts::facts_of;
pub use fence::fence;
pub use kind::Kind;
pub use label::{Category, Domain, ErrorSeverity, RecoveryAction};
pub use lane::LaneKey;
pub use pattern::{ErrorPattern, PatternError};
pub use redaction::mask;
pub use registry::{MAX_MESSAGE, PatternRegistry};
pub use report::{Report, Source};
pub use session::{EmptySessionId, SessionId};
pub(crate) use text::is_hidden;
pub use timestamp::Timestamp;
