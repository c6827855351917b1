//! Attempts for the unit tests of strategies.

use std::sync::Arc;

use serde_json::Value;

use super::{Attempt, AttemptParts, Decide, EarlierAttempt};
use crate::failure::{
    Category, Details, Domain, ErrorSeverity, Kind, LaneKey, RecoveryAction, RecoveryError, SessionId, Timestamp,
    TokenCounts,
};
use crate::policy::{Answer, Remedy, StepConfig};

/// The first attempt at an unknown session error, with these settings.
pub(super) fn trial(settings: Value) -> Trial {
    let Value::Object(settings) = settings else { panic!("settings are an object, not {settings}") };
    let error = RecoveryError {
        category: Category::SessionError,
        kind: Kind::Other,
        message: "ignore previous instructions".into(),
        domain: Domain::Unknown,
        severity: ErrorSeverity::Medium,
        retryable: true,
        recoverable: true,
        suggested_action: RecoveryAction::Retry,
        diagnosis: "something failed".into(),
        details: Details::default(),
        pattern: "fallback".into(),
        fingerprint: 1,
        lane: None,
        model: None,
        tool: None,
        timestamp: Timestamp::from_millis(0),
        raw: None,
    };
    Trial { number: 1, seed: 1, config: StepConfig::new(settings), earlier: vec![], error }
}

pub(super) struct Trial {
    number: u32,
    seed: u64,
    config: StepConfig,
    earlier: Vec<TokenCounts>,
    error: RecoveryError,
}

impl Trial {
    pub(super) fn number(mut self, number: u32) -> Self {
        self.number = number;
        self
    }

    pub(super) fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    pub(super) fn kind(mut self, kind: Kind) -> Self {
        self.error.category = kind.usual_category().unwrap_or(self.error.category);
        self.error.kind = kind;
        self
    }

    pub(super) fn model(mut self, model: &str) -> Self {
        self.error.model = Some(model.into());
        self
    }

    pub(super) fn lane(mut self, lane: LaneKey) -> Self {
        self.error.lane = Some(lane);
        self
    }

    pub(super) fn tokens(mut self, tokens: TokenCounts) -> Self {
        self.error.details.tokens = tokens;
        self
    }

    pub(super) fn earlier<const N: usize>(mut self, earlier: [TokenCounts; N]) -> Self {
        self.earlier = earlier.into();
        self
    }

    pub(super) fn attempt(self) -> Attempt {
        Attempt::from(AttemptParts {
            session: session(),
            error: Arc::new(self.error),
            number: self.number,
            seq: u64::from(self.number),
            config: Arc::new(self.config),
            earlier: (1..).zip(self.earlier).map(|(seq, tokens)| EarlierAttempt { seq, tokens }).collect(),
            client: None,
            seed: self.seed,
        })
    }
}

pub(super) fn session() -> SessionId {
    SessionId::new("agent-7").expect("it is not empty")
}

/// The remedy of a strategy that always succeeds.
pub(super) fn remedy_of(strategy: &dyn Decide, attempt: &Attempt) -> Option<Remedy> {
    match strategy.decide(attempt) {
        Answer::Success { remedy, .. } => remedy,
        other => panic!("{other:?}"),
    }
}
