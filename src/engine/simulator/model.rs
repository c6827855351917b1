//! The simple model that a simulated engine is measured by.

use std::collections::{BTreeMap, BTreeSet};

use super::widest::Widest;
use crate::actors::Outcome;
use crate::failure::{SessionId, Timestamp};
use crate::policy::machine::NoteKind;
use crate::policy::{RecoveryConfig, Verdict};

/// What was seen at the engine's edge, and the books that limits are checked against.
pub(super) struct Model {
    pub steps: Vec<String>,
    pub broken: Vec<String>,
    /// Attempts whose strategies were seen to run.
    pub executed: BTreeSet<(SessionId, u64)>,
    /// Attempts whose redo was seen.
    pub redone: BTreeSet<(SessionId, u64)>,
    /// The episode of an attempt, as stored.
    episodes: BTreeMap<(SessionId, u64), u64>,
    books: BTreeMap<SessionId, Books>,
    limits: Widest,
}

#[derive(Default)]
struct Books {
    /// The episodes that count against the window, and when they opened.
    opened: Vec<(u64, Timestamp)>,
    /// When episodes ended without success, one after the other.
    struck: Vec<Timestamp>,
    /// The last episode that a closed lane parked.
    parked: Option<u64>,
    /// A reset is under way: nothing is known.
    resetting: bool,
}

impl Model {
    /// A model of what this configuration allows.
    pub fn new(config: &RecoveryConfig) -> Self {
        let limits = Widest::of(config);
        let (steps, broken, executed, redone, episodes, books) = Default::default();
        Self { steps, broken, executed, redone, episodes, books, limits }
    }

    /// This configuration is in force too from now on: episodes keep to the one that they began with.
    pub fn allows_also(&mut self, config: &RecoveryConfig) {
        self.limits.widen(&Widest::of(config));
    }

    /// A record says to which episode an attempt belongs.
    pub fn belongs(&mut self, session: &SessionId, seq: u64, episode: u64) {
        self.episodes.entry((session.clone(), seq)).or_insert(episode);
    }

    /// The highest attempt that was seen to have an effect.
    pub fn highest(&self, session: &SessionId) -> u64 {
        let of = |seen: &BTreeSet<(SessionId, u64)>| {
            seen.iter().filter(|(of, _)| of == session).map(|(_, seq)| *seq).max().unwrap_or_default()
        };
        of(&self.executed).max(of(&self.redone))
    }

    /// A session lost its memory of what came after this attempt.
    pub fn forget(&mut self, session: &SessionId, after: u64) {
        let kept = |of: &SessionId, seq: u64| of != session || seq <= after;
        self.executed.retain(|(of, seq)| kept(of, *seq));
        // The attempt's own record may be older than that of its redo.
        self.redone.retain(|(of, seq)| kept(of, *seq) && (of != session || *seq != after));
        self.episodes.retain(|(of, seq), _| kept(of, *seq));
        self.books.remove(session);
    }

    /// The disk knows of no later episode than this: one that ended with its life before its first record
    /// had no effect.
    pub fn knows_of(&mut self, session: &SessionId, episodes: u64) {
        if let Some(books) = self.books.get_mut(session) {
            books.opened.retain(|(episode, _)| *episode <= episodes);
        }
    }

    pub fn decided(&mut self, session: &SessionId, episode: u64, what: &NoteKind) {
        if let NoteKind::Parked { .. } = what {
            self.books.entry(session.clone()).or_default().parked = Some(episode);
        }
    }

    pub fn resets(&mut self, session: &SessionId, resetting: bool) {
        self.books.insert(session.clone(), Books { resetting, ..Books::default() });
    }

    /// An episode opened; tells which limit forbade it. `monotonous`: the session's failures are all the
    /// same.
    pub fn opened(&mut self, session: &SessionId, episode: u64, monotonous: bool, now: Timestamp) -> Option<String> {
        let Widest { recoveries, window, strikes, .. } = self.limits;
        let books = self.books.entry(session.clone()).or_default();
        if books.resetting {
            return None;
        }
        let young = |at: &Timestamp| now.since(*at) < window;
        books.opened.retain(|(_, at)| young(at));
        books.opened.push((episode, now));
        books.struck.retain(young);
        if books.opened.len() > recoveries {
            return Some(format!("{} episodes of {session} within {window:?}", books.opened.len()));
        }
        let struck = books.struck.len();
        (monotonous && struck >= strikes).then(|| format!("{session} opened an episode after {struck} strikes"))
    }

    pub fn ended(&mut self, outcome: &Outcome) {
        let Some(books) = self.books.get_mut(&outcome.session).filter(|_| outcome.episode > 0) else { return };
        match outcome.verdict {
            Verdict::Aborted { .. } | Verdict::Exhausted { .. } => books.struck.push(outcome.ended),
            Verdict::Recovered(_) => {
                books.struck.clear();
                if books.parked == Some(outcome.episode) {
                    // Ended by a lane's thaw, it may not count.
                    books.opened.pop();
                }
            }
            Verdict::Escalated { .. } | Verdict::Cancelled | Verdict::Unhandled(_) => {}
        }
    }

    /// Which limit an episode passed.
    pub fn within_limits(&self, outcome: &Outcome) -> Option<String> {
        // One closing `abort` or `escalate` runs uncounted (R7).
        let most = self.limits.attempts as usize;
        let counts = |(key, episode): &(&(SessionId, u64), &u64)| {
            **episode == outcome.episode && key.0 == outcome.session && self.executed.contains(*key)
        };
        let seen = self.episodes.iter().filter(counts).count();
        let (told, listed) = (outcome.executions as usize, outcome.attempts.len());
        (told > most || listed > most + 1 || seen > most).then(|| {
            format!("episode {}: {told} executions told, {listed} listed, {seen} seen of {most}", outcome.episode)
        })
    }
}
