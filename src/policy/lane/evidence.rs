use crate::failure::{Kind, RecoveryError};

/// Whom a failure speaks about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Blame {
    /// The session alone: its key, its transcript, its tools. Never evidence against the lane.
    Session,
    /// The provider, or the way to it.
    Lane,
    /// The provider, because too much is asked of it: also a reason to ask for less.
    Throttle,
}

impl Blame {
    /// Whom this failure speaks about.
    ///
    /// Only kinds that every user of a provider sees together count against it; a tool's failure speaks
    /// about the tool, whatever its kind.
    pub fn of(error: &RecoveryError) -> Self {
        if error.tool.is_some() { Self::Session } else { Self::of_kind(&error.kind) }
    }

    /// The same for a kind alone.
    pub fn of_kind(kind: &Kind) -> Self {
        match kind {
            Kind::RateLimit | Kind::Overloaded => Self::Throttle,
            Kind::Timeout | Kind::Network | Kind::ServerError | Kind::ServiceUnavailable | Kind::StreamInterrupted => {
                Self::Lane
            }
            _ => Self::Session,
        }
    }
}

/// How a call ended, as evidence about its lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CallEnd {
    /// It worked.
    Worked,
    /// It failed.
    Failed(Blame),
    /// It ended, and whoever made it says no more.
    Silent,
}
