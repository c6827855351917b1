use std::collections::BTreeSet;

use serde::Serialize;

use crate::failure::{SessionId, Timestamp};

/// A time in which records did not reach the disk, and whose they were (R10).
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let engine = backstop::RecoveryEngine::builder().in_memory().spawn().await?;
/// assert!(engine.last_outage().is_none(), "everything reached its place so far");
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Outage {
    /// When the first record was refused.
    pub since: Timestamp,
    /// When everything refused had reached the disk after all; `None` while it lasts.
    pub until: Option<Timestamp>,
    /// Sessions whose newest record is in memory only, now: a crash would lose it.
    pub not_durable: BTreeSet<SessionId>,
    /// Sessions that were so at some time of the outage, those of now included; the first ten thousand.
    pub sessions: BTreeSet<SessionId>,
    /// How many more there may have been.
    pub more: u64,
}

/// Sessions named of one outage: more would be a list that nobody reads.
const NAMED: usize = 10_000;

impl Outage {
    /// A record was refused: a new outage, unless one lasts.
    pub(crate) fn refuse(outage: &mut Option<Self>, session: &SessionId, now: Timestamp) {
        let lasting = outage.take_if(|outage| outage.until.is_none());
        let begun =
            || Self { since: now, until: None, not_durable: BTreeSet::new(), sessions: BTreeSet::new(), more: 0 };
        let outage = outage.insert(lasting.unwrap_or_else(begun));
        if outage.not_durable.insert(session.clone()) && !outage.sessions.contains(session) {
            if outage.sessions.len() < NAMED {
                outage.sessions.insert(session.clone());
            } else {
                outage.more += 1;
            }
        }
    }

    /// The session's newest record reached the disk.
    pub(crate) fn written(outage: &mut Option<Self>, session: &SessionId, now: Timestamp) {
        let Some(outage) = outage.as_mut().filter(|outage| outage.until.is_none()) else { return };
        outage.not_durable.remove(session);
        if outage.not_durable.is_empty() {
            outage.until = Some(now);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_names_its_sessions_and_ends_with_the_last_of_them() {
        let (at, id) = (Timestamp::from_millis, |name: &str| SessionId::new(name).unwrap());
        let mut outage = None;
        Outage::written(&mut outage, &id("a"), at(1));
        assert_eq!(outage, None);
        for (name, time) in [("a", 2), ("b", 3), ("a", 4)] {
            Outage::refuse(&mut outage, &id(name), at(time));
        }
        Outage::written(&mut outage, &id("a"), at(5));
        let now = outage.clone().unwrap();
        assert_eq!((now.since, now.until), (at(2), None));
        assert_eq!((now.not_durable, now.sessions.len()), ([id("b")].into(), 2));
        Outage::written(&mut outage, &id("b"), at(6));
        assert_eq!(outage.clone().unwrap().until, Some(at(6)));
        Outage::refuse(&mut outage, &id("c"), at(7));
        let next = outage.unwrap();
        assert_eq!((next.since, next.sessions), (at(7), [id("c")].into()));
    }

    #[test]
    fn of_many_sessions_ten_thousand_are_named_and_the_rest_counted() {
        let mut outage = None;
        for n in 0..NAMED + 5 {
            Outage::refuse(&mut outage, &SessionId::new(format!("s{n}")).unwrap(), Timestamp::default());
        }
        let outage = outage.unwrap();
        assert_eq!((outage.sessions.len(), outage.more, outage.not_durable.len()), (NAMED, 5, NAMED + 5));
    }
}
