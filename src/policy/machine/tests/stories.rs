//! The stories that the machine must get right, each with its verdict and its trace.

use std::sync::Arc;

use super::super::fixture::{Scene, chain, failure, failure_on_lane, kinds_chain, plan, plan_of, secs};
use super::super::{Carrier, Episode, Event, Redoer};
use crate::failure::{Category, Kind};
use crate::policy::session::{Intake, ReportKey};
use crate::policy::{Answer, Cause, Injection, Limits, Proof, Remedy, Verdict};

const SESSION: Category = Category::SessionError;

#[test]
fn a_stated_wait_of_90_s_under_a_deadline_of_60_s_is_not_begun() {
    let mut scene = Scene::new(plan([chain(SESSION, &["retry", "compact"])]));
    let mut error = failure(Kind::RateLimit);
    error.details.retry_after = Some(secs(90));
    scene.open(Redoer::Caller, error, Some(secs(60))).expect("there is a chain");
    scene.retry(secs(2));
    scene.answer(Answer::next_strategy("compacting does not help"));
    assert_eq!(scene.verdict, Some(Verdict::Exhausted { cause: Cause::Deadline }));
    assert_eq!(scene.trace, ["retry 1", "compact 1", "exhausted: the deadline passed"]);
    assert!(scene.noted("WaitRefused") && scene.noted("it would pass the deadline"));
}

#[test]
fn secrets_in_what_strategies_and_hosts_say_are_masked() {
    let mut scene = Scene::opened(plan([chain(SESSION, &["own", "own"])]), Redoer::Host, failure(Kind::Overloaded));
    let secret = "Authorization: Bearer abcdef0123456789";
    let (seq, injections) = (scene.seq(), vec![Injection::new(secret)]);
    let answer = Answer::retry_with(secs(0), secret, Remedy::Skip);
    scene.send(Event::Answered { seq, answer, injections });
    let redo = scene.redo.clone().expect("it is redone");
    assert!(redo.turn.injected_text().contains("Bearer [masked]"), "{redo:?}");
    scene.remedy_fails(secret);
    let seen = scene.written() + &scene.note_names().concat();
    assert!(!seen.contains("abcdef0123456789"), "{seen}");
    assert!(!scene.noted("abcdef0123456789") && scene.noted("Bearer [masked]"));
}

#[test]
fn overflow_then_auth_error_then_overflow_again_with_a_fallback_model() {
    let overflow = || failure(Kind::ContextOverflow);
    let cut = || Answer::retry_with(secs(0), "cut", Remedy::Truncate { ratio: 0.5, min_output_size: 500 });
    let mut scene = Scene::opened(plan([]), Redoer::Caller, overflow());
    scene.answer(cut()).carried(Carrier::Turn(None)).fails(failure(Kind::Auth));
    scene
        .success_with(Remedy::SwitchModel { model: "acme/small".into() })
        .carried(Carrier::Turn(None))
        .fails(overflow());
    scene.answer(cut()).carried(Carrier::Turn(None));
    let turn = scene.redo.clone().expect("it is redone").turn;
    assert_eq!((turn.model.as_deref(), turn.truncate_to), (Some("acme/small"), Some(0.25)));
    scene.worked();
    let trace = [
        "truncate 1",
        "carry truncate",
        "redo 1",
        "fallback_model 1",
        "carry switch_model",
        "redo 2",
        "truncate 2",
        "carry truncate",
        "redo 3",
        "recovered (verified)",
    ];
    assert_eq!(scene.trace, trace);
    let decisions = [
        "chain context_window",
        "truncate 1: retry",
        "failed: auth",
        "chain kinds.auth",
        "fallback_model 1: success",
        "failed: context_overflow",
        "chain context_window",
        "truncate 2: retry",
        "recovered (verified)",
    ];
    assert_eq!(scene.note_names(), decisions);
}

#[test]
fn a_second_auth_error_finds_the_fallback_chain_one_step_on() {
    let mut scene = Scene::opened(plan([]), Redoer::Caller, failure(Kind::Auth));
    scene.success_with(Remedy::SwitchModel { model: "acme/small".into() }).carried(Carrier::Turn(None));
    scene.fails(failure(Kind::Auth)).answer(Answer::escalate("no key works"));
    assert_eq!(scene.verdict, Some(Verdict::Escalated { reason: "no key works".into() }));
    assert_eq!(scene.trace[3..], ["escalate 1", "escalated: no key works"]);
}

