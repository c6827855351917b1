//! Budgets of attempts and time, one inside the other; spending in an inner one is spending in all around it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::failure::Timestamp;

/// What may be spent; what is absent is bounded by the enclosing budgets alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Allowance {
    /// Attempts: executions of a step, first tries and redos alike.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// Wall time from the moment the budget is opened; a stop of the process does not stop it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<Duration>,
}

impl Allowance {
    /// No bound of its own.
    pub const NONE: Self = Self { attempts: None, time: None };

    /// This many attempts.
    pub const fn attempts(attempts: u32) -> Self {
        Self { attempts: Some(attempts), time: None }
    }

    /// This much wall time.
    pub const fn time(time: Duration) -> Self {
        Self { attempts: None, time: Some(time) }
    }

    /// The same with this much wall time.
    #[must_use]
    pub const fn within(mut self, time: Duration) -> Self {
        self.time = Some(time);
        self
    }
}

/// What was spent of one budget, as it is kept over a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    /// Attempts.
    pub attempts: u32,
    /// When the budget was opened.
    pub since: Timestamp,
}

/// A budget of a [`Ledger`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BudgetId(usize);

/// Why something may not begin; nothing was spent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// An enclosing budget has no attempt left.
    Attempts {
        /// The budget's name.
        budget: Arc<str>,
        /// All that it allows.
        allowed: u32,
    },
    /// What is left of an enclosing budget's time is less than the step needs.
    Time {
        /// The budget's name.
        budget: Arc<str>,
        /// What the step needs.
        needs: Duration,
        /// What is left.
        left: Duration,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Attempts { budget, allowed } => write!(f, "the {budget} budget of {allowed} attempts is spent"),
            Self::Time { budget, left, .. } if left.is_zero() => write!(f, "the {budget} budget's time is over"),
            Self::Time { budget, needs, left } => {
                write!(f, "the step needs {needs:?} and the {budget} budget has {left:?} left")
            }
        }
    }
}

#[derive(Debug, Clone)]
struct Entry {
    name: Arc<str>,
    parent: Option<BudgetId>,
    allowance: Allowance,
    spent: Spent,
}

/// Nested budgets: parent, session, episode, step, as deep as a host likes.
///
/// ```
/// use std::time::Duration;
/// use backstop::Timestamp;
/// use backstop::policy::budget::{Allowance, Ledger};
///
/// let now = Timestamp::from_millis(0);
/// let mut ledger = Ledger::default();
/// let parent = ledger.open("parent", None, Allowance::attempts(3), now);
/// let one = ledger.open("session", Some(parent), Allowance::attempts(2), now);
/// let other = ledger.open("session", Some(parent), Allowance::attempts(2), now);
/// assert!(ledger.spend(one, Duration::ZERO, now).is_ok());
/// assert!(ledger.spend(other, Duration::ZERO, now).is_ok());
/// assert!(ledger.spend(one, Duration::ZERO, now).is_ok());
/// assert_eq!(
///     ledger.spend(other, Duration::ZERO, now).unwrap_err().to_string(),
///     "the parent budget of 3 attempts is spent"
/// );
/// ```
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    entries: Vec<Option<Entry>>,
    /// Places of closed budgets.
    free: Vec<usize>,
}

impl Ledger {
    /// Opens a budget, inside another or of its own.
    pub fn open(
        &mut self,
        name: impl Into<Arc<str>>,
        parent: Option<BudgetId>,
        allowance: Allowance,
        now: Timestamp,
    ) -> BudgetId {
        self.reopen(name, parent, allowance, Spent { attempts: 0, since: now })
    }

    /// Opens a budget of which something was spent before a crash. Its parent keeps its own count.
    pub fn reopen(
        &mut self,
        name: impl Into<Arc<str>>,
        parent: Option<BudgetId>,
        allowance: Allowance,
        spent: Spent,
    ) -> BudgetId {
        let entry = Some(Entry { name: name.into(), parent, allowance, spent });
        match self.free.pop() {
            Some(place) => {
                self.entries[place] = entry;
                BudgetId(place)
            }
            None => {
                self.entries.push(entry);
                BudgetId(self.entries.len() - 1)
            }
        }
    }

