//! What becomes of a session whose actor fails again and again; its neighbours go on.

use std::sync::Arc;

use super::desk::{Desk, Running};
use super::events::EngineEvent;
use super::messages::{MetricsMsg, PersistenceMsg, SessionMsg, ask};
use super::outcome::{Outcome, Told};
use super::remembered::Stored;
use super::shared::Shared;
use crate::failure::SessionId;
use crate::policy::machine::Event;
use crate::policy::{Durability, Verdict};

const REASON: &str = "the session's actor failed too often";

/// Ends the session's episode for a person to look at, and answers everybody who waits. What is still
/// in its mail is for another actor, behind another desk.
pub(super) fn give_up(shared: &Arc<Shared>, id: &SessionId, desk: &Desk) {
    tracing::error!(session = %id, "{REASON}: its episode is escalated");
    let (running, waiters, queue, resets) = {
        let mut desk = desk.lock();
        let queue = std::mem::take(&mut desk.queue);
        (desk.running.take(), std::mem::take(&mut desk.waiters), queue, std::mem::take(&mut desk.resets))
    };
    let mail = desk.take_mail();
    let detected = running.as_ref().and_then(|running| running.uncounted.clone());
    let durability =
        running.as_ref().map_or_else(|| shared.config().durability(), |running| running.plan.config.durability());
    let outcome = Arc::new(ended(shared, id, running));
    let (shared, id) = (Arc::clone(shared), id.clone());
    shared.runtime.clone().spawn(async move {
        if durability == Durability::Ahead {
            // The verdict is durable before it is told, or the disk fails and memory counts.
            let _ = ask(&shared, Shared::persistence, |done| PersistenceMsg::Flush { done }).await;
        }
        if let Some(metrics) = shared.metrics().filter(|_| shared.config().collect_metrics()) {
            let _ = metrics.send_message(MetricsMsg::Ended { detected, outcome: Arc::clone(&outcome) });
        }
        shared.events.publish(EngineEvent::Ended(Arc::clone(&outcome)));
        if matches!(outcome.verdict, Verdict::Escalated { .. }) {
            shared.escalated(&outcome);
        }
        let told = Told::Stop(outcome);
        for waiter in waiters {
            let _ = waiter.reply.send(Ok(told.clone()));
        }
        for done in resets {
            let _ = done.send(());
        }
        let waiting = queue.into_iter().map(|incoming| SessionMsg::Report(Box::new(incoming)));
        for message in mail.into_iter().filter(SessionMsg::is_request).chain(waiting) {
            // An error is the engine's end, which the dropped reply tells.
            let _ = shared.send(&id, message);
        }
    });
}

/// How the episode ends: as it had ended already, or escalated.
fn ended(shared: &Arc<Shared>, id: &SessionId, running: Option<Running>) -> Outcome {
    let now = shared.now();
    let stored = shared.stored.get(id).map(|stored| stored.clone());
    let memory = stored.as_ref().and_then(|stored| stored.memory.value().ok());
    let mut outcome = Outcome::without_episode(id.clone(), Verdict::Escalated { reason: REASON.into() }, None, now);
    let Some(mut running) = running else { return outcome };
    if let Some(closing) = running.closing.take() {
        return *closing;
    }
    outcome.error = running.opening.as_ref().map(|began| Arc::clone(&began.error));
    outcome.notes = std::mem::take(&mut running.notes);
    if let (Some(mut memory), Some(stored)) = (memory, stored) {
        memory.on(Event::GivenUp { reason: REASON.into() }, &running.plan, now);
        if let Some(mut episode) = memory.close() {
            let last = episode.take_notes();
            shared.journal.decided(id, episode.id(), &last);
            outcome.notes.extend(last);
            outcome = Outcome::of(&episode, outcome.verdict, outcome.notes, running.durable, now);
            let stored = Stored::of(&memory, shared.config().limits(), stored.revision + 1, now);
            shared.store(id, stored, None, running.plan.config.durability());
        }
    }
    outcome
}
