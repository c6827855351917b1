//! Crashes at the places that matter, and what goes on after them (R10).

use std::sync::Arc;

use super::super::fixture::{Scene, chain, failure, failure_on_lane, kinds_chain, plan, plan_of, secs};
use super::super::{Carrier, Episode, Looked, Redoer};
use crate::failure::{Category, Kind};
use crate::policy::{Answer, Cause, Chain, Limits, Proof, Remedy, Unhandled, Verdict};

const SESSION: Category = Category::SessionError;

fn scene(steps: &[&str], redoer: Redoer) -> Scene {
    Scene::opened(plan([chain(SESSION, steps)]), redoer, failure(Kind::RateLimit))
}

#[test]
fn a_crash_between_persist_and_execute_never_runs_the_attempt_blindly() {
    let mut scene = Scene::new(plan([chain(SESSION, &["own", "other"])]));
    scene.slow_disk = true;
    scene.open(Redoer::Caller, failure(Kind::RateLimit), None).expect("there is a chain");
    let written = scene.written();
    scene.slow_disk = false;
    scene.crash(&written, Redoer::Caller);
    assert_eq!(scene.trace, ["crash", "redo 1"], "nobody knows whether it ran: the redo tells the truth");
    scene.fails(failure(Kind::RateLimit)).success().worked();
    assert_eq!(scene.verdict, Some(Verdict::Recovered(Proof::Verified)));
    assert_eq!(scene.trace[2..], ["other 1", "redo 2", "recovered (verified)"]);
    assert!(scene.noted("unknown after a restart"));
}

#[test]
fn a_step_that_only_computes_is_asked_again_under_its_number_and_counted_once() {
    let mut scene = scene(&["retry"], Redoer::Caller);
    let (seq, written) = (scene.seq(), scene.written());
    scene.crash(&written, Redoer::Caller);
    assert_eq!(scene.trace, ["retry 1", "crash", "retry 1"]);
    assert_eq!((scene.seq(), scene.memory.episode().expect("it runs").executions()), (seq, 1));
}

#[test]
fn a_crash_between_redo_and_its_report_counts_the_redo_as_failed() {
    let mut scene = scene(&["own"], Redoer::Caller);
    scene.retry(secs(0));
    let written = scene.written();
    scene.crash(&written, Redoer::Caller).success().worked();
    assert_eq!(scene.verdict, Some(Verdict::Recovered(Proof::Verified)));
    assert_eq!(scene.trace, ["own 1", "redo 1", "crash", "own 2", "redo 2", "recovered (verified)"]);
}

#[test]
fn a_client_that_can_look_tells_how_the_redo_ended() {
    let mut worked = scene(&["own"], Redoer::Client);
    worked.success();
    let written = worked.written();
    worked.crash_and_look(&written, Redoer::Client, Looked::Worked);
    assert_eq!(worked.verdict, Some(Verdict::Recovered(Proof::Verified)));

    let mut failed = Scene::opened(plan([]), Redoer::Client, failure(Kind::RateLimit));
    failed.retry(secs(0));
    let written = failed.written();
    failed.crash_and_look(&written, Redoer::Client, Looked::Failed(Arc::new(failure(Kind::Auth))));
    assert_eq!(failed.trace.last().map(String::as_str), Some("fallback_model 1"));
}

#[test]
fn a_redo_that_worked_is_recovery_even_after_the_deadline_and_under_another_chain() {
    let mut scene = Scene::new(plan([chain(SESSION, &["own"])]));
    scene.open(Redoer::Client, failure(Kind::RateLimit), Some(secs(60))).expect("there is a chain");
    scene.success();
    let written = scene.written();
    scene.plan = plan([chain(SESSION, &["another"])]);
    scene.pass(secs(90)).crash_and_look(&written, Redoer::Client, Looked::Worked);
    assert_eq!(scene.verdict, Some(Verdict::Recovered(Proof::Verified)));
}

