use std::time::Duration;

use proptest::prelude::*;

use super::tests::{START, after, fail, lane};
use super::*;
use crate::policy::Limits;

#[derive(Debug, Clone)]
enum Step {
    Fresh,
    Redo(u64),
    End(u64, CallEnd),
    Hold(u64),
    Pass(u64),
    Settle,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let end = prop_oneof![
        4 => Just(CallEnd::Worked),
        4 => Just(CallEnd::Failed(Blame::Lane)),
        2 => Just(CallEnd::Failed(Blame::Throttle)),
        1 => Just(CallEnd::Failed(Blame::Session)),
        1 => Just(CallEnd::Silent),
    ];
    let step = prop_oneof![
        4 => Just(Step::Fresh),
        4 => (0..9_u64).prop_map(Step::Redo),
        6 => ((0..9_u64), end).prop_map(|(session, end)| Step::End(session, end)),
        1 => (0..20_000_u64).prop_map(Step::Hold),
        6 => (0..8_000_u64).prop_map(Step::Pass),
        1 => Just(Step::Settle),
    ];
    prop::collection::vec(step, 0..200)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn whatever_happens_the_promises_hold(steps in steps(), seed: u64, retries in 0..3_u32) {
        let limits = Limits { lane_retry_floor: retries * 30, lane_concurrency: 20, ..Limits::default() };
        let mut lane = Lane::new(LaneSettings::of(&limits), seed, START);
        let mut twin = lane.clone();
        let (mut now, mut held, mut inside) = (START, START, vec![]);
        for step in steps {
            match step {
                Step::Fresh | Step::Redo(_) => {
                    // What passing time changes happens first.
                    prop_assert_eq!(lane.settle(now), twin.settle(now));
                    let closed = lane.closed_until(now);
                    let (start, again) = match step {
                        Step::Redo(session) => (lane.start_redo(session, now), twin.start_redo(session, now)),
                        _ => (lane.start_fresh(inside.len(), now), twin.start_fresh(inside.len(), now)),
                    };
                    prop_assert_eq!(start, again, "the same seed decides the same");
                    match start {
                        Start::Go { generation } => {
                            prop_assert!(now >= held, "a stated wait is honoured");
                            prop_assert_eq!(closed, None, "nobody goes while it says that it is closed");
                            prop_assert!(matches!(step, Step::Redo(_)) || inside.len() < 20);
                            inside.push(generation);
                        }
                        Start::NotBefore(later) => prop_assert!(later > now, "a wait lies ahead"),
                        Start::Full => prop_assert!(inside.len() >= lane.window()),
                    }
                }
                Step::End(session, end) => {
                    let generation = inside.pop();
                    lane.ended(session, generation, end, inside.len(), now);
                    twin.ended(session, generation, end, inside.len(), now);
                }
                Step::Hold(millis) => {
                    let until = now + Duration::from_millis(millis);
                    held = held.max(until);
                    prop_assert_eq!(lane.hold(until, now), twin.hold(until, now));
                }
                Step::Pass(millis) => now = now + Duration::from_millis(millis),
                Step::Settle => prop_assert_eq!(lane.settle(now), twin.settle(now)),
            }
            prop_assert!((1..=20).contains(&lane.window()));
            prop_assert!(lane.expected(100, true, now) >= now);
        }
        // Whatever it was: with nothing happening it lets somebody go, within an hour.
        let mut tries = 0;
        while let Start::NotBefore(later) = lane.start_fresh(0, now) {
            now = later;
            tries += 1;
            prop_assert!(tries < 100 && now <= after(3_600_000 + 200 * 8_000));
        }
    }

    #[test]
    fn one_session_alone_never_opens_a_lane(ends in prop::collection::vec(0..3_u8, 0..300)) {
        let mut lane = lane();
        for (n, end) in ends.iter().enumerate() {
            let blame = [Blame::Lane, Blame::Throttle, Blame::Session][usize::from(*end)];
            lane.ended(7, None, CallEnd::Failed(blame), 0, after(n as u64 * 10));
        }
        prop_assert_eq!(lane.standing(after(3_000)), Standing::Open);
    }

    #[test]
    fn what_sessions_do_to_themselves_never_opens_a_lane(sessions in prop::collection::vec(any::<u64>(), 0..300)) {
        let mut lane = lane();
        for session in sessions {
            fail(&mut lane, session, Blame::Session, START);
        }
        prop_assert_eq!(lane.standing(START), Standing::Open);
    }

    #[test]
    fn an_outage_opens_it_within_seventeen_failures_whatever_was_before(before in prop::collection::vec(any::<bool>(), 0..300)) {
        let mut lane = lane();
        for (n, worked) in before.iter().enumerate() {
            let end = if *worked { CallEnd::Worked } else { CallEnd::Failed(Blame::Lane) };
            lane.ended(n as u64 % 2, None, end, 0, START);
        }
        for session in 0..20 {
            if lane.standing(START) != Standing::Open {
                break;
            }
            prop_assert!(session < 17, "{session}");
            fail(&mut lane, 100 + session, Blame::Lane, START);
        }
        prop_assert_eq!(lane.standing(START), Standing::Closed);
    }
}
