//! A thousand seeded lives: whatever fails and whenever the process dies, every bound holds.

use std::sync::{Arc, Mutex};

use backstop::SessionId;
use backstop::healing::{Ended, SelfHealingLoop, Step};
use backstop::policy::budget::Allowance;
use backstop::policy::seed::mix;
use backstop::state::{
    Checkpoint, CheckpointInfo, CheckpointStore, MemoryCheckpoints, MemoryStore, RecoveryStateStore, SessionSummary,
    StateError, StateRecord,
};

use crate::fixture::{builder, failed, id};

/// What outlives a process.
#[derive(Clone, Default)]
struct Disk(Arc<Mutex<(MemoryStore, MemoryCheckpoints)>>);

impl Disk {
    fn as_it_is(&self) -> Self {
        let mut held = self.0.lock().unwrap();
        let mut copy = (MemoryStore::default(), MemoryCheckpoints::default());
        for summary in held.0.list().unwrap() {
            let record = held.0.load(&summary.session).unwrap();
            copy.0.append(record.as_slice()).unwrap();
        }
        for info in held.1.list(&id()).unwrap() {
            copy.1.save(&held.1.load(&id(), &info.name).unwrap().unwrap()).unwrap();
        }
        Self(Arc::new(Mutex::new(copy)))
    }
}

impl CheckpointStore for Disk {
    fn save(&mut self, checkpoint: &Checkpoint) -> Result<(), StateError> {
        self.0.lock().unwrap().1.save(checkpoint)
    }
    fn load(&mut self, session: &SessionId, name: &str) -> Result<Option<Checkpoint>, StateError> {
        self.0.lock().unwrap().1.load(session, name)
    }
    fn list(&mut self, session: &SessionId) -> Result<Vec<CheckpointInfo>, StateError> {
        self.0.lock().unwrap().1.list(session)
    }
    fn remove(&mut self, session: &SessionId, name: &str) -> Result<bool, StateError> {
        self.0.lock().unwrap().1.remove(session, name)
    }
}

impl RecoveryStateStore for Disk {
    fn append(&mut self, batch: &[StateRecord]) -> Result<(), StateError> {
        self.0.lock().unwrap().0.append(batch)
    }
    fn load(&mut self, session: &SessionId) -> Result<Option<StateRecord>, StateError> {
        self.0.lock().unwrap().0.load(session)
    }
    fn list(&mut self) -> Result<Vec<SessionSummary>, StateError> {
        self.0.lock().unwrap().0.list()
    }
    fn close(&mut self) -> Result<(), StateError> {
        Ok(())
    }
}

const FAILURES: [&str; 6] = [
    "503 Service Unavailable",
    "the edit failed: oldString not found",
    "Unexpected token } in JSON at position 3",
    "429 Too Many Requests",
    "maximum context length is 8192 tokens, you requested 9000",
    "the flux capacitor is misaligned",
];

const CHAINS: &str = "session_error: [retry, degrade, rollback, skip, escalate]\n\
                      edit_error: [remind_and_retry, rollback, skip]\n\
                      max_degrades: 2\nmax_skips: 3";

const MAX_ITERATIONS: u32 = 12;
const TRIES: u32 = 40;

#[tokio::test(start_paused = true)]
async fn every_bound_holds_over_chains_success_and_restarts() {
    let (mut endings, mut restarts, mut resumed) = (std::collections::BTreeMap::<String, u32>::new(), 0, 0);
    for seed in 0..1_000_u64 {
        let mut disk = Disk::default();
        let tries = Arc::new(Mutex::new(0_u32));
        let mut lives = 0;
        let report = loop {
            lives += 1;
            let engine =
                builder(CHAINS).store(disk.clone()).checkpoint_store(disk.clone()).seed(seed).spawn().await.unwrap();
            resumed += engine.open_episodes().len();
            let healing = SelfHealingLoop::new(&engine, id(), Vec::<u32>::new())
                .max_iterations(MAX_ITERATIONS)
                .budget(Allowance::attempts(TRIES))
                .with_alternative();
            let counted = Arc::clone(&tries);
            let run = healing.run(async |iteration, done: &mut Vec<u32>, _| {
                let number = {
                    let mut tries = counted.lock().unwrap();
                    *tries += 1;
                    u64::from(*tries)
                };
                done.push(iteration);
                let dice = mix(seed, number);
                // Some seeds fail nearly always, others hardly ever.
                if dice % 100 < 10 + seed % 80 {
                    return Err(failed(FAILURES[(dice >> 32) as usize % FAILURES.len()]));
                }
                Ok(if dice.is_multiple_of(17) { Step::Done(()) } else { Step::Continue })
            });
            // The process dies after a while, at most four times.
            let patience = std::time::Duration::from_secs(1 + mix(seed, 1_000 + lives) % 8);
            let mut run = Box::pin(run);
            let ended = match lives {
                5.. => Some(run.await.unwrap()),
                _ => match tokio::time::timeout(patience, &mut run).await {
                    Ok(report) => Some(report.unwrap()),
                    Err(_) => {
                        // What the disk holds now is all that is left; dropping the run changes the old one only.
                        disk = disk.as_it_is();
                        drop(run);
                        None
                    }
                },
            };
            engine.shutdown().await;
            if let Some(report) = ended {
                break report;
            }
            restarts += 1;
        };
        let tries = *tries.lock().unwrap();
        assert!(tries <= TRIES && report.tries >= tries, "seed {seed}: {tries} tries, {} counted", report.tries);
        assert!(report.iterations <= MAX_ITERATIONS, "seed {seed}");
        assert!(report.degraded.len() <= 2 && report.skipped.len() <= 3, "seed {seed}");
        let mut sorted = report.state.clone();
        sorted.dedup();
        assert_eq!(sorted, report.state, "seed {seed}: no iteration is in the state twice");
        assert!(report.state.is_sorted(), "seed {seed}: {:?}", report.state);
        let ending = match &report.ended {
            Ended::Verdict(outcome) => outcome.verdict.name().to_owned(),
            Ended::Budget(_) => "budget".to_owned(),
            Ended::Spiral(_) => "spiral".to_owned(),
            other => other.to_string(),
        };
        *endings.entry(ending).or_default() += 1;
    }
    println!("{endings:?}, {restarts} restarts, {resumed} episodes found open");
    assert!(endings.contains_key("done") && endings.contains_key("spiral") && endings.contains_key("escalated"));
    assert!(restarts > 100, "{restarts}");
}
