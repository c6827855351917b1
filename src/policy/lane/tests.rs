use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::failure::{Kind, Timestamp};
use crate::policy::Limits;

const START: Timestamp = Timestamp::from_millis(1_000_000);

fn after(millis: u64) -> Timestamp {
    START + Duration::from_millis(millis)
}

fn lane_with(change: impl FnOnce(&mut Limits)) -> Lane {
    let mut limits = Limits::default();
    change(&mut limits);
    Lane::new(LaneSettings::of(&limits), 7, START)
}

fn lane() -> Lane {
    lane_with(|_| {})
}

fn fail(lane: &mut Lane, session: u64, blame: Blame, now: Timestamp) {
    lane.ended(session, None, CallEnd::Failed(blame), 0, now);
}

fn tripped() -> (Lane, Timestamp) {
    let mut lane = lane();
    for session in 0..5 {
        fail(&mut lane, session, Blame::Lane, START);
    }
    let until = lane.closed_until(START).expect("it is open");
    (lane, until)
}

fn is_go(start: Start) -> bool {
    matches!(start, Start::Go { .. })
}

fn said(lane: &mut Lane) -> Vec<&'static str> {
    lane.take_notes().iter().map(|note| note.what.as_str()).collect()
}

#[test]
fn only_what_all_users_see_together_speaks_about_the_lane() {
    let lanes: Vec<&str> =
        Kind::BUILT_IN.iter().filter(|kind| Blame::of_kind(kind) != Blame::Session).map(Kind::as_str).collect();
    assert_eq!(
        lanes,
        ["rate_limit", "overloaded", "timeout", "network", "server_error", "service_unavailable", "stream_interrupted"]
    );
    assert_eq!(Blame::of_kind(&Kind::parse("my_own")), Blame::Session);
}

#[test]
fn five_failures_of_several_sessions_open_it_and_one_sessions_never_do() {
    let mut lone = lane();
    let (mut lane, until) = tripped();
    assert_eq!(lane.standing(START), Standing::Closed);
    assert_eq!(said(&mut lane), ["tripped"]);
    assert!(until > START && until <= after(1_000), "{until}");

    for n in 0..1_000 {
        fail(&mut lone, n % 2, Blame::Lane, after(n));
    }
    assert_eq!(lone.standing(after(1_000)), Standing::Open);
}

#[test]
fn a_probe_goes_when_the_wait_is_over_and_a_failed_one_waits_longer() {
    let (mut lane, mut until) = tripped();
    let mut before = START;
    let mut waits = vec![];
    for _ in 0..8 {
        assert_eq!(lane.start_redo(1, before), Start::NotBefore(until));
        assert!(is_go(lane.start_fresh(0, until)));
        assert!(!is_go(lane.start_fresh(1, until)) && !is_go(lane.start_redo(2, until)), "one at a time");
        fail(&mut lane, 1, Blame::Lane, until);
        waits.push(until.since(before).as_millis());
        before = until;
        until = lane.closed_until(before).expect("it is open");
    }
    for (wait, full) in waits.iter().zip([1_000, 2_000, 4_000, 5_000, 5_000]) {
        assert!((full * 3 / 4..=full).contains(wait), "{waits:?}");
    }
}

#[test]
fn a_session_that_fails_by_itself_as_probe_says_nothing_and_the_next_one_goes() {
    let (mut lane, until) = tripped();
    assert!(is_go(lane.start_fresh(0, until)));
    fail(&mut lane, 1, Blame::Session, until);
    assert_eq!(lane.standing(until), Standing::Probing);
    assert!(is_go(lane.start_fresh(0, until)));
    lane.ended(2, Some(1), CallEnd::Worked, 0, until);
    assert_eq!(lane.standing(until), Standing::Thawing);
}

#[test]
fn a_silent_probe_keeps_the_next_one_waiting_only_so_long_and_one_that_ends_uncontradicted_worked() {
    let (mut lane, mut now) = tripped();
    for _ in 0..3 {
        assert!(is_go(lane.start_fresh(0, now)));
        assert_eq!(lane.start_fresh(0, now), Start::NotBefore(now + Duration::from_secs(5)));
        now = now + Duration::from_secs(5);
    }
    assert!(is_go(lane.start_fresh(0, now)));
    lane.ended(0, Some(1), CallEnd::Silent, 0, now);
    fail(&mut lane, 1, Blame::Lane, now);
    assert_eq!(lane.standing(now), Standing::Closed, "its host said so afterwards");
    now = lane.closed_until(now).expect("it is open");
    assert!(is_go(lane.start_fresh(0, now)));
    lane.ended(0, Some(1), CallEnd::Silent, 0, now);
    assert_eq!(lane.settle(now), Some(now + Duration::from_secs(1)));
    lane.settle(now + Duration::from_secs(1));
    assert_eq!(lane.standing(now + Duration::from_secs(1)), Standing::Thawing);
}

