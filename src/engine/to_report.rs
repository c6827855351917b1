use std::error::Error;

use crate::failure::{Detection, Report};

/// What can be reported as a failed turn: every error, a [`Report`] itself among them.
///
/// For other types give the closed loop a function of your own with `report_with`.
pub trait ToReport {
    /// The failure as a report.
    fn to_report(&self) -> Report;
}

impl<E: Error + 'static> ToReport for E {
    fn to_report(&self) -> Report {
        Report::from_error(self)
    }
}

/// How a closed loop's errors become reports.
pub trait Reporter<E> {
    /// The failure as a report.
    fn report(&self, error: &E) -> Report;

    /// What the engine's own patterns found in that report, where that is known already.
    fn found(&self, error: &E) -> Option<Detection> {
        let _ = error;
        None
    }
}

/// Errors report themselves, by [`ToReport`].
#[derive(Debug, Clone, Copy, Default)]
pub struct ByTrait;

impl<E: ToReport> Reporter<E> for ByTrait {
    fn report(&self, error: &E) -> Report {
        error.to_report()
    }
}

/// Errors are reported by a function of the host's.
#[derive(Debug, Clone, Copy)]
pub struct ByFunction<F>(pub(super) F);

impl<E, F: Fn(&E) -> Report> Reporter<E> for ByFunction<F> {
    fn report(&self, error: &E) -> Report {
        (self.0)(error)
    }
}

/// Errors are reported by one function, and what they are was found by another before.
#[cfg(feature = "cli")]
#[derive(Debug, Clone, Copy)]
pub struct ByFinding<F, G>(pub(super) F, pub(super) G);

#[cfg(feature = "cli")]
impl<E, F: Fn(&E) -> Report, G: Fn(&E) -> Detection> Reporter<E> for ByFinding<F, G> {
    fn report(&self, error: &E) -> Report {
        (self.0)(error)
    }

    fn found(&self, error: &E) -> Option<Detection> {
        Some((self.1)(error))
    }
}
