//! The engine: the handle that users hold, and its three loops.

mod builder;
mod closed_loop;
mod driver;
mod ended;
mod handle;
mod open_loop;
mod session;
#[cfg(feature = "test-util")]
pub mod simulator;
mod start;
mod to_report;

pub use builder::{DEFAULT_STATE_DIR, EngineBuilder};
pub use ended::{Done, Recovered, StopCause, Stopped};
pub(crate) use handle::add_patterns;
pub use handle::{RecoveryEngine, Shutdown};
pub use session::SessionHandle;
pub use start::StartError;
pub use to_report::{ByFunction, ByTrait, Reporter, ToReport};
