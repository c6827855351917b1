use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts what outsiders have under way at one place, so that no mailbox grows without bound.
#[derive(Debug, Clone, Default)]
pub(crate) struct Gate {
    taken: Arc<AtomicUsize>,
}

/// One place behind a [`Gate`], given back when dropped.
#[derive(Debug)]
pub(crate) struct Place {
    taken: Arc<AtomicUsize>,
}

/// Room for one request at a session, given back when dropped.
#[derive(Debug)]
pub struct Permit {
    _session: Place,
    root: Option<Place>,
}

impl Gate {
    /// A place, unless `limit` are taken.
    pub fn enter(&self, limit: usize) -> Option<Place> {
        let below = |taken| (taken < limit).then_some(taken + 1);
        self.taken.fetch_update(Ordering::AcqRel, Ordering::Acquire, below).ok()?;
        Some(Place { taken: Arc::clone(&self.taken) })
    }

    /// Whether nothing is under way.
    pub fn is_empty(&self) -> bool {
        self.taken.load(Ordering::Acquire) == 0
    }
}

impl Permit {
    pub(crate) fn new(session: Place) -> Self {
        Self { _session: session, root: None }
    }

    /// Takes a place in the root's mailbox besides, until the root has read the message.
    pub(crate) fn by_way_of_root(self, root: Place) -> Self {
        Self { root: Some(root), ..self }
    }

    /// The root has read the message.
    pub(crate) fn leave_root(&mut self) {
        self.root = None;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.taken.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_gate_lets_nobody_in_until_somebody_leaves() {
        let gate = Gate::default();
        let first = gate.enter(1).expect("an empty gate has room");
        assert!(gate.enter(1).is_none());
        drop(first);
        assert!(gate.is_empty());
        assert!(gate.enter(1).is_some());
    }
}
