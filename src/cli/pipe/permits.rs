use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::actors::LanePermit;

/// Permissions that the host holds, under the numbers that it knows them by.
#[derive(Default)]
pub(super) struct Permits {
    held: Mutex<(u64, HashMap<u64, LanePermit>)>,
}

impl Permits {
    /// Keeps a permission until it is released.
    pub fn keep(&self, permit: LanePermit) -> u64 {
        let mut held = self.lock();
        held.0 += 1;
        let number = held.0;
        held.1.insert(number, permit);
        number
    }

    /// Gives one back; tells whether there was one of this number.
    pub fn release(&self, number: u64) -> bool {
        self.lock().1.remove(&number).is_some()
    }

    fn lock(&self) -> MutexGuard<'_, (u64, HashMap<u64, LanePermit>)> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
