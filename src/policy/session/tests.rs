//! Limits over several episodes: R7's window, R16's strikes, and what a report is (R8).

use super::{Intake, ReportKey};
use crate::failure::{Category, Kind, RecoveryError};
use crate::policy::machine::fixture::{Scene, chain, failure, failure_on_lane, plan, plan_of, secs};
use crate::policy::machine::{Event, Redoer};
use crate::policy::{Answer, Limits, Proof, Verdict};

const SESSION: Category = Category::SessionError;
const MINUTE: u64 = 60;
const DAY: u64 = 24 * 60 * MINUTE;

fn scene() -> Scene {
    Scene::new(plan([chain(SESSION, &["own"])]))
}

/// A failure whose episode is exhausted.
fn exhausts(scene: &mut Scene, kind: Kind) -> Result<(), super::Refusal> {
    scene.open(Redoer::Caller, failure(kind), None)?;
    scene.next();
    assert!(matches!(scene.verdict, Some(Verdict::Exhausted { .. })));
    Ok(())
}

/// A failure whose redo works.
fn recovers(scene: &mut Scene, error: RecoveryError) -> Result<(), super::Refusal> {
    scene.open(Redoer::Caller, error, None)?;
    scene.success();
    if scene.trace.last().is_some_and(|last| last.starts_with("ask")) {
        scene.lane_opens();
    }
    scene.worked();
    assert_eq!(scene.verdict, Some(Verdict::Recovered(Proof::Verified)));
    Ok(())
}

#[test]
fn three_equal_failures_minutes_apart_escalate_and_call_the_host_once() {
    let mut scene = scene();
    for _ in 0..3 {
        exhausts(&mut scene, Kind::RateLimit).expect("no streak yet");
        scene.pass(secs(5 * MINUTE));
    }
    let refusal = exhausts(&mut scene, Kind::RateLimit).expect_err("three strikes");
    assert!(matches!(refusal.verdict, Verdict::Escalated { .. }) && refusal.calls_host);
    let again = exhausts(&mut scene, Kind::RateLimit).expect_err("still three strikes");
    assert!(matches!(again.verdict, Verdict::Escalated { .. }) && !again.calls_host, "once per streak");
    assert_eq!(scene.memory.episodes(), 3, "no chain ran");
}

#[test]
fn three_equal_failures_days_apart_are_three_episodes() {
    let mut scene = scene();
    for _ in 0..6 {
        exhausts(&mut scene, Kind::RateLimit).expect("older strikes do not count");
        scene.pass(secs(DAY));
    }
}

#[test]
fn another_failure_in_between_begins_a_new_row() {
    let mut scene = scene();
    for kind in [Kind::RateLimit, Kind::RateLimit, Kind::Timeout, Kind::RateLimit, Kind::RateLimit] {
        exhausts(&mut scene, kind).expect("no three in a row");
        scene.pass(secs(MINUTE));
    }
    exhausts(&mut scene, Kind::RateLimit).expect("the third of this row");
    exhausts(&mut scene, Kind::RateLimit).expect_err("three in a row");
}

#[test]
fn a_recovery_whose_failure_returns_within_the_quiet_period_is_a_strike() {
    let mut scene = scene();
    for _ in 0..3 {
        recovers(&mut scene, failure(Kind::RateLimit)).expect("no streak yet");
        scene.pass(secs(MINUTE));
    }
    recovers(&mut scene, failure(Kind::RateLimit)).expect_err("it returned three times");
}

#[test]
fn a_recovery_after_which_a_turn_worked_is_no_strike_and_ends_the_row() {
    let mut scene = scene();
    exhausts(&mut scene, Kind::RateLimit).expect("no streak yet");
    exhausts(&mut scene, Kind::RateLimit).expect("no streak yet");
    for _ in 0..5 {
        recovers(&mut scene, failure(Kind::RateLimit)).expect("no streak");
        scene.memory.turn_worked();
        assert_eq!(scene.memory.history().strikes(), None);
        scene.pass(secs(MINUTE));
    }
}

#[test]
fn a_failure_that_returns_after_the_quiet_period_is_no_strike() {
    let mut scene = scene();
    for _ in 0..5 {
        recovers(&mut scene, failure(Kind::RateLimit)).expect("no streak");
        scene.pass(secs(10 * MINUTE + 1));
    }
    assert_eq!(scene.memory.history().strikes(), None);
}

#[test]
fn escalations_and_cancellations_are_no_strikes() {
    let mut scene = scene();
    for _ in 0..5 {
        scene.open(Redoer::Caller, failure(Kind::RateLimit), None).expect("no streak");
        scene.answer(Answer::escalate("a person must look"));
        scene.open(Redoer::Caller, failure(Kind::RateLimit), None).expect("no streak");
        scene.send(Event::Cancelled);
    }
    assert_eq!(scene.memory.history().strikes(), None);
}

#[test]
fn a_streak_that_lapsed_and_filled_again_calls_the_host_again() {
    let mut scene = scene();
    for _ in 0..3 {
        exhausts(&mut scene, Kind::RateLimit).expect("no streak yet");
        scene.pass(secs(15 * MINUTE));
    }
    assert!(exhausts(&mut scene, Kind::RateLimit).expect_err("three strikes").calls_host);
    scene.pass(secs(20 * MINUTE));
    exhausts(&mut scene, Kind::RateLimit).expect("the oldest strike is too old");
    assert!(exhausts(&mut scene, Kind::RateLimit).expect_err("three strikes again").calls_host);
}

