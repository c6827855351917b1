use std::sync::Arc;

use super::facts::Facts;
use super::{Category, Kind};

/// What matched, before it becomes an error.
pub(super) struct Match {
    pub(super) name: Arc<str>,
    pub(super) category: Category,
    pub(super) kind: Kind,
    pub(super) facts: Facts,
    pub(super) at: Option<usize>,
    pub(super) rank: Rank,
}

/// The place in the order of evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rank {
    Own(i32),
    BuiltIn(u16),
    NoPattern,
}

impl std::fmt::Display for Rank {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Own(priority) => write!(f, "own pattern, priority {priority}"),
            Self::BuiltIn(rank) => write!(f, "built in, rank {rank}"),
            Self::NoPattern => f.write_str("no pattern"),
        }
    }
}
