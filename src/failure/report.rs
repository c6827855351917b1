use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{LaneKey, mask};

/// Where a reported value comes from; it decides which rules may look at it (R1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The host did not say.
    #[default]
    Unknown,
    /// A model call, its SDK or its HTTP response.
    Provider,
    /// A tool that the agent called.
    Tool,
    /// A whole command: an agent's command line, with exit code and output tails.
    Command,
    /// Tests, a linter, a gate, a reviewer.
    Verifier,
}

/// What the host hands over when a turn failed: the raw failure value and its context.
///
/// Built with [`Report::new`] from any JSON value or text and refined by the `with_` methods.
///
/// ```
/// use backstop::{LaneKey, Report};
///
/// let report = Report::text("429 Too Many Requests")
///     .with_status(429)
///     .with_lane(LaneKey::of("openai", "gpt-5", ""))
///     .with_turn(4);
/// assert_eq!(report.status, Some(429));
/// ```
///
/// Printed for debugging, secrets in it are masked.
#[derive(Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Report {
    /// The failure value as the host has it: an error object, a text, `null` when there is none.
    pub value: Value,
    /// Where the value comes from.
    pub source: Source,
    /// The provider, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<Arc<str>>,
    /// The model, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<Arc<str>>,
    /// The tool's name, if a tool failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<Arc<str>>,
    /// The HTTP status, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The exit code of a command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The signal that ended a command, such as `SIGKILL`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<Arc<str>>,
    /// A person or the host stopped the turn: it is never recovered (R1).
    pub cancelled: bool,
    /// The host's number of the turn that failed (R8).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<u64>,
    /// The lane that the turn used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lane: Option<LaneKey>,
}

impl Report {
    /// A report of this value.
    pub fn new(value: impl Into<Value>) -> Self {
        Self { value: value.into(), ..Self::default() }
    }

    /// A report of an error text.
    pub fn text(message: impl Into<String>) -> Self {
        Self::new(Value::String(message.into()))
    }

    /// A report of a turn that a person or the host stopped.
    pub fn cancelled() -> Self {
        Self { cancelled: true, ..Self::default() }
    }

    /// Says where the value comes from.
    #[must_use]
    pub fn with_source(mut self, source: Source) -> Self {
        self.source = source;
        self
    }

    /// Names the provider.
    #[must_use]
    pub fn with_provider(mut self, provider: impl Into<Arc<str>>) -> Self {
        self.provider = Some(provider.into());
        self
    }

    /// Names the model.
    #[must_use]
    pub fn with_model(mut self, model: impl Into<Arc<str>>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// Names the tool that failed.
    #[must_use]
    pub fn with_tool(mut self, tool: impl Into<Arc<str>>) -> Self {
        self.tool = Some(tool.into());
        self
    }

    /// Gives the HTTP status.
    #[must_use]
    pub fn with_status(mut self, status: u16) -> Self {
        self.status = Some(status);
        self
    }

    /// Gives a command's exit code.
    #[must_use]
    pub fn with_exit_code(mut self, code: i32) -> Self {
        self.exit_code = Some(code);
        self
    }

    /// Names the signal that ended a command.
    #[must_use]
    pub fn with_signal(mut self, signal: impl Into<Arc<str>>) -> Self {
        self.signal = Some(signal.into());
        self
    }

    /// Numbers the turn that failed (R8).
    #[must_use]
    pub fn with_turn(mut self, turn: u64) -> Self {
        self.turn = Some(turn);
        self
    }

    /// Names the lane that the turn used.
    #[must_use]
    pub fn with_lane(mut self, lane: LaneKey) -> Self {
        self.lane = Some(lane);
        self
    }
}

impl fmt::Debug for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Report")
            .field("value", &format_args!("{}", mask(&self.value.to_string())))
            .field("source", &self.source)
            .field("provider", &self.provider.as_deref().map(mask))
            .field("model", &self.model.as_deref().map(mask))
            .field("tool", &self.tool.as_deref().map(mask))
            .field("status", &self.status)
            .field("exit_code", &self.exit_code)
            .field("signal", &self.signal.as_deref().map(mask))
            .field("cancelled", &self.cancelled)
            .field("turn", &self.turn)
            .field("lane", &self.lane)
            .finish()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 200;
        let text = match &self.value {
            Value::String(text) => text.clone(),
            Value::Null => "no value".to_owned(),
            value => value.to_string(),
        };
        // More is looked at than shown, so that no secret is cut open and missed.
        let read: String = text.chars().take(8 * SHOWN).collect();
        let shown: String = mask(&read).chars().take(SHOWN).collect();
        write!(f, "failed turn: {shown}")
    }
}

/// A closed loop may return its report as it is.
impl std::error::Error for Report {}