#[test]
fn neither_a_restart_nor_anything_but_a_reset_forgets_strikes() {
    let mut scene = scene();
    for _ in 0..3 {
        exhausts(&mut scene, Kind::RateLimit).expect("no streak yet");
    }
    let written = scene.written();
    scene.crash(&written, Redoer::Caller);
    exhausts(&mut scene, Kind::RateLimit).expect_err("three strikes");
    scene.memory.reset();
    exhausts(&mut scene, Kind::RateLimit).expect("a reset session begins anew");
}

#[test]
fn the_window_escalates_a_failure_that_recovers_and_returns_for_ever() {
    let limits = Limits { max_recoveries: 5, max_same_failure: 1_000, ..Limits::default() };
    let mut scene = Scene::new(plan_of([chain(SESSION, &["own"])], limits));
    for _ in 0..5 {
        recovers(&mut scene, failure(Kind::RateLimit)).expect("the window has room");
        scene.memory.turn_worked();
        scene.pass(secs(MINUTE));
    }
    let written = scene.written();
    scene.crash(&written, Redoer::Caller);
    let refusal = recovers(&mut scene, failure(Kind::RateLimit)).expect_err("the window is full");
    assert!(matches!(refusal.verdict, Verdict::Escalated { .. }) && refusal.calls_host);
    scene.pass(secs(56 * MINUTE));
    recovers(&mut scene, failure(Kind::RateLimit)).expect("the window rolled on");
}

#[test]
fn episodes_that_a_thaw_ended_do_not_fill_the_window() {
    let limits = Limits { max_recoveries: 2, max_same_failure: 1_000, ..Limits::default() };
    let mut scene = Scene::new(plan_of([chain(SESSION, &["own", "other"])], limits));
    for _ in 0..5 {
        scene.open(Redoer::Caller, failure_on_lane(Kind::RateLimit), None).expect("the window has room");
        scene.success().lane_closed_for(secs(30)).elapse().lane_opens().worked();
    }
    assert_eq!(scene.memory.history().recoveries(), 0);
    // Parked once, but ended by another redo: it counts.
    scene.open(Redoer::Caller, failure_on_lane(Kind::RateLimit), None).expect("the window has room");
    scene.success().lane_closed_for(secs(30)).elapse().lane_opens().fails(failure(Kind::RateLimit));
    scene.success().worked();
    assert_eq!(scene.memory.history().recoveries(), 1);
    // Let go by a thaw, but not ended by it.
    scene.open(Redoer::Caller, failure_on_lane(Kind::RateLimit), None).expect("the window has room");
    scene.success().lane_closed_for(secs(30)).elapse().lane_opens().send(Event::Cancelled);
    assert_eq!(scene.memory.history().recoveries(), 2);
}

#[test]
fn a_recovery_is_not_kept_and_every_other_verdict_is() {
    let mut scene = scene();
    recovers(&mut scene, failure(Kind::RateLimit)).expect("the window has room");
    assert!(scene.memory.kept().is_none());
    assert_eq!(scene.memory.last_verdict(), Some(&Verdict::Recovered(Proof::Verified)));
    exhausts(&mut scene, Kind::Timeout).expect("no streak");
    let kept = scene.memory.kept().expect("it is kept");
    assert_eq!((kept.episode, kept.executions, kept.attempts.len(), kept.at), (2, 1, 1, scene.now));
    let written = scene.written();
    scene.crash(&written, Redoer::Caller);
    assert!(scene.memory.kept().is_some());
}

#[test]
fn a_report_by_its_seq_is_the_redos_result_or_stale() {
    let key = |seq| ReportKey { seq: Some(seq), turn: None };
    let mut scene = scene();
    assert_eq!(scene.memory.intake(key(1)), Intake::Opens, "nothing is remembered that it could belong to");
    scene.open(Redoer::Host, failure(Kind::RateLimit), None).expect("there is a chain");
    assert_eq!(scene.memory.intake(key(1)), Intake::Stale, "nobody was told to redo yet");
    scene.success();
    assert_eq!(scene.memory.intake(key(1)), Intake::Result);
    assert_eq!(scene.memory.intake(key(9)), Intake::Stale);
    scene.worked();
    assert_eq!(scene.memory.intake(key(1)), Intake::Stale, "that redo was seen to work");
    scene.open(Redoer::Host, failure(Kind::RateLimit), None).expect("there is a chain");
    scene.success();
    assert_eq!(scene.memory.intake(key(1)), Intake::Stale, "numbers are never used twice");
    assert_eq!(scene.memory.intake(key(2)), Intake::Result);
}

#[test]
fn a_report_by_its_turn_joins_is_ignored_or_waits() {
    let key = |turn| ReportKey { seq: None, turn: Some(turn) };
    let mut scene = scene();
    // The stage numbers the failed turn 1.
    scene.open(Redoer::Caller, failure(Kind::RateLimit), None).expect("there is a chain");
    assert_eq!([0, 1, 2].map(|turn| scene.memory.intake(key(turn))), [Intake::Stale, Intake::Joins, Intake::Waits]);
    scene.success();
    assert_eq!(scene.memory.intake(key(2)), Intake::Waits, "only an open loop goes on by itself");
}

#[test]
fn an_open_loops_report_without_numbers_is_the_result_while_the_host_redoes() {
    let mut scene = scene();
    scene.open(Redoer::Host, failure(Kind::RateLimit), None).expect("there is a chain");
    assert_eq!(scene.memory.intake(ReportKey::default()), Intake::Joins);
    scene.success();
    assert_eq!(scene.memory.intake(ReportKey::default()), Intake::Result);
}
