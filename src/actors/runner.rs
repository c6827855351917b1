//! Where own strategies and client calls run: never inside an actor (R9).

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Semaphore, oneshot, watch};

/// Where own strategies and client calls run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Runner {
    /// On a runtime of their own: a strategy that never yields delays no other session.
    #[default]
    Dedicated,
    /// On the engine's runtime, polled for the first time inside the session's actor: for paused-time
    /// tests and the simulator, as a paused clock jumps while another runtime works, and for hosts whose
    /// strategies and clients never block. One that blocks stops its session and others.
    Inline,
}

/// How a run ended.
#[derive(Debug)]
pub(crate) enum Ran<T> {
    Done(T),
    /// It was dropped at an `await`, or goes on in a stuck thread whose answer nobody hears.
    TimedOut,
    Panicked,
    /// No room for it, for as long as it would have been allowed to take.
    Busy,
}

type Job = Pin<Box<dyn Future<Output = ()> + Send>>;

pub(crate) struct RunnerPool {
    own: Option<Own>,
    at_once: Arc<Semaphore>,
    /// How many may run at once, as asked for last.
    size: Mutex<usize>,
    stuck: Arc<AtomicUsize>,
    max_stuck: Arc<AtomicUsize>,
    /// Set at the engine's end: what still runs is dropped at its next `await`.
    closed: watch::Sender<bool>,
}

struct Own {
    /// Drives the timers of strategies, each of which has a thread: no code of the host's runs on its
    /// worker, so none can stop it.
    strategies: Runtime,
    /// Clients' long calls, and the host's hooks.
    calls: Runtime,
}

/// No configuration asks for more threads of strategies; they are started when they are needed.
const MOST_AT_ONCE: usize = 1_000_000;

fn sensible(at_once: usize) -> usize {
    at_once.clamp(1, MOST_AT_ONCE)
}

/// Threads for hooks that block; more calls than that wait for one another.
const HOOKS_AT_ONCE: usize = 8;

impl RunnerPool {
    /// # Errors
    ///
    /// The operating system's, if the dedicated runtimes cannot start their threads.
    pub fn new(runner: Runner, at_once: usize, max_stuck: usize) -> std::io::Result<Self> {
        let runtime = |workers, blocking| {
            let mut builder = Builder::new_multi_thread();
            builder.worker_threads(workers).max_blocking_threads(blocking).thread_name("backstop-runner");
            builder.enable_all().build()
        };
        let size = sensible(at_once);
        let own = match runner {
            Runner::Inline => None,
            Runner::Dedicated => Some(Own { strategies: runtime(1, MOST_AT_ONCE)?, calls: runtime(2, HOOKS_AT_ONCE)? }),
        };
        let (at_once, size, closed) = (Arc::new(Semaphore::new(size)), Mutex::new(size), watch::channel(false).0);
        Ok(Self { own, at_once, size, stuck: Arc::default(), max_stuck: Arc::new(max_stuck.into()), closed })
    }

    /// Other limits, for what starts from now on. With fewer at once, nothing starts before enough of
    /// what runs has ended.
    pub fn set_limits(&self, at_once: usize, max_stuck: usize) {
        self.max_stuck.store(max_stuck, Ordering::Release);
        let mut size = self.size.lock().unwrap_or_else(PoisonError::into_inner);
        let (before, now) = (*size, sensible(at_once));
        *size = now;
        if now >= before {
            return self.at_once.add_permits(now - before);
        }
        let excess = before - now - self.at_once.forget_permits(before - now);
        if excess > 0 {
            let at_once = Arc::clone(&self.at_once);
            tokio::spawn(async move {
                let held = at_once.acquire_many(u32::try_from(excess).unwrap_or(u32::MAX)).await;
                let _ = held.map(tokio::sync::SemaphorePermit::forget);
            });
        }
    }

    /// Whether everything runs on the engine's own runtime, under paused time perhaps.
    pub fn is_inline(&self) -> bool {
        self.own.is_none()
    }

    /// Threads that strategies hold although their time is over.
    pub fn stuck_threads(&self) -> usize {
        self.stuck.load(Ordering::Acquire)
    }

