use super::{Category, Domain, ErrorSeverity, Kind, RecoveryAction};

/// What follows from a failure's kind, unless a rule knows better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) domain: Domain,
    pub(crate) severity: ErrorSeverity,
    pub(crate) retryable: bool,
    pub(crate) recoverable: bool,
    pub(crate) action: RecoveryAction,
}

/// What one rule knows better than its kind's [`Facts`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Overrides {
    pub(crate) category: Option<Category>,
    pub(crate) domain: Option<Domain>,
    pub(crate) severity: Option<ErrorSeverity>,
    pub(crate) retryable: Option<bool>,
    pub(crate) recoverable: Option<bool>,
    pub(crate) action: Option<RecoveryAction>,
}

impl Overrides {
    /// Nothing beyond the kind's own facts.
    pub(crate) const NONE: Self =
        Self { category: None, domain: None, severity: None, retryable: None, recoverable: None, action: None };

    /// The kind's facts with these laid over.
    pub(crate) fn over(&self, base: Facts) -> Facts {
        Facts {
            domain: self.domain.unwrap_or(base.domain),
            severity: self.severity.unwrap_or(base.severity),
            retryable: self.retryable.unwrap_or(base.retryable),
            recoverable: self.recoverable.unwrap_or(base.recoverable),
            action: self.action.unwrap_or(base.action),
        }
    }
}

impl Facts {
    /// The usual facts of a kind. `retryable` asks whether the same request can work again without
    /// a person; `recoverable` whether anything but a person can still help (R17).
    pub(crate) fn of(kind: &Kind) -> Self {
        use Domain::{Agent, Environment, Tool, Unknown, Verifier};
        use ErrorSeverity::{Critical, High, Low, Medium};
        use RecoveryAction::{Degrade, Escalate, RemindAndRetry, Retry, Rollback};
        let facts = |domain, severity, retryable, recoverable, action| Self {
            domain,
            severity,
            retryable,
            recoverable,
            action,
        };
        match kind {
            Kind::RateLimit
            | Kind::Overloaded
            | Kind::Timeout
            | Kind::Network
            | Kind::ServerError
            | Kind::ServiceUnavailable
            | Kind::StreamInterrupted
            | Kind::LockContention => facts(Environment, Medium, true, true, Retry),
            Kind::ResourceLimit | Kind::Tls => facts(Environment, High, false, false, Escalate),
            Kind::Auth | Kind::InvalidRequest => facts(Environment, High, false, true, Escalate),
            Kind::QuotaExhausted | Kind::ModelNotFound | Kind::OutOfMemory => {
                facts(Environment, High, false, true, Degrade)
            }
            Kind::DiskFull | Kind::DataCorruption => facts(Environment, Critical, false, false, Escalate),
            Kind::PermissionDenied | Kind::ProcessKilled => facts(Environment, Medium, false, true, Degrade),
            Kind::FileNotFound => facts(Environment, Low, false, true, RemindAndRetry),
            Kind::ProcessFailed => facts(Environment, Medium, false, true, RemindAndRetry),
            Kind::ContextOverflow => facts(Agent, Medium, false, true, Degrade),
            Kind::OutputLimit | Kind::JsonTruncated => facts(Agent, Medium, false, true, RemindAndRetry),
            Kind::ToolUnavailable
            | Kind::InvalidGeneration
            | Kind::EditNotFound
            | Kind::EditMultipleMatches
            | Kind::EditNoChange
            | Kind::EditStaleFile
            | Kind::EditBadPatch
            | Kind::SchemaMismatch => facts(Agent, Low, false, true, RemindAndRetry),
            Kind::JsonSyntax => facts(Agent, Low, true, true, RemindAndRetry),
            Kind::EmptyResponse => facts(Agent, Medium, true, true, Retry),
            Kind::ToolPairMismatch => facts(Agent, High, false, true, Rollback),
            Kind::ToolTimeout => facts(Tool, Medium, true, true, Retry),
            Kind::ToolFailed => facts(Tool, Medium, false, true, RemindAndRetry),
            Kind::GuardBlocked => facts(Tool, Medium, false, true, Degrade),
            Kind::McpDisconnected => facts(Tool, Medium, true, true, Degrade),
            Kind::UserRejected => facts(Unknown, Medium, false, false, Escalate),
            Kind::ContentFilter => facts(Agent, Medium, false, true, Escalate),
            Kind::VerificationFailed => facts(Verifier, Low, false, true, RemindAndRetry),
            Kind::VerifierContradiction => facts(Verifier, High, false, false, Escalate),
            Kind::Other | Kind::Custom(_) => facts(Unknown, Medium, true, true, Retry),
        }
    }
}

