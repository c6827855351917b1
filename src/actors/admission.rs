use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts what outsiders have under way at one place, so that no mailbox grows without bound.
#[derive(Debug, Clone, Default)]
pub(crate) struct Gate {
    taken: Arc<AtomicUsize>,
}

/// One place among a session's requests, given back when dropped.
#[derive(Debug)]
pub struct Permit {
    taken: Arc<AtomicUsize>,
}

impl Gate {
    /// A permit, unless `limit` are taken.
    pub fn enter(&self, limit: usize) -> Option<Permit> {
        let below = |taken| (taken < limit).then_some(taken + 1);
        self.taken.fetch_update(Ordering::AcqRel, Ordering::Acquire, below).ok()?;
        Some(Permit { taken: Arc::clone(&self.taken) })
    }

    /// Whether nothing is under way.
    pub fn is_empty(&self) -> bool {
        self.taken.load(Ordering::Acquire) == 0
    }
}

impl Drop for Permit {
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