    /// Runs `make()` within `limit`; its making, its polling and its dropping may panic or hang. What is
    /// dropped before its end is dropped at its next `await` in turn.
    pub fn run<T, M, F>(&self, limit: Duration, make: M) -> impl Future<Output = Ran<T>> + Send + 'static
    where
        T: Send + 'static,
        M: FnOnce() -> F + Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        let (at_once, stuck, max_stuck) =
            (Arc::clone(&self.at_once), Arc::clone(&self.stuck), Arc::clone(&self.max_stuck));
        let own = self.own.as_ref().map(|own| own.strategies.handle().clone());
        let mut closed = self.closed.subscribe();
        async move {
            if stuck.load(Ordering::Acquire) >= max_stuck.load(Ordering::Acquire) {
                return Ran::Busy;
            }
            let Some(runtime) = own else {
                let Ok(Ok(_permit)) = tokio::time::timeout(limit, at_once.acquire_owned()).await else {
                    return Ran::Busy;
                };
                return in_place(limit, closed, guarded(make)).await;
            };
            let Ok(Ok(permit)) = tokio::time::timeout(limit, at_once.acquire_owned()).await else { return Ran::Busy };
            if stuck.load(Ordering::Acquire) >= max_stuck.load(Ordering::Acquire) {
                return Ran::Busy;
            }
            let (answer, answered) = oneshot::channel();
            let (give_up, given_up) = oneshot::channel::<()>();
            let (mut watched, thread) = thread_of_a_run(&stuck);
            let job: Job = Box::pin(async move {
                // Both are given back when the job lets go of its thread.
                let _held = (permit, thread);
                tokio::select! {
                    biased;
                    _ = given_up => {}
                    _ = closed.wait_for(|closed| *closed) => {}
                    out = guarded(make) => { let _ = answer.send(out); }
                }
            });
            // A thread of its own, so that a job that never yields stops nothing but itself.
            let driver = runtime.clone();
            drop(runtime.spawn_blocking(move || driver.block_on(job)));
            let ran = match tokio::time::timeout(limit, answered).await {
                Ok(Ok(Some(out))) => Ran::Done(out),
                Ok(Ok(None) | Err(_)) => Ran::Panicked,
                Err(_) => Ran::TimedOut,
            };
            drop(give_up);
            // Out of time, and wherever this future is dropped, a thread that is still held is stuck.
            watched.answered = !matches!(ran, Ran::TimedOut);
            ran
        }
    }

    /// Starts a client's long call: bounded by its own time limit, not by the number of strategies.
    pub fn spawn<F>(&self, job: F) -> tokio::task::JoinHandle<()>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let mut closed = self.closed.subscribe();
        let job = async move {
            tokio::select! {
                biased;
                _ = closed.wait_for(|closed| *closed) => {}
                () = job => {}
            }
        };
        match &self.own {
            Some(own) => own.calls.spawn(job),
            None => tokio::spawn(job),
        }
    }

    /// Begins a job that [`run`](Self::run) or [`spawn`](Self::spawn) is part of. Inline, what is ready at
    /// once is over at once; on the runner's own runtime nothing is polled here.
    pub fn begin<F: Future>(&self, job: F) -> Begun<F> {
        let mut job = Box::pin(job);
        if self.is_inline()
            && let Poll::Ready(out) = job.as_mut().poll(&mut Context::from_waker(Waker::noop()))
        {
            return Begun::Over(out);
        }
        Begun::Pending(job)
    }

    /// Calls a hook of the host's, which may block.
    pub fn call_host(&self, hook: impl FnOnce() + Send + 'static) {
        match &self.own {
            Some(own) => drop(own.calls.spawn_blocking(hook)),
            None => drop(tokio::spawn(async move { hook() })),
        }
    }

    /// Drops everything that still runs at its next `await`.
    pub fn close(&self) {
        self.closed.send_replace(true);
    }
}

impl Drop for RunnerPool {
    fn drop(&mut self) {
        // A runtime that is dropped in async code panics; its stuck threads must not be waited for.
        if let Some(own) = self.own.take() {
            own.strategies.shutdown_background();
            own.calls.shutdown_background();
        }
    }
}

/// A run's thread, seen from both sides: whoever waits for it, and the job that holds it.
fn thread_of_a_run(stuck: &Arc<AtomicUsize>) -> (Watched, Held) {
    let left = Arc::new(AtomicBool::new(false));
    (
        Watched { left: Arc::clone(&left), stuck: Arc::clone(stuck), answered: false },
        Held { left, stuck: Arc::clone(stuck) },
    )
}

struct Watched {
    left: Arc<AtomicBool>,
    stuck: Arc<AtomicUsize>,
    /// The job has ended and is about to let go.
    answered: bool,
}

struct Held {
    left: Arc<AtomicBool>,
    stuck: Arc<AtomicUsize>,
}

