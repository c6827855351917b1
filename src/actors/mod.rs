//! The actors: thin shells that carry decisions out.

mod admission;
mod clock;
mod conclude;
mod desk;
mod detector;
mod directive;
mod directory;
mod embed;
mod events;
mod give_up;
mod intake;
mod intensity;
mod lane;
mod lane_desk;
mod lane_line;
mod lanes;
mod messages;
mod metrics;
mod outage;
mod outcome;
mod perform;
mod persistence;
mod remembered;
mod resume;
mod runner;
mod session;
mod session_supervisor;
mod shared;
mod supervisor;
mod trace;
mod writer;

pub use admission::Permit;
pub use clock::{Clock, SystemClock, TokioClock};
pub(crate) use desk::{Incoming, ReplyTo, Wants};
pub use directive::{Action, Directive};
pub(crate) use directory::Room;
pub(crate) use embed::incoming;
pub use embed::{RecoveryMsg, RecoveryReply};
pub use events::{EngineEvent, EventStream};
pub use lane::{LanePermit, LanePressure, Refused};
pub(crate) use messages::{Adoption, DetectorMsg, MetricsMsg, PersistenceMsg, SessionMsg, ask};
pub use messages::{EpisodeStatus, SessionStatus};
pub(crate) use metrics::{Collected, collect, snapshot};
pub use outage::Outage;
pub(crate) use outcome::Told;
pub use outcome::{EngineError, Outcome};
pub(crate) use remembered::Stored;
pub use runner::Runner;
pub(crate) use runner::RunnerPool;
pub(crate) use shared::{ClientFactory, OnEscalate, Shared, SharedParts};
pub(crate) use supervisor::{Root, RootArgs};
#[cfg(feature = "test-util")]
pub(crate) use writer::Latency;
pub(crate) use writer::{Queue, Writer};
#[cfg(any(test, feature = "test-util"))]
pub(crate) use {lane::LaneMsg, session_supervisor::SupervisorMsg};