#[test]
fn silent_ends_count_as_working_so_that_a_few_failures_among_them_open_nothing() {
    let mut lane = lane();
    for n in 0..1_000_u64 {
        let now = after(n * 100);
        assert!(is_go(lane.start_fresh(0, now)));
        lane.ended(0, Some(0), CallEnd::Silent, 0, now);
        if n % 10 == 0 {
            fail(&mut lane, n, Blame::Lane, now);
        }
    }
    assert_eq!(lane.standing(after(100_000)), Standing::Open);
    for n in 0..6_u64 {
        lane.ended(0, Some(0), CallEnd::Silent, 0, after(102_000));
        fail(&mut lane, n, Blame::Lane, after(102_000));
    }
    assert_eq!(lane.standing(after(102_000)), Standing::Closed, "and an outage still does");
}

#[test]
fn calls_that_began_before_the_outage_say_nothing_after_it() {
    let mut lane = lane();
    let Start::Go { generation } = lane.start_fresh(0, START) else { panic!() };
    for session in 0..5 {
        fail(&mut lane, session, Blame::Lane, START);
    }
    let until = lane.closed_until(START).expect("it is open");
    assert!(is_go(lane.start_fresh(0, until)));
    lane.ended(9, Some(generation), CallEnd::Worked, 0, until);
    assert_eq!(lane.standing(until), Standing::Probing);
    lane.ended(9, Some(generation), CallEnd::Failed(Blame::Lane), 0, until);
    assert_eq!(lane.standing(until), Standing::Probing);
    lane.ended(1, Some(generation + 1), CallEnd::Worked, 0, until);
    for session in 0..100 {
        lane.ended(session, Some(generation), CallEnd::Failed(Blame::Lane), 0, until);
    }
    assert_eq!(lane.standing(until), Standing::Thawing, "no second trip by what hung in the outage");
}

#[test]
fn the_ramp_lets_go_one_by_one_backs_off_at_a_failure_and_ends_when_quiet() {
    let (mut lane, until) = tripped();
    assert!(is_go(lane.start_fresh(0, until)));
    lane.ended(1, Some(1), CallEnd::Worked, 0, until);
    let mut now = until;
    let gone = |lane: &mut Lane, from: Timestamp, millis: u64| {
        (0..millis).filter(|ms| is_go(lane.start_redo(*ms, from + Duration::from_millis(*ms)))).count()
    };
    let slow = gone(&mut lane, now, 4_000);
    assert!((3..=5).contains(&slow), "one a second, of a lane of which nothing is known: {slow}");
    now = now + Duration::from_secs(4);
    for _ in 0..20 {
        lane.ended(1, Some(1), CallEnd::Worked, 0, now);
    }
    let fast = gone(&mut lane, now, 4_000);
    assert!((20..=28).contains(&fast), "{fast}");
    now = now + Duration::from_secs(4);
    for session in 0..50 {
        lane.ended(session, Some(1), CallEnd::Failed(Blame::Throttle), 0, now);
    }
    assert_eq!(lane.standing(now), Standing::Thawing, "throttling does not open it again");
    assert_eq!(gone(&mut lane, now, 500), 0, "nobody goes at first");
    let slower = gone(&mut lane, now + Duration::from_millis(500), 4_000);
    assert!((12..=17).contains(&slower), "{slower}");
    assert_eq!(lane.settle(now), Some(now + Duration::from_secs(5)));
    assert_eq!(lane.settle(now + Duration::from_secs(5)), None);
    assert_eq!(lane.standing(now + Duration::from_secs(5)), Standing::Open);
    let words = said(&mut lane);
    assert_eq!(words, ["tripped", "may_probe", "thaws", "backed_off", "thawed"]);
}

