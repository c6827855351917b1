//! Three minutes in which nothing works.

use std::time::Duration;

use backstop::actors::EngineEvent;
use backstop::policy::lane::LaneNoteKind;

use crate::provider::{Provider, engine, fleet, secs};

struct Seen {
    in_flight: usize,
    in_outage: usize,
    probes: usize,
    trips: usize,
    /// When 95 % of the sessions had made a turn again.
    moving: Duration,
}

const FROM: Duration = Duration::from_secs(120);
const LASTS: Duration = Duration::from_secs(180);
const SESSIONS: usize = 200;

async fn outage(seed: u64) -> Seen {
    let engine = engine("session_error: [{strategy: retry, config: {max_retries: 8}}, abort]", seed).await;
    let provider = Provider::new(20.0, 20.0, seed).out_of_order(FROM, LASTS);
    let mut events = engine.events();
    let listener = tokio::spawn(async move {
        let (mut probes, mut trips) = (0, 0);
        while let Some(event) = events.next().await {
            let EngineEvent::Lane { note, .. } = event else { continue };
            match note.what {
                LaneNoteKind::MayProbe => probes += 1,
                LaneNoteKind::Tripped { .. } => trips += 1,
                _ => {}
            }
        }
        (probes, trips)
    });
    let done = fleet(&engine, &provider, SESSIONS, secs(18), FROM + LASTS + secs(90)).await;
    engine.shutdown().await;
    let (probes, trips) = listener.await.unwrap();
    let end = FROM + LASTS;
    let done = done.lock().unwrap();
    let mut again: Vec<Duration> =
        done.iter().filter_map(|turns| turns.iter().find(|at| **at >= end)).copied().collect();
    again.sort();
    Seen {
        in_flight: provider.calls(FROM - Provider::LATENCY, FROM),
        in_outage: provider.calls(FROM, end),
        probes,
        trips,
        moving: again.get(SESSIONS * 95 / 100 - 1).map_or(Duration::MAX, |at| *at - end),
    }
}

#[tokio::test(start_paused = true)]
async fn calls_stop_but_for_probes_and_come_back_without_a_second_trip() {
    for seed in 0..4 {
        let seen = outage(seed).await;
        // What trips it, and what had begun by then.
        let evidence = 15 + seen.in_flight;
        assert!(
            seen.in_outage <= evidence + seen.probes,
            "seed {seed}: {} calls, {} probes",
            seen.in_outage,
            seen.probes
        );
        assert!((30..=60).contains(&seen.probes), "seed {seed}: {} probes", seen.probes);
        assert_eq!(seen.trips, 1, "seed {seed}");
        // Ten seconds at the provider's rate, a probe's wait, a call, and the pause of those who had none to redo.
        assert!(seen.moving <= secs(45), "seed {seed}: {:?}", seen.moving);
        println!(
            "seed {seed}: in flight {}, in outage {}, probes {}, moving {:?}",
            seen.in_flight, seen.in_outage, seen.probes, seen.moving
        );
    }
}
