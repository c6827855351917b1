//! What the self-healing loop promises.

#![allow(clippy::unwrap_used)]

mod spirals;
