use std::error::Error;

use tokio::task::JoinError;
use tokio::time::error::Elapsed;

use super::super::mask;
use super::link::Link;

/// The exit code of a Rust process that a panic ended.
const PANICKED: i32 = 101;

/// What tokio's errors know of a task.
pub(super) fn read(error: &(dyn Error + 'static), link: &mut Link<'_>) {
    if error.is::<Elapsed>() {
        link.field("name", "TimeoutError");
    }
    let Some(error) = error.downcast_ref::<JoinError>() else { return };
    link.cancelled = error.is_cancelled();
    if error.is_panic() {
        // Panics print whole values, requests among them.
        link.field("message", mask(&error.to_string()));
        link.field("exit_code", PANICKED);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::time::Duration;

    use crate::failure::{Detection, Kind, PatternRegistry, Report, Timestamp};

    fn detect(report: &Report) -> Detection {
        PatternRegistry::new().detect_first(report, Timestamp::default())
    }

    #[tokio::test(start_paused = true)]
    async fn time_that_ran_out_is_a_timeout() {
        let error = tokio::time::timeout(Duration::from_secs(1), std::future::pending::<()>()).await.unwrap_err();
        assert_eq!(detect(&Report::from_error(&error)).failure().unwrap().kind, Kind::Timeout);
        let error = std::io::Error::from(error);
        assert_eq!(detect(&Report::from_error(&error)).failure().unwrap().kind, Kind::Timeout);
    }

    #[tokio::test]
    async fn a_panic_fails_the_process_and_tells_no_secret() {
        let panics = async { panic!("no plan for sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD") };
        let error = tokio::spawn(panics).await.unwrap_err();
        let report = Report::from_error(&error);
        let found = detect(&report).into_failure().unwrap();
        assert_eq!(found.kind, Kind::ProcessFailed);
        assert!(found.message.contains("no plan for"), "{}", found.message);
        assert!(!report.value.to_string().contains("abcdefghijkl"), "{}", report.value);
    }

    #[tokio::test]
    async fn a_panic_over_a_known_failure_is_that_failure() {
        let panics =
            async { panic!("called `Result::unwrap()` on an `Err` value: No space left on device (os error 28)") };
        let error = tokio::spawn(panics).await.unwrap_err();
        assert_eq!(detect(&Report::from_error(&error)).failure().unwrap().kind, Kind::DiskFull);
    }

    #[tokio::test]
    async fn a_task_that_was_aborted_is_cancelled() {
        let task = tokio::spawn(std::future::pending::<()>());
        task.abort();
        let report = Report::from_error(&task.await.unwrap_err());
        assert!(report.cancelled);
        assert_eq!(detect(&report), Detection::Cancelled);
    }
}
