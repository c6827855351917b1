//! What `backstop exec` promises, shown with real processes.
#![cfg(all(unix, feature = "cli"))]
#![allow(clippy::unwrap_used)]

mod endings;
mod inputs;
mod killed;
mod recovery;
mod resume;
mod sharing;
mod signals;
mod support;
