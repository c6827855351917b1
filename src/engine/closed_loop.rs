//! The closed loop: the caller's closure is the turn, and runs in the caller's own task.

use super::driver::Driver;
use super::ended::{Done, Stopped};
use super::session::SessionHandle;
use super::to_report::Reporter;
use crate::policy::Turn;

/// The loop itself, the same for both ways to hand the turn over: an async closure's future cannot be
/// named, so no function could take it for both.
macro_rules! until_it_works {
    ($session:ident, $next:ident => $turn:expr) => {{
        let mut driver = Driver::new(&$session);
        let mut $next = driver.begin(&$session).await.map_err(|cause| Stopped { error: None, cause })?;
        loop {
            let admitted = driver.admit(&$session, &$next).await.map_err(|cause| Stopped { error: None, cause })?;
            let result = driver.within_deadline($turn).await;
            match result {
                None => {
                    drop(admitted);
                    return Err(Stopped { error: None, cause: driver.too_late(&$session).await });
                }
                Some(Ok(value)) => return Ok(Done { value, recovery: driver.worked(&$session, admitted).await }),
                Some(Err(error)) => {
                    let report = $session.completed($session.reporter.report(&error), &$next);
                    let found = $session.reporter.found(&error);
                    match driver.failed(&$session, report, found, admitted).await {
                        Ok(redo) => $next = redo,
                        Err(cause) => return Err(Stopped { error: Some(error), cause }),
                    }
                }
            }
        }
    }};
}

impl<R> SessionHandle<R> {
    /// Runs a turn until it works or its recovery ends with a verdict.
    ///
    /// The closure gets the [`Turn`] with everything that recovery asks of it: model, size, injections.
    /// It runs in the caller's task: it need be neither `Send` nor `'static`. An episode that was open
    /// when the process died goes on first, with its remaining delay.
    ///
    /// # Errors
    ///
    /// [`Stopped`] with the turn's last error and the verdict.
    ///
    /// # Cancellation
    ///
    /// Dropping the future cancels the episode, unless [`shutdown`](super::RecoveryEngine::shutdown)
    /// has begun: then it stays open and resumes.
    ///
    /// ```
    /// # async fn example(engine: backstop::RecoveryEngine) -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use backstop::{LaneKey, SessionId};
    ///
    /// # async fn ask(_: Option<&str>, _: String) -> std::io::Result<String> { Ok(String::new()) }
    /// let answer = engine
    ///     .session(SessionId::new("review-17")?)
    ///     .lane(LaneKey::of("acme", "large", "team-a"))
    ///     .parent(SessionId::new("planner")?)
    ///     .deadline(Duration::from_secs(600))
    ///     .run(async |turn| ask(turn.model.as_deref(), turn.injected_text()).await)
    ///     .await?;
    /// println!("{}", answer.value);
    /// # Ok(()) }
    /// ```
    pub async fn run<T, E, F>(self, mut turn: F) -> Result<Done<T>, Stopped<E>>
    where
        F: AsyncFnMut(&Turn) -> Result<T, E>,
        R: Reporter<E>,
    {
        until_it_works!(self, next => turn(&next))
    }

    /// The same for a function that makes a future of its own, which may be spawned with what it
    /// borrows.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    ///
    /// # Cancellation
    ///
    /// As [`run`](Self::run).
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use backstop::{RecoveryEngine, SessionId};
    ///
    /// let engine = RecoveryEngine::builder().in_memory().spawn().await?;
    /// let session = engine.session(SessionId::new("s1")?);
    /// let turns = tokio::spawn(session.run_with(|turn| async move {
    ///     Ok::<_, std::io::Error>(format!("try {}", turn.redo + 1))
    /// }));
    /// assert_eq!(turns.await??.value, "try 1");
    /// # Ok(()) }
    /// ```
    pub async fn run_with<T, E, F, Fut>(self, mut turn: F) -> Result<Done<T>, Stopped<E>>
    where
        F: FnMut(Turn) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        R: Reporter<E>,
    {
        until_it_works!(self, next => turn(next.clone()))
    }
}

#[cfg(all(test, feature = "cli"))]
#[allow(clippy::unwrap_used)]
mod tests {
    use crate::failure::Timestamp;
    use crate::{Kind, RecoveryEngine, Report, SessionId};

    #[tokio::test(start_paused = true)]
    async fn what_was_found_before_is_not_looked_for_again() {
        let engine = RecoveryEngine::builder().in_memory().runner(crate::Runner::Inline).spawn().await.unwrap();
        let found =
            engine.pattern_registry().detect_first(&Report::text("429 Too Many Requests"), Timestamp::default());
        let session = engine.session(SessionId::new("s").unwrap());
        let session =
            session.report_found_with(|_: &()| Report::text("503 Service Unavailable"), |_: &()| found.clone());
        let done = session.run(async |turn| if turn.redo == 0 { Err(()) } else { Ok(()) }).await.unwrap();
        assert_eq!(done.recovery.unwrap().error.as_ref().unwrap().kind, Kind::RateLimit);
    }
}