#[test]
fn what_a_client_saw_before_any_redo_proves_nothing() {
    let mut scene = scene(&["own"], Redoer::Client);
    scene.retry(secs(9));
    let written = scene.written();
    scene.crash_and_look(&written, Redoer::Client, Looked::Worked);
    assert_eq!((scene.verdict.clone(), scene.trace.last().map(String::as_str)), (None, Some("wait 9")));
}

#[test]
fn a_deadline_that_passed_meanwhile_ends_the_episode() {
    let mut scene = Scene::new(plan([chain(SESSION, &["own"])]));
    scene.open(Redoer::Caller, failure(Kind::RateLimit), Some(secs(60))).expect("there is a chain");
    scene.retry(secs(50));
    let written = scene.written();
    scene.pass(secs(60)).crash(&written, Redoer::Caller);
    assert_eq!(scene.verdict, Some(Verdict::Exhausted { cause: Cause::Deadline }));
}

#[test]
fn a_wait_goes_on_with_what_is_left_of_it() {
    let mut scene = scene(&["own"], Redoer::Caller);
    scene.retry(secs(60));
    let written = scene.written();
    scene.pass(secs(45)).crash(&written, Redoer::Caller);
    assert_eq!(scene.trace, ["own 1", "wait 60", "crash", "wait 15"]);
    scene.elapse();
    assert_eq!(scene.trace.last().map(String::as_str), Some("redo 1"));
}

#[test]
fn a_clock_that_was_set_back_makes_no_wait_longer_than_the_cap() {
    let mut scene = scene(&["own"], Redoer::Caller);
    scene.pass(secs(10_000)).retry(secs(60));
    let written = scene.written();
    scene.now = super::super::fixture::START;
    scene.crash(&written, Redoer::Caller);
    assert_eq!(scene.trace.last().map(String::as_str), Some("wait 300"));
}

#[test]
fn an_episode_that_had_only_asked_its_lane_asks_again_and_is_not_thawed() {
    let mut scene = Scene::opened(plan([chain(SESSION, &["own"])]), Redoer::Caller, failure_on_lane(Kind::RateLimit));
    scene.success();
    let written = scene.written();
    scene.crash(&written, Redoer::Caller).lane_opens().worked();
    let trace = ["own 1", "ask acme/large", "crash", "ask acme/large", "redo 1", "recovered (verified)"];
    assert_eq!(scene.trace, trace);
    assert_eq!(scene.memory.history().recoveries(), 1, "it counts against the window");
}

#[test]
fn a_parked_episode_stays_parked_for_what_is_left() {
    let mut scene = Scene::opened(plan([chain(SESSION, &["own"])]), Redoer::Caller, failure_on_lane(Kind::RateLimit));
    scene.success().lane_closed_for(secs(60));
    let written = scene.written();
    scene.pass(secs(20)).crash(&written, Redoer::Caller);
    assert_eq!(scene.trace.last().map(String::as_str), Some("wait 40"));
    scene.elapse().lane_opens().worked();
    assert_eq!(scene.memory.history().recoveries(), 0, "a thaw ended it");
}

#[test]
fn an_open_loop_host_is_told_the_same_again_wherever_the_crash_fell() {
    let switch = || Remedy::SwitchModel { model: "acme/small".into() };
    let mut before = scene(&["own"], Redoer::Host);
    before.slow_disk = true;
    before.success_with(switch());
    let unseen = before.written();
    before.slow_disk = false;
    before.crash(&unseen, Redoer::Host);
    let told = before.redo.clone().expect("it was told");
    assert_eq!(before.trace, ["own 1", "crash", "redo 1 switch_model", "wait 600"]);

    let mut after = scene(&["own"], Redoer::Host);
    after.success_with(switch());
    assert_eq!(after.redo.as_ref(), Some(&told));
    let written = after.written();
    after.redo = None;
    after.crash(&written, Redoer::Host);
    assert_eq!(after.redo.as_ref(), Some(&told));
    after.worked();
    assert_eq!(after.verdict, Some(Verdict::Recovered(Proof::Verified)));
}

