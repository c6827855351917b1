use std::error::Error;

use crate::failure::Report;

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
