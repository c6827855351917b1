//! Attempts for the unit tests of strategies.

use std::future::ready;
use std::sync::{Arc, Mutex};

use serde_json::Value;

use super::{Attempt, AttemptParts, ClientCall, ClientError, Decide, EarlierAttempt, Prompt, SessionClient};
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

/// A client that can do what it is told it can, and remembers what it was asked.
#[derive(Default)]
pub(super) struct Recorder {
    able: Vec<&'static str>,
    failing: Vec<&'static str>,
    calls: Mutex<Vec<String>>,
    prompts: Mutex<Vec<Prompt>>,
}

impl Recorder {
    pub(super) fn able_to<const N: usize>(methods: [&'static str; N]) -> Self {
        Self { able: methods.into(), ..Self::default() }
    }

    pub(super) fn failing_at<const N: usize>(mut self, methods: [&'static str; N]) -> Self {
        self.failing = methods.into();
        self
    }

    /// The supported calls so far, each with its argument.
    pub(super) fn calls(&self) -> Vec<String> {
        self.calls.lock().expect("no test panics while it holds the lock").clone()
    }

    pub(super) fn prompts(&self) -> Vec<Prompt> {
        self.prompts.lock().expect("no test panics while it holds the lock").clone()
    }

    fn answer<'a>(&self, method: &'static str, argument: &str) -> ClientCall<'a, ()> {
        let fails = self.failing.contains(&method);
        let result = if fails || self.able.contains(&method) {
            let call = format!("{method} {argument}").trim_end().to_owned();
            self.calls.lock().expect("no test panics while it holds the lock").push(call);
            if fails { Err(ClientError::failed("as told")) } else { Ok(()) }
        } else {
            Err(ClientError::Unsupported)
        };
        Box::pin(ready(result))
    }
}

impl SessionClient for Recorder {
    fn compact<'a>(&'a self, _: &'a SessionId, preserve: &'a [Arc<str>]) -> ClientCall<'a, ()> {
        self.answer("compact", &preserve.join(","))
    }

    fn prompt<'a>(&'a self, _: &'a SessionId, prompt: &'a Prompt) -> ClientCall<'a, ()> {
        self.prompts.lock().expect("no test panics while it holds the lock").push(prompt.clone());
        self.answer("prompt", prompt.model.as_deref().unwrap_or_default())
    }

    fn switch_model<'a>(&'a self, _: &'a SessionId, model: &'a str) -> ClientCall<'a, ()> {
        self.answer("switch_model", model)
    }

    fn truncate<'a>(&'a self, _: &'a SessionId, ratio: f64) -> ClientCall<'a, ()> {
        self.answer("truncate", &ratio.to_string())
    }

    fn summarize<'a>(&'a self, _: &'a SessionId, model: Option<&'a str>) -> ClientCall<'a, ()> {
        self.answer("summarize", model.unwrap_or_default())
    }

    fn rollback<'a>(&'a self, _: &'a SessionId, checkpoint: Option<&'a str>) -> ClientCall<'a, ()> {
        self.answer("rollback", checkpoint.unwrap_or_default())
    }
}