    /// Closes a budget that has no open ones inside; what was spent stays spent around it.
    pub fn close(&mut self, id: BudgetId) {
        if let Some(place) = self.entries.get_mut(id.0)
            && place.take().is_some()
        {
            self.free.push(id.0);
        }
    }

    /// Spends one attempt that needs this much time, in the budget and in all around it, or in none.
    ///
    /// # Errors
    ///
    /// [`Refusal`] names the innermost budget that has too little left.
    pub fn spend(&mut self, id: BudgetId, needs: Duration, now: Timestamp) -> Result<(), Refusal> {
        self.check(id, needs, now)?;
        let mut next = Some(id);
        while let Some(entry) = next.and_then(|id| self.entries.get_mut(id.0)?.as_mut()) {
            entry.spent.attempts = entry.spent.attempts.saturating_add(1);
            next = entry.parent;
        }
        Ok(())
    }

    /// The same question without spending.
    ///
    /// # Errors
    ///
    /// As [`spend`](Self::spend).
    pub fn check(&self, id: BudgetId, needs: Duration, now: Timestamp) -> Result<(), Refusal> {
        for entry in self.around(id) {
            let budget = || Arc::clone(&entry.name);
            if let Some(allowed) = entry.allowance.attempts
                && entry.spent.attempts >= allowed
            {
                return Err(Refusal::Attempts { budget: budget(), allowed });
            }
            if let Some(time) = entry.allowance.time {
                let left = (entry.spent.since + time).since(now);
                if left.is_zero() || left < needs {
                    return Err(Refusal::Time { budget: budget(), needs, left });
                }
            }
        }
        Ok(())
    }

    /// When everything in this budget must be over: its own end or that of one around it, the earliest.
    pub fn deadline(&self, id: BudgetId) -> Option<Timestamp> {
        self.around(id).filter_map(|entry| Some(entry.spent.since + entry.allowance.time?)).min()
    }

    /// What was spent of a budget.
    pub fn spent(&self, id: BudgetId) -> Option<Spent> {
        self.around(id).next().map(|entry| entry.spent)
    }