#[test]
fn two_reports_of_two_categories_at_once_are_one_episode() {
    let mut scene = Scene::opened(plan([chain(SESSION, &["own"])]), Redoer::Caller, failure(Kind::RateLimit));
    let second = ReportKey::default();
    assert_eq!(scene.memory.intake(second), Intake::Joins);
    scene.success();
    assert_eq!(scene.memory.intake(second), Intake::Joins, "its result comes from the caller's own task");
    scene.worked();
    assert_eq!(scene.verdict, Some(Verdict::Recovered(Proof::Verified)));
    assert_eq!(scene.memory.intake(second), Intake::Opens);
    assert_eq!(scene.memory.episodes(), 1);
    assert_eq!(scene.trace, ["own 1", "redo 1", "recovered (verified)"]);
}

#[test]
fn an_open_loop_host_that_never_calls_succeeded_is_assumed_to_have_recovered() {
    let mut scene = Scene::opened(plan([]), Redoer::Host, failure(Kind::RateLimit));
    scene.retry(secs(2));
    let told = scene.redo.clone().expect("the answer is the directive");
    assert_eq!(told.not_before, scene.now + secs(2), "waiting is the host's");
    assert_eq!(scene.memory.episode().and_then(Episode::directive), Some(&told));
    scene.elapse();
    assert_eq!(scene.verdict, Some(Verdict::Recovered(Proof::Assumed)));
    assert_eq!(scene.trace, ["retry 1", "redo 1", "wait 602", "recovered (assumed)"]);
    assert_eq!(scene.memory.intake(ReportKey { seq: Some(told.turn.seq), turn: None }), Intake::Opens);
}

#[test]
fn an_open_loop_host_that_goes_on_with_a_later_turn_has_recovered() {
    let mut scene = Scene::opened(plan([]), Redoer::Host, failure(Kind::RateLimit));
    scene.retry(secs(2));
    assert_eq!(scene.memory.intake(ReportKey { seq: None, turn: Some(2) }), Intake::Supersedes);
    scene.send(Event::Superseded);
    assert_eq!(scene.verdict, Some(Verdict::Recovered(Proof::Assumed)));
    assert_eq!(scene.trace, ["retry 1", "redo 1", "wait 602", "recovered (assumed)"]);
}

#[test]
fn an_open_loop_host_that_declines_a_remedy_gets_the_next_step_without_it() {
    let mut scene = Scene::opened(plan([chain(SESSION, &["own", "other"])]), Redoer::Host, failure(Kind::RateLimit));
    scene.success_with(Remedy::SwitchModel { model: "acme/small".into() });
    assert_eq!(scene.redo.as_ref().and_then(|redo| redo.turn.model.as_deref()), Some("acme/small"));
    scene.remedy_fails("there is no such model here").success();
    assert_eq!(scene.redo.as_ref().map(|redo| redo.turn.model.clone()), Some(None), "it is not asked for again");
    scene.worked();
    assert_eq!(scene.verdict, Some(Verdict::Recovered(Proof::Verified)));
    let trace = ["own 1", "redo 1 switch_model", "wait 600", "other 1", "redo 2", "wait 600", "recovered (verified)"];
    assert_eq!(scene.trace, trace);
    assert!(scene.noted("there is no such model here"));
}

#[test]
fn what_an_open_loop_host_took_stays_on_later_redos() {
    let mut scene = Scene::opened(plan([chain(SESSION, &["own", "other"])]), Redoer::Host, failure(Kind::RateLimit));
    scene.success_with(Remedy::SwitchModel { model: "acme/small".into() }).fails(failure(Kind::RateLimit)).success();
    assert_eq!(scene.redo.as_ref().and_then(|redo| redo.turn.model.as_deref()), Some("acme/small"));
}

#[test]
fn success_with_nothing_to_redo_is_recovery_assumed() {
    let mut scene = Scene::opened(plan([chain(SESSION, &["own"])]), Redoer::Nobody, failure(Kind::RateLimit));
    scene.success();
    assert_eq!(scene.verdict, Some(Verdict::Recovered(Proof::Assumed)));
    assert_eq!(scene.trace, ["own 1", "recovered (assumed)"]);
}

#[test]
fn success_with_a_remedy_and_nothing_to_redo_is_recovery_once_it_is_carried_out() {
    let mut scene = Scene::opened(plan([chain(SESSION, &["compact"])]), Redoer::Nobody, failure(Kind::RateLimit));
    scene.success_with(Remedy::Compact { preserve: vec![] });
    assert_eq!(scene.verdict, None);
    scene.carried(Carrier::Client);
    assert_eq!(scene.trace, ["compact 1", "carry compact", "recovered (assumed)"]);
}