#[test]
fn a_redo_that_is_still_under_way_is_waited_for() {
    let mut caller = scene(&["own"], Redoer::Caller);
    caller.retry(secs(0));
    let written = caller.written();
    caller.crash_and_look(&written, Redoer::Caller, Looked::Pending);
    assert_eq!(caller.trace, ["own 1", "redo 1", "crash"]);
    caller.worked();
    assert_eq!(caller.verdict, Some(Verdict::Recovered(Proof::Verified)));

    let mut host = scene(&["own"], Redoer::Host);
    host.success();
    let (told, written) = (host.redo.clone(), host.written());
    host.crash_and_look(&written, Redoer::Host, Looked::Pending);
    assert_eq!(host.memory.episode().and_then(Episode::directive), told.as_ref());
    host.elapse();
    assert_eq!(host.verdict, Some(Verdict::Recovered(Proof::Assumed)));
}

/// A scene whose redo's record is on its way to the disk; what was written is that record.
fn saving(redoer: Redoer) -> (Scene, String) {
    let mut scene = scene(&["own", "own"], redoer);
    scene.slow_disk = true;
    scene.retry(secs(0));
    let written = scene.written();
    scene.unwritten.clear();
    (scene, written)
}

#[test]
fn a_redo_that_goes_on_while_the_shell_restarts_keeps_its_number_although_its_record_is_older() {
    for redoer in [Redoer::Caller, Redoer::Client] {
        let (mut scene, written) = saving(redoer);
        scene.crash_and_look(&written, redoer, Looked::Pending);
        assert!(!scene.trace.iter().any(|step| step.starts_with("redo")), "it was told already: {:?}", scene.trace);
        scene.worked();
        let durable: Vec<_> = scene.unwritten.drain(..).collect();
        for event in durable {
            scene.send(event);
        }
        assert_eq!(scene.verdict, Some(Verdict::Recovered(Proof::Verified)));
    }
}

#[test]
fn no_restart_refills_the_budget() {
    let limits = Limits { max_total_attempts: 3, ..Limits::default() };
    let plan = plan_of([chain(SESSION, &["own"])], limits);
    let mut scene = Scene::opened(plan, Redoer::Caller, failure(Kind::RateLimit));
    while scene.verdict.is_none() {
        scene.retry(secs(0));
        let written = scene.written();
        scene.crash(&written, Redoer::Caller);
        assert!(scene.trace.len() < 50, "it does not end");
    }
    assert_eq!(scene.verdict, Some(Verdict::Exhausted { cause: Cause::Attempts }));
    assert_eq!(scene.trace.iter().filter(|line| line.starts_with("own")).count(), 3);
}

#[test]
fn nobody_can_redo_any_more_and_a_parked_success_is_recovery() {
    let mut scene = Scene::opened(plan([chain(SESSION, &["own"])]), Redoer::Client, failure_on_lane(Kind::RateLimit));
    scene.success().lane_closed_for(secs(60));
    let written = scene.written();
    scene.crash(&written, Redoer::Nobody);
    assert_eq!(scene.verdict, Some(Verdict::Recovered(Proof::Assumed)));
}

#[test]
fn an_open_loop_host_takes_a_clients_wait_over_as_not_before() {
    let mut scene = scene(&["own"], Redoer::Client);
    scene.retry(secs(60));
    let (until, written) = (scene.now + secs(60), scene.written());
    scene.crash(&written, Redoer::Host);
    assert_eq!(scene.redo.as_ref().map(|redo| redo.not_before), Some(until));
}

#[test]
fn a_chain_that_reads_differently_starts_at_step_1_with_the_budget_kept() {
    let mut scene = scene(&["a", "b"], Redoer::Caller);
    scene.next().retry(secs(9));
    let written = scene.written();
    scene.plan = plan([chain(SESSION, &["x", "y"])]);
    scene.crash(&written, Redoer::Caller);
    assert_eq!(scene.trace[3..], ["crash", "x 1"]);
    assert_eq!(scene.memory.episode().expect("it runs").executions(), 3);
}

