//! A disk on which every sync takes its time.

use std::path::Path;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use super::child::{child, say, whole};
use super::kills::Known;
use super::load::{Effects, SESSIONS, builder, run_once};
use super::shim::shim;

/// How long a sync takes: most moments are in the middle of a save.
const SYNC_MS: &str = "300";
/// What `shutdown_timeout_ms` is unless set.
const LIMIT: Duration = Duration::from_secs(10);

/// Recoveries go on when the engine is shut down, twice at once.
#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
pub async fn shut_down_in_the_middle(dir: &Path) {
    let effects = Effects::of(dir);
    let engine = builder(dir, &effects).spawn().await.unwrap();
    let mut runs = JoinSet::new();
    for number in 0..SESSIONS {
        let (engine, effects) = (engine.clone(), effects.clone());
        runs.spawn(async move {
            loop {
                run_once(&engine, &effects, number).await;
                tokio::task::yield_now().await;
            }
        });
    }
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let began = Instant::now();
    let (first, second) = tokio::join!(engine.shutdown(), engine.shutdown());
    assert!(began.elapsed() <= LIMIT, "{:?}", began.elapsed());
    runs.abort_all();
    assert_eq!(first, second);
    say(format_args!("shutdown {} {}", first.durable, first.open_episodes > 0));
}

#[test]
fn a_shutdown_in_the_middle_of_a_slow_save_keeps_its_limit_and_everything() {
    let Some(shim) = shim() else { return };
    let dir = super::scratch();
    let mut known = Known::default();
    for _ in 0..2 {
        let mut slow = child("slow", dir.path());
        slow.env("LD_PRELOAD", shim).env("SHIM_DO", "delay").env("SHIM_AT", SYNC_MS);
        slow.env("SHIM_DIR", dir.path().join("state"));
        let (said, ended_well) = whole(slow);
        assert!(ended_well, "{said:?}");
        assert_eq!(said.last().map(String::as_str), Some("shutdown true true"), "{said:?}");
        said.iter().filter(|line| line.starts_with("told ")).for_each(|line| known.hear(line));
        known.check(dir.path());
    }
}