#[test]
fn a_client_without_compact_moves_the_chain_on() {
    let mut scene = Scene::opened(plan([]), Redoer::Client, failure(Kind::ServerError));
    scene.next().success_with(Remedy::Compact { preserve: vec![] }).remedy_fails("the client does not support this");
    scene.answer(Answer::abort("session failed"));
    assert_eq!(scene.verdict, Some(Verdict::Aborted { reason: "session failed".into() }));
    assert_eq!(scene.trace, ["retry 1", "compact 1", "carry compact", "abort 1", "aborted: session failed"]);
    assert!(scene.noted("the client does not support this"));
}

#[test]
fn the_deadline_passes_while_parked_on_the_last_allowed_attempt() {
    let limits = Limits { max_total_attempts: 1, ..Limits::default() };
    let mut scene = Scene::new(plan_of([chain(SESSION, &["own", "abort"])], limits));
    scene.open(Redoer::Caller, failure_on_lane(Kind::RateLimit), Some(secs(60))).expect("there is a chain");
    scene.retry(secs(0)).lane_closed_for(secs(60));
    scene.pass(secs(60)).send(Event::DeadlinePassed);
    assert_eq!(scene.verdict, Some(Verdict::Exhausted { cause: Cause::Deadline }));
    assert_eq!(scene.trace, ["own 1", "ask acme/large", "wait 60", "exhausted: the deadline passed"]);
    scene.lane_opens();
    assert_eq!(scene.trace.len(), 4, "the thaw comes too late");
}

#[test]
fn a_lane_closed_until_after_the_deadline_is_not_waited_for() {
    let mut scene = Scene::new(plan([chain(SESSION, &["own"])]));
    scene.open(Redoer::Caller, failure_on_lane(Kind::RateLimit), Some(secs(60))).expect("there is a chain");
    scene.success().lane_closed_for(secs(61));
    assert_eq!(scene.trace, ["own 1", "ask acme/large", "exhausted: the deadline passed"]);
    assert!(scene.noted("the lane stays closed until after the deadline"));
}

#[test]
fn an_own_strategy_that_answers_retry_for_ever_meets_the_limit() {
    let mut scene = Scene::opened(plan([chain(SESSION, &["own"])]), Redoer::Caller, failure(Kind::RateLimit));
    while scene.verdict.is_none() {
        scene.retry(secs(1)).elapse().fails(failure(Kind::RateLimit));
        assert!(scene.trace.len() < 100, "it does not end");
    }
    assert_eq!(scene.verdict, Some(Verdict::Exhausted { cause: Cause::Attempts }));
    let asked: Vec<&String> = scene.trace.iter().filter(|line| line.starts_with("own")).collect();
    assert_eq!(asked, (1..=10).map(|n| format!("own {n}")).collect::<Vec<_>>().iter().collect::<Vec<_>>());
}

#[test]
fn cancelled_while_waiting_it_never_redoes() {
    let mut scene = Scene::opened(plan([]), Redoer::Caller, failure(Kind::RateLimit));
    scene.retry(secs(2)).send(Event::Cancelled).elapse();
    assert_eq!(scene.verdict, Some(Verdict::Cancelled));
    assert_eq!(scene.trace, ["retry 1", "wait 2", "cancelled"]);
}

#[test]
fn reset_while_an_episode_runs_fences_everything_late() {
    let plan = plan([chain(SESSION, &["own"])]);
    let mut scene = Scene::opened(plan, Redoer::Host, failure(Kind::RateLimit));
    scene.success();
    let (old, late) = (scene.memory.episode().map(Episode::id).expect("it runs"), scene.fence());
    scene.memory.reset();
    assert_eq!(scene.memory.last_verdict(), Some(&Verdict::Cancelled));
    let of_old = ReportKey { seq: Some(late.seq), turn: None };
    assert_eq!(scene.memory.intake(of_old), Intake::Stale);

    scene.open(Redoer::Host, failure(Kind::RateLimit), Some(secs(60))).expect("a reset session begins anew");
    scene.success();
    assert_eq!(scene.memory.intake(of_old), Intake::Stale);
    let before = scene.memory.clone();
    scene.send(Event::TurnWorked { seq: late.seq });
    scene.send(Event::Answered { seq: late.seq, answer: Answer::abort("late"), injections: vec![] });
    scene.send(Event::DelayElapsed { epoch: late.epoch });
    for event in [Event::DeadlinePassed, Event::Cancelled, Event::Superseded] {
        assert_eq!(scene.memory.on_episode(old, event, &scene.plan, scene.now), []);
    }
    assert_eq!(scene.memory, before);
    scene.worked();
    assert_eq!(scene.verdict, Some(Verdict::Recovered(Proof::Verified)));
    let trace = ["own 1", "redo 1", "wait 600", "own 1", "redo 1", "wait 600", "recovered (verified)"];
    assert_eq!(scene.trace, trace);
}

