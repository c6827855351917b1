use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Category;

/// Declares the closed list of kinds with the category each usually belongs to.
macro_rules! kinds {
    ($($(#[$meta:meta])* $variant:ident = $text:literal in $category:ident),+ $(,)?) => {
        /// The precise type of a failure: the `errorType` of state files and metrics.
        ///
        /// The list is closed but for [`Kind::Custom`], which users' own patterns make.
        ///
        /// ```
        /// use backstop::failure::{Category, Kind};
        ///
        /// assert_eq!(Kind::parse("rate_limit"), Kind::RateLimit);
        /// assert_eq!(Kind::RateLimit.usual_category(), Some(Category::SessionError));
        /// assert_eq!(Kind::parse("my_own").as_str(), "my_own");
        /// ```
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(from = "String", into = "String")]
        pub enum Kind {
            $($(#[$meta])* $variant,)+
            /// A kind of the user's own.
            Custom(Arc<str>),
        }

        impl Kind {
            /// Every built-in kind.
            pub const BUILT_IN: &'static [Self] = &[$(Self::$variant),+];

            /// The text used in configuration, state files, metrics and output.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $text,)+
                    Self::Custom(name) => name,
                }
            }

            /// The kind with this text: a built-in one, else the user's own.
            pub fn parse(text: &str) -> Self {
                match text {
                    $($text => Self::$variant,)+
                    own => Self::Custom(own.into()),
                }
            }

            /// The category a failure of this kind usually has; `None` for users' own kinds.
            pub const fn usual_category(&self) -> Option<Category> {
                match self {
                    $(Self::$variant => Some(Category::$category),)+
                    Self::Custom(_) => None,
                }
            }
        }
    };
}

kinds! {
    /// A throttle that refills.
    RateLimit = "rate_limit" in SessionError,
    /// The server lacks capacity.
    Overloaded = "overloaded" in SessionError,
    /// Something took too long.
    Timeout = "timeout" in SessionError,
    /// The connection failed.
    Network = "network" in SessionError,
    /// The encrypted connection could not be set up.
    Tls = "tls" in SessionError,
    /// The server failed inside.
    ServerError = "server_error" in SessionError,
    /// The service is down, or its gateway says so.
    ServiceUnavailable = "service_unavailable" in SessionError,
    /// A streamed reply broke off.
    StreamInterrupted = "stream_interrupted" in SessionError,
    /// The key or login is not accepted.
    Auth = "auth" in SessionError,
    /// Allowance or money is used up.
    QuotaExhausted = "quota_exhausted" in SessionError,
    /// The model does not exist or may not be used.
    ModelNotFound = "model_not_found" in SessionError,
    /// The request itself is wrong.
    InvalidRequest = "invalid_request" in SessionError,
    /// The reply hit the output limit.
    OutputLimit = "output_limit" in SessionError,
    /// The tool does not exist.
    ToolUnavailable = "tool_unavailable" in SessionError,
    /// The tool took too long.
    ToolTimeout = "tool_timeout" in SessionError,
    /// The tool ran and failed.
    ToolFailed = "tool_failed" in SessionError,
    /// The tool's server is gone.
    McpDisconnected = "mcp_disconnected" in SessionError,
    /// The operating system or server forbids it.
    PermissionDenied = "permission_denied" in SessionError,
    /// A file that was needed does not exist.
    FileNotFound = "file_not_found" in SessionError,
    /// No space left on the disk.
    DiskFull = "disk_full" in SessionError,
    /// Memory ran out.
    OutOfMemory = "out_of_memory" in SessionError,
    /// Another limit of the machine was hit.
    ResourceLimit = "resource_limit" in SessionError,
    /// Somebody else holds the lock.
    LockContention = "lock_contention" in SessionError,
    /// A command ended with a failure.
    ProcessFailed = "process_failed" in SessionError,
    /// A process was killed.
    ProcessKilled = "process_killed" in SessionError,
    /// Stored data is damaged.
    DataCorruption = "data_corruption" in SessionError,
    /// Generated code or values are invalid.
    InvalidGeneration = "invalid_generation" in SessionError,
    /// A failure that no pattern knows.
    Other = "other" in SessionError,
    /// The request does not fit the context window.
    ContextOverflow = "context_overflow" in ContextWindow,
    /// The text to be replaced was not found.
    EditNotFound = "edit_not_found" in EditError,
    /// The text to be replaced was found several times.
    EditMultipleMatches = "edit_multiple_matches" in EditError,
    /// The edit changes nothing.
    EditNoChange = "edit_no_change" in EditError,
    /// The file changed since it was read.
    EditStaleFile = "edit_stale_file" in EditError,
    /// The patch is malformed or does not apply.
    EditBadPatch = "edit_bad_patch" in EditError,
    /// The model's JSON has a syntax error.
    JsonSyntax = "json_syntax" in JsonError,
    /// The model's JSON breaks off.
    JsonTruncated = "json_truncated" in JsonError,
    /// The model's JSON does not fit the schema.
    SchemaMismatch = "schema_mismatch" in JsonError,
    /// Nothing came back.
    EmptyResponse = "empty_response" in EmptyResponse,
    /// A tool call lacks its result, or a result its call.
    ToolPairMismatch = "tool_pair_mismatch" in ToolPair,
    /// A policy, hook, sandbox or loop guard said no.
    GuardBlocked = "guard_blocked" in GuardViolation,
    /// A person said no.
    UserRejected = "user_rejected" in GuardViolation,
    /// The provider's content filter said no.
    ContentFilter = "content_filter" in GuardViolation,
    /// Tests, a linter or a reviewer said no.
    VerificationFailed = "verification_failed" in GuardViolation,
    /// The verifier contradicts itself.
    VerifierContradiction = "verifier_contradiction" in GuardViolation,
}

impl From<String> for Kind {
    fn from(text: String) -> Self {
        Self::parse(&text)
    }
}

impl From<Kind> for String {
    fn from(kind: Kind) -> Self {
        kind.as_str().to_owned()
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
