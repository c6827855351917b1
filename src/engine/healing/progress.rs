use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::report::{LeftOut, RecoverySummary};
use crate::failure::{Domain, Kind, RecoveryError};
use crate::policy::budget::Spent;
use crate::policy::spiral::{Spiral, SpiralWatch};

/// What a loop remembers beside the host's state. It is durable before every try, so that no crash refills
/// an iteration, a cap or a budget.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Progress {
    pub begun: u32,
    pub completed: u32,
    pub degrades: u32,
    pub skips: u32,
    pub spent: Spent,
    pub watch: SpiralWatch,
    pub by_domain: BTreeMap<Domain, u32>,
    pub by_kind: BTreeMap<Kind, u32>,
    pub recoveries: RecoverySummary,
    pub skipped: Vec<LeftOut>,
    pub degraded: Vec<LeftOut>,
    pub spirals: Vec<Spiral>,
}

/// Kinds of a host's own that are counted apart.
const KINDS: usize = 256;
/// Spirals that are remembered.
const SPIRALS: usize = 64;

impl Progress {
    pub fn new(spent: Spent) -> Self {
        Self {
            begun: 0,
            completed: 0,
            degrades: 0,
            skips: 0,
            spent,
            watch: SpiralWatch::default(),
            by_domain: BTreeMap::new(),
            by_kind: BTreeMap::new(),
            recoveries: RecoverySummary::default(),
            skipped: vec![],
            degraded: vec![],
            spirals: vec![],
        }
    }

    pub fn count(&mut self, error: &RecoveryError) {
        *self.by_domain.entry(error.domain).or_default() += 1;
        let is_known = self.by_kind.contains_key(&error.kind) || self.by_kind.len() < KINDS;
        let kind = if is_known { error.kind.clone() } else { Kind::Other };
        *self.by_kind.entry(kind).or_default() += 1;
    }

    pub fn saw(&mut self, spiral: &Spiral) {
        if self.spirals.len() == SPIRALS {
            self.spirals.remove(0);
        }
        self.spirals.push(spiral.clone());
    }
}