#[test]
fn a_config_reloaded_in_mid_episode_keeps_the_places_of_chains_that_read_the_same() {
    let mut scene = scene(&["a", "b"], Redoer::Caller);
    scene.next().retry(secs(9));
    let written = scene.written();
    scene.plan = plan([chain(SESSION, &["a", "b"]), chain(Category::EditError, &["new"])]);
    scene.crash(&written, Redoer::Caller).elapse().fails(failure(Kind::RateLimit));
    assert_eq!(scene.trace[3..], ["crash", "wait 9", "redo 1", "b 2"]);
}

#[test]
fn a_place_in_a_chain_that_was_left_is_dropped_when_that_chain_changed() {
    let chains = |edit: &[&str]| plan([chain(SESSION, &["a", "b"]), chain(Category::EditError, edit)]);
    let mut scene = Scene::opened(chains(&["c", "d"]), Redoer::Caller, failure(Kind::EditNotFound));
    scene.success().fails(failure(Kind::RateLimit)).retry(secs(9));
    let written = scene.written();
    scene.plan = chains(&["c", "e"]);
    scene.crash(&written, Redoer::Caller).elapse().fails(failure(Kind::EditNotFound));
    assert_eq!(scene.trace[4..], ["crash", "wait 9", "redo 2", "c 1"]);
}

#[test]
fn a_place_means_nothing_in_a_chain_that_reads_differently_now() {
    let chains = |edit: &[&str]| plan([chain(SESSION, &["a", "b"]), chain(Category::EditError, edit)]);
    let mut scene = Scene::opened(chains(&["c", "d"]), Redoer::Caller, failure(Kind::EditNotFound));
    scene.success().fails(failure(Kind::RateLimit)).success();
    scene.plan = chains(&["c", "e"]);
    scene.fails(failure(Kind::EditNotFound));
    assert_eq!(scene.trace.last().map(String::as_str), Some("c 1"));
}

#[test]
fn a_more_specific_chain_or_none_at_all_takes_over_after_a_restart() {
    let waiting = || {
        let mut scene = scene(&["a"], Redoer::Caller);
        scene.retry(secs(9));
        scene
    };
    let mut specific = waiting();
    let written = specific.written();
    specific.plan = plan([chain(SESSION, &["a"]), kinds_chain(Kind::RateLimit, &["k"])]);
    specific.crash(&written, Redoer::Caller);
    assert_eq!(specific.trace.last().map(String::as_str), Some("k 1"));

    let mut off = waiting();
    off.plan = plan([Chain { enabled: false, ..chain(SESSION, &["a"]) }]);
    off.crash(&written, Redoer::Caller);
    assert_eq!(off.verdict, Some(Verdict::Unhandled(Unhandled::Disabled)));
}

#[test]
fn a_remedy_declined_under_another_chain_goes_to_that_chains_first_step() {
    let mut scene = scene(&["a", "b"], Redoer::Host);
    scene.success_with(Remedy::Degrade);
    let written = scene.written();
    scene.plan = plan([chain(SESSION, &["x"])]);
    scene.crash(&written, Redoer::Host).remedy_fails("cannot degrade");
    assert_eq!(scene.trace.last().map(String::as_str), Some("x 1"));
}

#[test]
fn a_carried_remedy_of_unknown_fate_is_not_carried_out_again() {
    let mut scene = scene(&["own", "other"], Redoer::Client);
    scene.success_with(Remedy::Compact { preserve: vec![] });
    let written = scene.written();
    scene.crash(&written, Redoer::Client);
    assert_eq!(scene.trace, ["own 1", "carry compact", "crash", "other 1"]);
    scene.success_with(Remedy::Degrade).carried(Carrier::Turn(None)).worked();
    assert_eq!(scene.verdict, Some(Verdict::Recovered(Proof::Verified)));
}

#[test]
fn a_durable_verdict_needs_no_episode_any_more() {
    let mut scene = scene(&["own"], Redoer::Caller);
    scene.slow_disk = true;
    scene.answer(Answer::abort("enough"));
    let written = scene.written();
    scene.crash(&written, Redoer::Caller);
    assert!(scene.memory.episode().is_none());
    assert_eq!(scene.memory.last_verdict(), Some(&Verdict::Aborted { reason: "enough".into() }));
}
