//! Watches the sessions' actors: one that panics comes back with its state, within its intensity.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use ractor::{Actor, ActorCell, ActorProcessingErr, ActorRef, SupervisionEvent};

use super::desk::Desk;
use super::intensity::Intensity;
use super::outcome::{Outcome, Told};
use super::shared::{SessionEntry, Shared, Stored};
use crate::failure::SessionId;
use crate::policy::Verdict;
use crate::policy::machine::Event;
use crate::policy::session::SessionMemory;

pub(crate) struct SessionSupervisor;

pub(crate) struct SupervisorState {
    shared: Arc<Shared>,
    /// Only sessions that failed lately.
    failures: HashMap<SessionId, Intensity>,
    /// Oldest first, so that the map stays small.
    order: VecDeque<SessionId>,
}

/// Sessions whose failures are remembered.
const REMEMBERED: usize = 10_000;

impl Actor for SessionSupervisor {
    type Msg = ();
    type State = SupervisorState;
    type Arguments = Arc<Shared>;

    async fn pre_start(&self, me: ActorRef<()>, shared: Arc<Shared>) -> Result<SupervisorState, ActorProcessingErr> {
        shared.set_sessions(me.get_cell());
        let state = SupervisorState { shared, failures: HashMap::new(), order: VecDeque::new() };
        // A supervisor takes its children with it: those of the one before are brought back.
        for (id, entry) in state.shared.live() {
            state.bring_back(id, entry.desk);
        }
        Ok(state)
    }

    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<()>,
        event: SupervisionEvent,
        state: &mut SupervisorState,
    ) -> Result<(), ActorProcessingErr> {
        match event {
            SupervisionEvent::ActorFailed(cell, error) => state.failed(&cell, &error.to_string()),
            SupervisionEvent::ActorTerminated(cell, _, _) => state.ended(&cell),
            _ => {}
        }
        Ok(())
    }
}

impl SupervisorState {
    fn failed(&mut self, cell: &ActorCell, error: &str) {
        let Some((id, desk)) = self.shared.session_of(cell) else { return };
        tracing::error!(session = %id, error, "a session's actor failed");
        if self.may_restart(&id) {
            self.bring_back(id, desk);
        } else {
            self.give_up(id, &desk);
        }
    }

    /// An actor that was killed is not put away by itself.
    fn ended(&mut self, cell: &ActorCell) {
        if let Some((id, desk)) = self.shared.session_of(cell).filter(|_| !self.shared.is_closing()) {
            if self.may_restart(&id) {
                self.bring_back(id, desk);
            } else {
                self.give_up(id, &desk);
            }
        }
    }

    fn may_restart(&mut self, id: &SessionId) -> bool {
        let (config, now) = (self.shared.config(), self.shared.now());
        let limits = config.limits();
        if !self.failures.contains_key(id) {
            self.order.push_back(id.clone());
            if self.order.len() > REMEMBERED
                && let Some(oldest) = self.order.pop_front()
            {
                self.failures.remove(&oldest);
            }
        }
        let intensity = self.failures.entry(id.clone()).or_default();
        intensity.restart(limits.restart_intensity, limits.restart_window, now)
    }

    fn bring_back(&self, id: SessionId, desk: Arc<Desk>) {
        match self.shared.spawn_session(id.clone(), desk) {
            Ok(entry) => self.shared.replace(id, entry),
            Err(error) => tracing::error!(session = %id, %error, "a session's actor cannot be brought back"),
        }
    }

    /// Ends the episode of a session whose actor fails again and again; its neighbours go on.
    fn give_up(&self, id: SessionId, desk: &Arc<Desk>) {
        if let Some(SessionEntry { actor, .. }) = self.shared.entry(&id) {
            self.shared.forget(&id, &actor);
        }
        let now = self.shared.now();
        let verdict = Verdict::Escalated { reason: "the session's actor failed too often".into() };
        let stored = self.shared.stored.get(&id).map(|stored| stored.clone());
        let memory = stored.as_ref().and_then(|stored| serde_json::from_slice::<SessionMemory>(&stored.memory).ok());
        let plan = desk.lock().plan.clone().unwrap_or_else(|| self.shared.plan());
        let mut outcome = Outcome::without_episode(id.clone(), verdict, None, now);
        if let (Some(mut memory), Some(stored)) = (memory, stored) {
            memory.on(Event::GivenUp { reason: "the session's actor failed too often".into() }, &plan, now);
            if let Some(episode) = memory.close() {
                outcome.episode = episode.id();
                outcome.error = Some(Arc::clone(episode.error()));
                (outcome.executions, outcome.redos) = (episode.executions(), episode.redos());
                outcome.attempts = episode.attempts().to_vec();
            }
            self.shared.store(&id, Stored::of(&memory, stored.revision + 1), None);
        }
        let outcome = Arc::new(outcome);
        self.shared.escalated(&outcome);
        let told = Told::Stop(outcome);
        let mut desk = desk.lock();
        (desk.plan, desk.client, desk.driver, desk.redo_pending) = (None, None, None, false);
        for waiter in desk.take(&told) {
            let _ = waiter.reply.send(Ok(told.clone()));
        }
        desk.queue.clear();
    }
}