    /// The budget and those around it, innermost first.
    fn around(&self, id: BudgetId) -> impl Iterator<Item = &Entry> {
        let at = |id: BudgetId| self.entries.get(id.0).and_then(Option::as_ref);
        std::iter::successors(at(id), move |entry| entry.parent.and_then(at))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn a_step_that_cannot_finish_in_what_is_left_is_refused_with_the_reason() {
        let mut ledger = Ledger::default();
        let session = ledger.open("session", None, Allowance::time(ms(1_000)), at(0));
        let step = ledger.open("step", Some(session), Allowance::attempts(9), at(500));
        assert_eq!(ledger.spend(step, ms(400), at(600)), Ok(()));
        let refusal = ledger.spend(step, ms(401), at(600)).unwrap_err();
        assert_eq!(refusal.to_string(), "the step needs 401ms and the session budget has 400ms left");
        assert_eq!(ledger.spent(step).unwrap().attempts, 1, "what is refused costs nothing");
        assert_eq!(
            ledger.spend(step, Duration::ZERO, at(1_000)).unwrap_err().to_string(),
            "the session budget's time is over"
        );
    }

    #[test]
    fn the_earliest_end_is_handed_down() {
        let mut ledger = Ledger::default();
        let parent = ledger.open("parent", None, Allowance::time(ms(100)), at(0));
        let child = ledger.open("session", Some(parent), Allowance::time(ms(900)), at(50));
        assert_eq!(ledger.deadline(child), Some(at(100)));
        assert_eq!(ledger.deadline(ledger.entries.len().checked_sub(2).map(BudgetId).unwrap()), Some(at(100)));
    }

    #[test]
    fn what_was_spent_before_a_crash_stays_spent() {
        let mut ledger = Ledger::default();
        let spent = Spent { attempts: 2, since: at(0) };
        let again = ledger.reopen("session", None, Allowance::attempts(3).within(ms(100)), spent);
        assert_eq!(ledger.deadline(again), Some(at(100)), "time went on meanwhile");
        assert!(ledger.spend(again, Duration::ZERO, at(10)).is_ok());
        assert!(ledger.spend(again, Duration::ZERO, at(10)).is_err());
    }

    #[test]
    fn a_closed_budgets_spending_counts_around_it() {
        let mut ledger = Ledger::default();
        let parent = ledger.open("parent", None, Allowance::attempts(3), at(0));
        for _ in 0..3 {
            let child = ledger.open("step", Some(parent), Allowance::attempts(1), at(0));
            ledger.spend(child, Duration::ZERO, at(0)).unwrap();
            ledger.close(child);
        }
        assert_eq!(ledger.entries.len(), 2, "its place is used again");
        let child = ledger.open("step", Some(parent), Allowance::NONE, at(0));
        assert!(matches!(ledger.spend(child, Duration::ZERO, at(0)), Err(Refusal::Attempts { allowed: 3, .. })));
    }

    /// One move of any of several concurrent workers.
    #[derive(Debug, Clone)]
    enum Move {
        Open { parent: usize, allowance: Allowance },
        Spend { budget: usize, needs: u64 },
        Pass { millis: u64 },
    }

    fn allowance() -> impl Strategy<Value = Allowance> {
        let some = |range| proptest::option::of(range);
        (some(0_u64..12), some(0_u64..400)).prop_map(|(attempts, time)| Allowance {
            attempts: attempts.map(|count| u32::try_from(count).unwrap()),
            time: time.map(ms),
        })
    }

    fn moves() -> impl Strategy<Value = Vec<Move>> {
        let one = prop_oneof![
            2 => (0_usize..64, allowance()).prop_map(|(parent, allowance)| Move::Open { parent, allowance }),
            6 => (0_usize..64, 0_u64..120).prop_map(|(budget, needs)| Move::Spend { budget, needs }),
            2 => (0_u64..60).prop_map(|millis| Move::Pass { millis }),
        ];
        proptest::collection::vec(one, 1..120)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        /// Whatever the order in which concurrent children spend, no budget around them is ever exceeded,
        /// and what was let through ends before the end of all around it.
        #[test]
        fn no_enclosing_budget_is_ever_exceeded(root in allowance(), moves in moves()) {
            let mut ledger = Ledger::default();
            let mut now = at(0);
            let mut known = vec![(ledger.open("0", None, root, now), None, root, now)];
            let mut spent = vec![0_u32];
            for one in moves {
                match one {
                    Move::Pass { millis } => now = now + ms(millis),
                    Move::Open { parent, allowance } => {
                        let parent = parent % known.len();
                        let id = ledger.open("n", Some(known[parent].0), allowance, now);
                        known.push((id, Some(parent), allowance, now));
                        spent.push(0);
                    }
                    Move::Spend { budget, needs } => {
                        let budget = budget % known.len();
                        let mut chain = vec![budget];
                        while let Some(parent) = known[chain[chain.len() - 1]].1 {
                            chain.push(parent);
                        }
                        let fits = chain.iter().all(|at| {
                            let (_, _, allowance, since) = known[*at];
                            let room = allowance.attempts.is_none_or(|most| spent[*at] < most);
                            let left = allowance.time.map(|time| (since + time).since(now));
                            room && left.is_none_or(|left| !left.is_zero() && ms(needs) <= left)
                        });
                        prop_assert_eq!(ledger.spend(known[budget].0, ms(needs), now).is_ok(), fits);
                        if fits {
                            chain.iter().for_each(|at| spent[*at] += 1);
                            let end = ledger.deadline(known[budget].0);
                            prop_assert!(end.is_none_or(|end| now + ms(needs) <= end));
                        }
                    }
                }
                for (at, (id, _, allowance, _)) in known.iter().enumerate() {
                    prop_assert_eq!(ledger.spent(*id).unwrap().attempts, spent[at]);
                    prop_assert!(allowance.attempts.is_none_or(|most| spent[at] <= most));
                }
            }
        }
    }
}
