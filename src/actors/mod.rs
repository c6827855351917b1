//! The actors: thin shells that carry decisions out.

mod admission;
mod clock;
mod desk;
mod detector;
mod directive;
mod embed;
mod events;
mod intensity;
mod lane;
mod messages;
mod metrics;
mod outcome;
mod perform;
mod persistence;
mod runner;
mod session;
mod session_supervisor;
mod shared;
mod supervisor;
mod writer;

pub use admission::Permit;
pub use clock::{Clock, SystemClock, TokioClock};
pub(crate) use desk::{Incoming, ReplyTo, Wants};
pub use directive::{Action, Directive};
pub use embed::RecoveryMsg;
pub(crate) use embed::incoming;
pub use events::{EngineEvent, EventStream};
pub(crate) use lane::LaneMsg;
pub use lane::{LanePermit, LanePressure, Refused};
pub(crate) use messages::{Adoption, DetectorMsg, MetricsMsg, PersistenceMsg, SessionMsg, ask};
pub use messages::{EpisodeStatus, SessionStatus};
pub(crate) use metrics::{Collected, collect, snapshot};
pub(crate) use outcome::Told;
pub use outcome::{EngineError, Outcome};
pub use runner::Runner;
pub(crate) use runner::RunnerPool;
pub(crate) use shared::{Shared, SharedParts, Stored};
pub(crate) use supervisor::{Root, RootArgs};
#[cfg(feature = "test-util")]
pub(crate) use writer::Latency;
pub(crate) use writer::Writer;
