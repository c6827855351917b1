//! What went wrong: the vocabulary of failures and their detection.
//!
//! Pure: values and functions, without clock, I/O, async or randomness.

mod kind;
mod label;
mod lane;
mod report;
mod session;
mod timestamp;

pub use kind::Kind;
pub use label::{Category, Domain, ErrorSeverity, RecoveryAction};
pub use lane::LaneKey;
pub use report::{Report, Source};
pub use session::{EmptySessionId, SessionId};
pub use timestamp::Timestamp;

mod error;
pub use error::{Details, RecoveryError, TokenCounts};
