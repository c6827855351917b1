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
pub use directive::{Action, Directive};
pub use embed::RecoveryMsg;
pub use events::{EngineEvent, EventStream};
pub use lane::{LanePermit, LanePressure, Refused};
pub use messages::{EpisodeStatus, SessionStatus};
pub use outcome::{EngineError, Outcome};
pub use runner::Runner;
pub use supervisor::RecoverySupervisor;