/// What follows from a failure's kind.
pub(crate) fn facts_of(kind: &Kind) -> Facts {
    Facts::of(kind)
}

/// One sentence for people about a failure of this kind.
pub(crate) fn diagnosis(kind: &Kind) -> &'static str {
    match kind {
        Kind::RateLimit => "The provider throttles; the allowance refills by itself.",
        Kind::Overloaded => "The provider lacks capacity at the moment.",
        Kind::Timeout => "Something took too long to answer.",
        Kind::Network => "The connection failed.",
        Kind::Tls => "The encrypted connection could not be set up.",
        Kind::ServerError => "The server failed inside.",
        Kind::ServiceUnavailable => "The service is down.",
        Kind::StreamInterrupted => "The streamed reply broke off.",
        Kind::Auth => "The key or login is not accepted.",
        Kind::QuotaExhausted => "The allowance or the money is used up.",
        Kind::ModelNotFound => "The model does not exist or may not be used.",
        Kind::InvalidRequest => "The provider refuses the request as it is.",
        Kind::OutputLimit => "The reply reached the output limit.",
        Kind::ToolUnavailable => "The tool does not exist.",
        Kind::ToolTimeout => "The tool took too long.",
        Kind::ToolFailed => "The tool ran and failed.",
        Kind::McpDisconnected => "The tool's server is gone.",
        Kind::PermissionDenied => "The operating system or the server forbids it.",
        Kind::FileNotFound => "A file that was needed does not exist.",
        Kind::DiskFull => "No space is left on the disk.",
        Kind::OutOfMemory => "Memory ran out.",
        Kind::ResourceLimit => "A limit of the machine was reached.",
        Kind::LockContention => "Somebody else holds the lock.",
        Kind::ProcessFailed => "A command ended with a failure.",
        Kind::ProcessKilled => "A process was killed.",
        Kind::DataCorruption => "Stored data is damaged.",
        Kind::InvalidGeneration => "What was generated is not valid.",
        Kind::ContextOverflow => "The request does not fit the context window.",
        Kind::EditNotFound => "The text to be replaced was not found.",
        Kind::EditMultipleMatches => "The text to be replaced was found several times.",
        Kind::EditNoChange => "The edit changes nothing.",
        Kind::EditStaleFile => "The file was not read, or changed since it was read.",
        Kind::EditBadPatch => "The patch is malformed or does not apply.",
        Kind::JsonSyntax => "The model's JSON has a syntax error.",
        Kind::JsonTruncated => "The model's JSON breaks off.",
        Kind::SchemaMismatch => "The model's JSON does not fit the schema.",
        Kind::EmptyResponse => "Nothing came back.",
        Kind::ToolPairMismatch => "A tool call and its result do not pair up in the transcript.",
        Kind::GuardBlocked => "A policy, hook, sandbox or loop guard said no.",
        Kind::UserRejected => "A person said no.",
        Kind::ContentFilter => "The provider's content filter said no.",
        Kind::VerificationFailed => "A test, a linter or a reviewer said no.",
        Kind::VerifierContradiction => "The verifier contradicts itself.",
        Kind::Other => "A failure that no pattern knows.",
        Kind::Custom(_) => "A failure that one of the user's own patterns knows.",
    }
}
