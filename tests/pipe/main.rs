//! What `backstop pipe` promises to hosts in any language, shown with real processes.
#![cfg(all(unix, feature = "cli"))]
#![allow(clippy::unwrap_used)]

mod protocol;
mod scheduler;
mod support;