#[test]
fn one_fingerprint_from_500_sessions_strikes_none_of_them_out() {
    let plan = plan([chain(SESSION, &["abort"])]);
    for _ in 0..500 {
        let mut scene = Scene::opened(plan.clone(), Redoer::Caller, failure(Kind::RateLimit));
        scene.answer(Answer::abort("no"));
        assert_eq!(scene.trace, ["abort 1", "aborted: no"]);
        let strikes = scene.memory.history().strikes().map(|strikes| strikes.at.len());
        assert_eq!(strikes, Some(1), "strikes are a session's own");
    }
}

#[test]
fn guard_violation_without_a_users_chain_is_escalated_or_left_alone() {
    let mut scene = Scene::new(plan([]));
    let refusal = scene.open(Redoer::Caller, failure(Kind::GuardBlocked), None).expect_err("no chain may run");
    assert!(matches!(refusal.verdict, Verdict::Escalated { .. }) && refusal.calls_host);
    let refusal = scene.open(Redoer::Caller, failure(Kind::UserRejected), None).expect_err("it is the person's");
    assert!(matches!(refusal.verdict, Verdict::Unhandled(_)) && !refusal.calls_host);
    assert_eq!((scene.trace.len(), scene.memory.episodes()), (0, 0));
}

#[test]
fn guard_violation_with_a_users_chain_runs_it() {
    let chains = [chain(Category::GuardViolation, &["remind_and_retry"])];
    let mut scene = Scene::opened(plan(chains), Redoer::Caller, failure(Kind::GuardBlocked));
    scene.retry(secs(1)).elapse().worked();
    assert_eq!(scene.verdict, Some(Verdict::Recovered(Proof::Verified)));
    assert_eq!(scene.trace, ["remind_and_retry 1", "wait 1", "redo 1", "recovered (verified)"]);
}

#[test]
fn leaving_a_chain_and_coming_back_keeps_each_chains_place() {
    let chains = [chain(SESSION, &["a", "b"]), chain(Category::EditError, &["c", "d"])];
    let (session, edit) = (|| failure(Kind::RateLimit), || failure(Kind::EditNotFound));
    let mut scene = Scene::opened(plan(chains), Redoer::Caller, session());
    scene.retry(secs(0)).fails(edit());
    scene.success().fails(session());
    scene.success().fails(edit());
    scene.retry(secs(0)).fails(session());
    scene.retry(secs(0)).fails(edit());
    scene.next();
    let asked: Vec<&str> = scene.trace.iter().map(|line| &**line).filter(|line| !line.starts_with("redo")).collect();
    assert_eq!(asked, ["a 1", "c 1", "a 2", "d 1", "b 1", "d 2", "exhausted: every step was tried"]);
    let places: Vec<_> = scene.notes.iter().filter(|note| format!("{:?}", note.what).contains("ChainChosen")).collect();
    assert_eq!(places.len(), 6);
}

#[test]
fn the_users_chain_for_a_kind_is_entered_from_a_failed_redo() {
    let chains = [chain(SESSION, &["a"]), kinds_chain(Kind::Auth, &["b"])];
    let mut scene = Scene::opened(plan(chains), Redoer::Caller, failure(Kind::RateLimit));
    scene.success().fails(failure(Kind::Auth));
    assert_eq!(scene.trace, ["a 1", "redo 1", "b 1"]);
    assert!(scene.noted("recovery.yaml:2:3"), "the record names the line that chose the chain");
}

#[test]
fn the_same_events_seed_and_times_give_the_same_commands() {
    let run = || {
        let mut scene = Scene::opened(plan([]), Redoer::Caller, failure_on_lane(Kind::RateLimit));
        scene.retry(secs(2)).elapse().lane_closed_for(secs(5)).elapse().lane_opens().fails(failure(Kind::Auth));
        (scene.trace, scene.notes, Arc::new(scene.memory))
    };
    assert_eq!(run(), run());
}
