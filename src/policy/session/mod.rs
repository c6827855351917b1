//! What a session remembers between failures, and how a new report meets it (R7, R8, R11, R16).

mod compact;
mod history;
mod intake;
mod memory;
#[cfg(test)]
mod tests;

pub use compact::Compact;
pub use history::{History, Strikes};
pub use intake::{Intake, ReportKey};
pub use memory::{KeptVerdict, Refusal, SessionMemory};
