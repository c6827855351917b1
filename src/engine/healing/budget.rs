use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::actors::Shared;
use crate::engine::RecoveryEngine;
use crate::failure::Timestamp;
use crate::policy::budget::{Allowance, BudgetId, Ledger, Refusal, Spent};

/// A budget that loops and further budgets are put inside: what they spend is spent here too.
///
/// ```
/// # async fn example(engine: backstop::RecoveryEngine) {
/// use std::time::Duration;
/// use backstop::healing::Budget;
/// use backstop::policy::budget::Allowance;
///
/// let planner = Budget::of(&engine, "planner", Allowance::attempts(50).within(Duration::from_secs(3600)));
/// let helper = planner.inside("helper", Allowance::attempts(20));
/// assert!(helper.spend(Duration::from_secs(60)).is_ok());
/// # }
/// ```
pub struct Budget {
    shared: Arc<Shared>,
    ledger: Arc<Mutex<Ledger>>,
    id: BudgetId,
    /// Those around it stay open as long as it is.
    _around: Option<Arc<Budget>>,
}

impl Budget {
    /// A budget of its own.
    pub fn of(engine: &RecoveryEngine, name: impl Into<Arc<str>>, allowance: Allowance) -> Arc<Self> {
        let shared = Arc::clone(engine.shared());
        let spent = Spent { attempts: 0, since: shared.now() };
        Self::reopen(shared, None, name, allowance, spent)
    }

    /// A budget inside this one.
    pub fn inside(self: &Arc<Self>, name: impl Into<Arc<str>>, allowance: Allowance) -> Arc<Self> {
        let spent = Spent { attempts: 0, since: self.shared.now() };
        Self::reopen(Arc::clone(&self.shared), Some(self), name, allowance, spent)
    }

    pub(super) fn reopen(
        shared: Arc<Shared>,
        around: Option<&Arc<Self>>,
        name: impl Into<Arc<str>>,
        allowance: Allowance,
        spent: Spent,
    ) -> Arc<Self> {
        let ledger = around.map_or_else(Arc::default, |around| Arc::clone(&around.ledger));
        let id = held(&ledger).reopen(name, around.map(|around| around.id), allowance, spent);
        Arc::new(Self { shared, ledger, id, _around: around.cloned() })
    }

    /// Spends one attempt that needs this much time, here and in all budgets around, or nowhere.
    ///
    /// # Errors
    ///
    /// [`Refusal`] names the budget that has too little left.
    pub fn spend(&self, needs: Duration) -> Result<(), Refusal> {
        held(&self.ledger).spend(self.id, needs, self.shared.now())
    }

    /// Whether an attempt that needs this much time could begin.
    ///
    /// # Errors
    ///
    /// As [`spend`](Self::spend).
    pub fn check(&self, needs: Duration) -> Result<(), Refusal> {
        held(&self.ledger).check(self.id, needs, self.shared.now())
    }

    /// What was spent here, by everything inside too.
    pub fn spent(&self) -> Spent {
        let spent = held(&self.ledger).spent(self.id);
        spent.unwrap_or(Spent { attempts: 0, since: Timestamp::default() })
    }

    /// How long it is until the first of this budget and those around it ends.
    pub fn time_left(&self) -> Option<Duration> {
        held(&self.ledger).deadline(self.id).map(|end| self.shared.until(end))
    }
}

impl Drop for Budget {
    fn drop(&mut self) {
        held(&self.ledger).close(self.id);
    }
}

impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Budget").field("spent", &self.spent()).finish_non_exhaustive()
    }
}

fn held(ledger: &Mutex<Ledger>) -> MutexGuard<'_, Ledger> {
    ledger.lock().unwrap_or_else(PoisonError::into_inner)
}
