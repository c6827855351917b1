use std::error::Error;
use std::sync::Arc;

use super::{Domain, ErrorSeverity, PatternRegistry, RecoveryAction, RecoveryError, Report, Timestamp};

/// Classifies errors outside of any loop, by the same patterns as everything else.
///
/// ```
/// use backstop::failure::{Domain, ErrorClassifier, RecoveryAction, Timestamp};
///
/// let classifier = ErrorClassifier::default();
/// let full = std::io::Error::other("No space left on device (os error 28)");
/// let classified = classifier.classify(&full, "iteration 3", Timestamp::default()).unwrap();
/// assert_eq!((classified.category, classified.recoverable), (Domain::Environment, false));
/// assert_eq!(classified.suggested_action, RecoveryAction::Escalate);
/// ```
#[derive(Clone, Default)]
pub struct ErrorClassifier {
    patterns: Arc<PatternRegistry>,
}

/// An error with everything that is known of it.
#[derive(Debug, Clone, PartialEq)]
pub struct ClassifiedError {
    /// Who is at fault.
    pub category: Domain,
    /// How bad it is.
    pub severity: ErrorSeverity,
    /// Something other than a person can still help.
    pub recoverable: bool,
    /// What to do about it.
    pub suggested_action: RecoveryAction,
    /// What the caller was doing.
    pub context: Arc<str>,
    /// When it was classified.
    pub timestamp: Timestamp,
    /// One sentence for people.
    pub diagnosis: Arc<str>,
    /// The failure as recovery sees it; its `raw` is the error as it was.
    pub original_error: RecoveryError,
}

impl ErrorClassifier {
    /// A classifier with an engine's patterns, or a host's own.
    pub fn new(patterns: Arc<PatternRegistry>) -> Self {
        Self { patterns }
    }

    /// What an error is; `None` for what is no failure, such as a turn that a person stopped.
    pub fn classify(
        &self,
        error: &(impl Error + 'static),
        context: impl Into<Arc<str>>,
        now: Timestamp,
    ) -> Option<ClassifiedError> {
        self.classify_report(&Report::from_error(error), context, now)
    }

    /// The same for a report.
    pub fn classify_report(
        &self,
        report: &Report,
        context: impl Into<Arc<str>>,
        now: Timestamp,
    ) -> Option<ClassifiedError> {
        let original_error = self.patterns.detect_first(report, now).into_failure()?;
        Some(ClassifiedError {
            category: original_error.domain,
            severity: original_error.severity,
            recoverable: original_error.recoverable,
            suggested_action: original_error.suggested_action,
            context: context.into(),
            timestamp: original_error.timestamp,
            diagnosis: Arc::clone(&original_error.diagnosis),
            original_error,
        })
    }
}

impl std::fmt::Debug for ErrorClassifier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ErrorClassifier").finish_non_exhaustive()
    }
}
