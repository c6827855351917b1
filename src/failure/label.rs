use serde::{Deserialize, Serialize};

/// Declares a closed enum whose variants have one text form, used in YAML, JSON, labels and output.
macro_rules! labels {
    ($(#[$meta:meta])* $name:ident { $($(#[$variant_meta:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum $name { $($(#[$variant_meta])* $variant),+ }

        impl $name {
            /// Every value, in the order of declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The text used in configuration, state files, metrics and output.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }

            /// The value with this text, if there is one.
            pub fn parse(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.as_str() == text)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

labels! {
    /// The seven classes that choose a chain.
    Category {
        /// The session failed: provider, network, tools, machine.
        SessionError = "session_error",
        /// The model's context window is full.
        ContextWindow = "context_window",
        /// An edit of a file could not be applied.
        EditError = "edit_error",
        /// The model wrote JSON that cannot be used.
        JsonError = "json_error",
        /// A reply or a tool's output was empty.
        EmptyResponse = "empty_response",
        /// A tool call and its result do not pair up in the transcript.
        ToolPair = "tool_pair",
        /// A guard, a policy, a verifier or a person said no.
        GuardViolation = "guard_violation",
    }
}

labels! {
    /// Who is at fault.
    Domain {
        /// The model's output was wrong.
        Agent = "agent",
        /// A tool, its server, or a guard in front of it.
        Tool = "tool",
        /// Tests, linters, gates, reviewers.
        Verifier = "verifier",
        /// Machine, network, disk, processes, other writers.
        Environment = "environment",
        /// Human decisions and what could not be told.
        Unknown = "unknown",
    }
}

labels! {
    /// How bad a failure is.
    ErrorSeverity {
        /// The main flow is not affected.
        Low = "low",
        /// The current step is affected.
        Medium = "medium",
        /// The current iteration is affected.
        High = "high",
        /// A person is needed, or only drastic steps help.
        Critical = "critical",
    }
}

labels! {
    /// What the detector suggests to do.
    RecoveryAction {
        /// Redo the same turn, after a wait.
        Retry = "retry",
        /// Redo it with a correcting text.
        RemindAndRetry = "remind_and_retry",
        /// Go back to a checkpoint.
        Rollback = "rollback",
        /// Use an alternative: another model, a smaller request.
        Degrade = "degrade",
        /// Leave the sub-task out.
        Skip = "skip",
        /// Hand over to a person.
        Escalate = "escalate",
        /// Give up.
        Abort = "abort",
        /// Nothing needs to be done.
        None = "none",
    }
}
