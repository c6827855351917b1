use crate::engine::ToReport;
use crate::failure::{
    Category, Detection, Domain, Kind, PatternRegistry, RecoveryError, Report, Source, Timestamp, facts_of,
};

/// What a step came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step<O> {
    /// There is more to do: another iteration follows.
    Continue,
    /// The work is done.
    Done(O),
}

/// Why a step, or the verification of one, failed. Every error becomes one by `?`.
///
/// ```
/// use backstop::healing::Failure;
///
/// fn read() -> Result<String, Failure> {
///     Ok(std::fs::read_to_string("/no/such/file")?)
/// }
/// assert!(read().is_err());
/// ```
#[derive(Debug)]
pub struct Failure {
    report: Box<Report>,
    said_no: bool,
    pub(super) keeps_state: bool,
}

impl Failure {
    /// A failure as it is reported.
    pub fn new(report: Report) -> Self {
        Self { report: Box::new(report), said_no: false, keeps_state: false }
    }

    /// A verifier's verdict on work that was done: kind `verification_failed`, unless the words show that the
    /// verifier contradicts itself.
    pub fn said_no(words: impl Into<String>) -> Self {
        Self { said_no: true, ..Self::new(Report::text(words).with_source(Source::Verifier)) }
    }

    /// The redo goes on with the state as the failed step left it, and not with that before the iteration.
    #[must_use]
    pub fn keeping_state(mut self) -> Self {
        self.keeps_state = true;
        self
    }

    pub(super) fn report_mut(&mut self) -> &mut Report {
        &mut self.report
    }

    pub(super) fn into_report(self) -> Box<Report> {
        self.report
    }

    /// What it is, by the engine's patterns; a failed verification is the verifier's business.
    pub(super) fn detect(&self, patterns: &PatternRegistry, verifying: bool, now: Timestamp) -> Detection {
        let said_no = self.said_no;
        let mut detection = match said_no {
            true => patterns.detect_category(&self.report, Category::GuardViolation, now),
            false => patterns.detect_first(&self.report, now),
        };
        if detection == Detection::NotAFailure {
            // No pattern knows it, but a step that fails has failed.
            detection = patterns.detect_category(&self.report, Category::SessionError, now);
        }
        if let Detection::Failure(error) = &mut detection {
            if said_no && error.kind != Kind::VerifierContradiction {
                judged(error);
            }
            if verifying || said_no {
                error.domain = Domain::Verifier;
            }
        }
        detection
    }
}

fn judged(error: &mut RecoveryError) {
    let kind = Kind::VerificationFailed;
    let facts = facts_of(&kind);
    (error.severity, error.retryable, error.recoverable) = (facts.severity, facts.retryable, facts.recoverable);
    (error.category, error.suggested_action) = (Category::GuardViolation, facts.action);
    (error.diagnosis, error.kind) = ("The verifier said no.".into(), kind);
}

impl<E: ToReport> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::new(error.to_report())
    }
}