impl Drop for Watched {
    fn drop(&mut self) {
        if self.answered {
            return;
        }
        // Counted first, so that the job cannot take back what is not there yet.
        self.stuck.fetch_add(1, Ordering::AcqRel);
        if self.left.swap(true, Ordering::AcqRel) {
            self.stuck.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // Nobody swaps it after an answer.
        if self.left.swap(true, Ordering::AcqRel) {
            self.stuck.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

/// Runs a job where its caller is; one that is ready at once costs no more than its polling.
async fn in_place<T>(
    limit: Duration,
    mut closed: watch::Receiver<bool>,
    job: impl Future<Output = Option<T>>,
) -> Ran<T> {
    let mut job = std::pin::pin!(job);
    if let Some(out) = once(job.as_mut()).await {
        return out.map_or(Ran::Panicked, Ran::Done);
    }
    tokio::select! {
        biased;
        _ = closed.wait_for(|closed| *closed) => Ran::Panicked,
        out = tokio::time::timeout(limit, job) => match out {
            Ok(out) => out.map_or(Ran::Panicked, Ran::Done),
            Err(_) => Ran::TimedOut,
        },
    }
}

/// What a future comes to if it is polled once.
async fn once<T>(mut future: Pin<&mut impl Future<Output = T>>) -> Option<T> {
    std::future::poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(out) => Poll::Ready(Some(out)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

/// A job that may be over before it is spawned.
pub(crate) enum Begun<F: Future> {
    Over(F::Output),
    /// To be polled on, which its first poll did not prepare.
    Pending(Pin<Box<F>>),
}

/// Polls a future, catching the panics of its making and its polling.
pub(crate) async fn guarded<T, M, F>(make: M) -> Option<T>
where
    M: FnOnce() -> F,
    F: Future<Output = T>,
{
    let mut future = Box::pin(std::panic::catch_unwind(AssertUnwindSafe(make)).ok()?);
    std::future::poll_fn(move |context| {
        match std::panic::catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
            Ok(poll) => poll.map(Some),
            Err(_) => Poll::Ready(None),
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inline() -> RunnerPool {
        RunnerPool::new(Runner::Inline, 2, 1).expect("no thread is started")
    }

    const LIMIT: Duration = Duration::from_secs(5);

    #[tokio::test(start_paused = true)]
    async fn a_run_that_takes_too_long_is_dropped_at_its_limit() {
        let pool = inline();
        let started = tokio::time::Instant::now();
        assert!(matches!(pool.run(LIMIT, std::future::pending::<()>).await, Ran::TimedOut));
        assert_eq!(started.elapsed(), LIMIT);
        tokio::task::yield_now().await;
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(pool.stuck_threads(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_panic_is_an_answer() {
        let pool = inline();
        assert!(matches!(pool.run(LIMIT, || async { panic!("no") }).await, Ran::<()>::Panicked));
        let making = || -> std::future::Ready<()> { panic!("no") };
        assert!(matches!(pool.run(LIMIT, making).await, Ran::Panicked));
        assert!(matches!(pool.run(LIMIT, || async { 7 }).await, Ran::Done(7)));
    }

    #[tokio::test(start_paused = true)]
    async fn other_limits_hold_from_now_on_and_end_nothing_that_runs() {
        let pool = inline();
        pool.set_limits(3, 1);
        let (let_go, _) = tokio::sync::broadcast::channel::<()>(1);
        let waits = || {
            let mut held = let_go.subscribe();
            tokio::spawn(pool.run(LIMIT * 100, move || async move { held.recv().await.map_err(drop) }))
        };
        let running = [waits(), waits(), waits()];
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert!(matches!(pool.run(LIMIT, || async {}).await, Ran::Busy), "three run at once");
        pool.set_limits(4, 1);
        assert!(matches!(pool.run(LIMIT, || async {}).await, Ran::Done(())));
        pool.set_limits(1, 1);
        assert!(matches!(pool.run(LIMIT, || async {}).await, Ran::Busy));
        let_go.send(()).expect("they wait");
        for run in running {
            assert!(matches!(run.await.expect("no panic"), Ran::Done(Ok(()))));
        }
        let last = waits();
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert!(matches!(pool.run(LIMIT, || async {}).await, Ran::Busy), "one runs at once");
        pool.set_limits(2, 0);
        assert!(matches!(pool.run(LIMIT, || async {}).await, Ran::Busy), "no thread may be stuck");
        drop(last);
    }

    #[tokio::test]
    async fn stuck_threads_are_counted_and_bounded() {
        let pool = RunnerPool::new(Runner::Dedicated, 4, 1).expect("threads start");
        let (let_go, held) = std::sync::mpsc::channel::<()>();
        let blocks = move || async move {
            let _ = held.recv();
        };
        assert!(matches!(pool.run(Duration::from_millis(20), blocks).await, Ran::TimedOut));
        assert_eq!(pool.stuck_threads(), 1);
        assert!(matches!(pool.run(LIMIT, || async {}).await, Ran::Busy));
        drop(let_go);
        while pool.stuck_threads() > 0 {
            tokio::task::yield_now().await;
        }
        assert!(matches!(pool.run(LIMIT, || async {}).await, Ran::Done(())));
    }
}