#[test]
fn a_provider_that_is_gone_again_ends_the_thaw() {
    let (mut lane, until) = tripped();
    assert!(is_go(lane.start_fresh(0, until)));
    lane.ended(1, Some(1), CallEnd::Worked, 0, until);
    for session in 0..20 {
        lane.ended(session, Some(1), CallEnd::Failed(Blame::Lane), 0, until);
    }
    assert_eq!(lane.standing(until), Standing::Closed);
}

#[test]
fn a_hold_is_never_shortened_and_ends_in_a_ramp() {
    let mut lane = lane();
    assert!(lane.hold(after(10_000), START));
    assert!(!lane.hold(after(5_000), START) && !lane.hold(START, START));
    assert_eq!(lane.start_redo(1, after(9_999)), Start::NotBefore(after(10_000)));
    assert!(is_go(lane.start_redo(1, after(10_000))));
    assert!(matches!(lane.start_redo(2, after(10_000)), Start::NotBefore(later) if later > after(10_000)));
}

#[test]
fn switched_off_it_bounds_calls_and_honours_waits_and_no_more() {
    let mut lane = lane_with(|limits| (limits.lane_guard, limits.lane_concurrency) = (0, 10));
    for session in 0..1_000 {
        fail(&mut lane, session, Blame::Throttle, START);
        assert!(is_go(lane.start_redo(session, START)));
    }
    assert_eq!(lane.start_fresh(10, START), Start::Full);
    assert!(is_go(lane.start_fresh(9, START)));
    lane.hold(after(1), START);
    assert_eq!(lane.start_fresh(0, START), Start::NotBefore(after(1)));
    assert!((0..10).all(|inside| is_go(lane.start_fresh(inside, after(1)))), "no ramp");
}

#[test]
fn throttling_narrows_the_lane_and_success_widens_it_again() {
    let mut lane = lane_with(|limits| limits.lane_trip_sessions = 0);
    lane.ended(1, None, CallEnd::Failed(Blame::Throttle), 3, START);
    assert_eq!(lane.window(), 256, "so few are not what the server minds");
    for _ in 0..10 {
        lane.ended(1, None, CallEnd::Failed(Blame::Throttle), 99, START);
    }
    assert_eq!(lane.window(), 70, "once a round");
    assert_eq!(lane.start_fresh(70, START), Start::Full);
    for _ in 0..150 {
        let inside = lane.window() - 1;
        lane.ended(1, None, CallEnd::Worked, inside, after(1_000));
    }
    assert_eq!(lane.window(), 72);
    for _ in 0..1_000 {
        let inside = lane.window() - 1;
        lane.ended(1, None, CallEnd::Worked, inside, after(60_000));
    }
    assert_eq!(lane.window(), 256);
}

#[test]
fn a_noisy_session_slows_only_itself() {
    let mut lane = lane();
    let noisy = (0..1_000).filter(|_| is_go(lane.start_redo(1, START))).count();
    assert!((3..=7).contains(&noisy), "{noisy}");
    assert!(is_go(lane.start_redo(2, START)) && is_go(lane.start_redo(3, START)));
}

#[test]
fn all_calls_stay_within_six_fifths_of_what_is_offered() {
    let mut lane = lane();
    let mut calls = [0_u32; 2];
    // Ten fresh calls a second; after ten minutes redos are asked for without end.
    for tenth in 0..12_000_u64 {
        let now = after(tenth * 100);
        assert!(is_go(lane.start_fresh(0, now)));
        if tenth >= 6_000 {
            calls[0] += 1;
            calls[1] += (0..20).filter(|n| is_go(lane.start_redo(tenth * 20 + n, now))).count() as u32;
        }
    }
    let share = f64::from(calls[1]) / f64::from(calls[0]);
    assert!((0.18..=0.22).contains(&share), "{share}");
}

#[test]
fn redos_take_the_room_of_fresh_turns_that_their_sessions_cannot_make() {
    let mut lane = lane();
    for tenth in 0..6_000_u64 {
        assert!(is_go(lane.start_fresh(0, after(tenth * 100))));
    }
    let from = after(600_000 + 120_000);
    let redos = (0..60_000_u64).filter(|ms| is_go(lane.start_redo(*ms, from + Duration::from_millis(*ms)))).count();
    // Twelve a second by the offer before, which is slowly forgotten.
    assert!((500..=780).contains(&redos), "{redos}");
}

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
