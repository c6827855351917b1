//! What is seen at an engine's edge, and what it says of the promises.

use serde::Serialize;

use super::failures::CANARY;
use super::scenario::{Drive, SessionPlan};
use super::world::World;
use crate::actors::{EngineEvent, Outcome};
use crate::failure::SessionId;
use crate::policy::{Durability, Turn};
use crate::state::StateRecord;

impl World {
    /// Looks for a planted secret in what was handed out (P5).
    pub fn handed_out(&self, who: &SessionId, what: &str, value: &impl Serialize) {
        let text = serde_json::to_string(value).unwrap_or_default();
        if text.contains(CANARY) {
            self.broke("P5", who, format_args!("{what} holds a secret: {text}"));
        }
    }

    /// A strategy was asked: the effect that its record must precede.
    pub fn executed(&self, session: &SessionId, seq: u64, strategy: &str) {
        self.saw(session, format_args!("executes {strategy} seq {seq}"));
        if !self.model().executed.insert((session.clone(), seq)) {
            self.broke("P1", session, format_args!("attempt {seq} was executed twice"));
        }
        self.is_recorded(session, seq, "executed");
    }

    /// A turn is done, or done again.
    pub fn performs(&self, plan: &SessionPlan, turn: &Turn) {
        let (id, seq) = (&plan.id, turn.seq);
        self.saw(id, format_args!("performs redo {} seq {seq} model {:?}", turn.redo, turn.model));
        self.handed_out(id, "a turn", turn);
        if seq == 0 {
            return;
        }
        if !self.model().redone.insert((id.clone(), seq)) {
            self.broke("P1", id, format_args!("the redo of attempt {seq} was made twice"));
        }
        self.is_recorded(id, seq, "redone");
        let memory = self.disk.memory(id);
        let episode = memory.as_ref().and_then(|memory| memory.open_episode()).filter(|episode| episode.seq() == seq);
        // A host may be told of a redo long before it makes it.
        let late = plan.drive == Drive::Open;
        if self.is_ahead() && !late && episode.is_some_and(|episode| !episode.is_underway()) && !self.disk.refused(id) {
            self.broke("P1", id, format_args!("the redo of attempt {seq} has no record"));
        }
    }

    fn is_recorded(&self, session: &SessionId, seq: u64, what: &str) {
        let recorded = self.disk.memory(session).is_some_and(|memory| memory.fence().seq >= seq);
        if self.is_ahead() && !recorded && !self.disk.refused(session) {
            self.broke("P1", session, format_args!("attempt {seq} was {what} before its record was durable"));
        }
    }

    /// A record was acknowledged.
    pub fn written(&self, record: &StateRecord) {
        match record.read() {
            Err(error) => self.broke("P2", &record.session, error),
            Ok(memory) => {
                let text = record.memory.as_deref().map(String::from_utf8_lossy).unwrap_or_default();
                if text.contains(CANARY) {
                    self.broke("P5", &record.session, format_args!("a record holds a secret: {text}"));
                }
                self.saw(&record.session, format_args!("stored revision {} {:08x}", record.revision, crc(&text)));
                if let Some(episode) = memory.as_ref().and_then(|memory| memory.open_episode()) {
                    self.model().belongs(&record.session, episode.seq(), episode.id());
                }
            }
        }
    }

    /// The engine told what happens.
    pub fn heard(&self, event: &EngineEvent) {
        let nobody = SessionId::new("-").expect("it is not empty");
        self.handed_out(&nobody, "an event", event);
        let text = serde_json::to_string(event).unwrap_or_default();
        self.saw(&nobody, format_args!("event {text:.120} {:08x}", crc(&text)));
        let broken = match event {
            EngineEvent::Opened { session, episode, .. } => {
                let plan = self.scenario.sessions.iter().find(|plan| plan.id == *session);
                let monotonous = plan.is_some_and(|plan| plan.script.is_monotonous());
                self.model().opened(session, *episode, monotonous, self.now())
            }
            EngineEvent::Decided { session, episode, note } => {
                self.model().decided(session, *episode, &note.what);
                None
            }
            EngineEvent::Ended(outcome) => {
                self.model().ended(outcome);
                None
            }
            _ => None,
        };
        if let Some(broken) = broken {
            self.broke("P3", &nobody, broken);
        }
    }

    /// Somebody got a verdict.
    pub fn verdict(&self, outcome: &Outcome) {
        let id = &outcome.session;
        let Outcome { episode, executions, redos, .. } = outcome;
        self.saw(
            id,
            format_args!("verdict {} of episode {episode}, {executions} executions, {redos} redos", outcome.verdict),
        );
        self.handed_out(id, "an outcome", outcome);
        let passed = self.model().within_limits(outcome);
        if let Some(passed) = passed {
            self.broke("P3", id, passed);
        }
        let memory = self.disk.memory(id);
        let open = memory.as_ref().and_then(|memory| memory.open_episode()).map(|open| open.id());
        if self.is_ahead() && *episode > 0 && open == Some(*episode) && !self.disk.refused(id) {
            self.broke("P1", id, "a verdict was returned before it was durable");
        }
    }

    /// A life ended. What must have survived did; what may be lost is forgotten by the model too.
    pub fn life_ended(&self, gracefully: bool) {
        let promised = match self.scenario.durability {
            Durability::Ahead => true,
            Durability::Behind => gracefully,
            Durability::Off => false,
        };
        for plan in &self.scenario.sessions {
            let memory = self.disk.memory(&plan.id).unwrap_or_default();
            let kept = memory.fence().seq;
            self.model().knows_of(&plan.id, memory.episodes());
            let seen = self.model().highest(&plan.id);
            if seen <= kept && promised && !self.disk.refused(&plan.id) {
                continue;
            }
            if promised && !self.disk.refused(&plan.id) {
                self.broke("P1", &plan.id, format_args!("attempt {seen} was lost: the disk knows of {kept}"));
            }
            self.model().forget(&plan.id, kept);
        }
    }
}

/// A short number of a text, for traces.
fn crc(text: &str) -> u32 {
    crc32fast::hash(text.as_bytes())
}
