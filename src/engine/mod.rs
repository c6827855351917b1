//! The engine: the handle that users hold, and its three loops.

mod builder;
mod closed_loop;
mod driver;
mod ended;
#[cfg(any(test, feature = "test-util"))]
mod failing;
#[cfg(feature = "simulate")]
pub mod fleet;
mod handle;
pub mod healing;
mod open_loop;
mod session;
mod shutdown;
#[cfg(feature = "test-util")]
pub mod simulator;
mod start;
mod supervisor;
mod to_report;

pub use builder::{DEFAULT_STATE_DIR, EngineBuilder};
pub use ended::{Done, Recovered, StopCause, Stopped};
#[cfg(any(test, feature = "test-util"))]
pub use failing::Target;
pub use handle::RecoveryEngine;
#[cfg(feature = "cli")]
pub(crate) use handle::add_patterns;
pub use session::SessionHandle;
pub use shutdown::Shutdown;
pub use start::StartError;
pub use supervisor::RecoverySupervisor;
pub use to_report::{ByFunction, ByTrait, Reporter, ToReport};
