//! The event table, cell by cell (DESIGN §2).

use super::super::fixture::{START, Scene, chain, failure, failure_on_lane, plan, secs, session};
use super::super::{Carrier, Command, Episode, Event, Fence, Moment, Opening, PhaseName, Record, Redoer};
use crate::failure::{Category, Kind};
use crate::policy::{Answer, Cause, Injection, Proof, Remedy, Unhandled, Verdict};

const SESSION: Category = Category::SessionError;

fn scene(steps: &[&str], redoer: Redoer) -> Scene {
    Scene::opened(plan([chain(SESSION, steps)]), redoer, failure(Kind::RateLimit))
}

fn on_lane(steps: &[&str], redoer: Redoer) -> Scene {
    Scene::opened(plan([chain(SESSION, steps)]), redoer, failure_on_lane(Kind::RateLimit))
}

fn exhausted(cause: Cause) -> Option<Verdict> {
    Some(Verdict::Exhausted { cause })
}

fn recovered(proof: Proof) -> Option<Verdict> {
    Some(Verdict::Recovered(proof))
}

#[test]
fn an_acting_strategy_runs_only_once_its_attempt_is_durable() {
    let plan = plan([chain(SESSION, &["own"])]);
    let error = failure(Kind::RateLimit).into();
    let opening =
        Opening { episode: 1, error, redoer: Redoer::Caller, turn: None, deadline: None, after: Fence::default() };
    let at = Moment { now: START, seed: 7 };
    let (mut episode, commands) = Episode::start(session(), opening, &plan, at).expect("there is a chain");
    assert_eq!(commands, [Command::Persist { seq: 1, record: Record::Attempt }]);
    let early = Event::Answered { seq: 1, answer: Answer::success("too early"), injections: vec![] };
    assert_eq!(episode.on(early, &plan, START), []);
    let commands = episode.on(Event::Persisted { seq: 1, record: Record::Attempt }, &plan, START);
    assert!(matches!(&commands[..], [Command::Execute(attempt)] if attempt.seq == 1 && attempt.attempt == 1));
}

#[test]
fn a_strategy_that_only_computes_is_asked_at_once_and_its_redo_is_its_record() {
    let mut scene = Scene::new(plan([chain(SESSION, &["compact"])]));
    scene.slow_disk = true;
    scene.open(Redoer::Caller, failure(Kind::RateLimit), None).expect("there is a chain");
    assert_eq!(scene.unwritten, []);
    scene.success_with(Remedy::Compact { preserve: vec![] });
    assert_eq!(scene.unwritten, [Event::Persisted { seq: 1, record: Record::Redo }]);
    assert_eq!(scene.trace, ["compact 1"], "nothing of the redo happens before its record is durable");
}

#[test]
fn success_is_recovery_only_once_the_redone_turn_worked() {
    let mut scene = scene(&["own"], Redoer::Caller);
    scene.success();
    assert_eq!((scene.memory.episode().map(Episode::phase), &scene.verdict), (Some(PhaseName::Redoing), &None));
    scene.worked();
    assert_eq!(scene.verdict, recovered(Proof::Verified));
    assert_eq!(scene.trace, ["own 1", "redo 1", "recovered (verified)"]);
}

#[test]
fn after_retry_a_failed_redo_gives_the_same_step_its_next_attempt() {
    let mut scene = scene(&["own", "other"], Redoer::Caller);
    scene.retry(secs(2)).elapse().fails(failure(Kind::RateLimit));
    assert_eq!(scene.trace, ["own 1", "wait 2", "redo 1", "own 2"]);
}

#[test]
fn after_success_a_failed_redo_goes_to_the_next_step() {
    let mut scene = scene(&["own", "other"], Redoer::Caller);
    scene.success().fails(failure(Kind::RateLimit));
    assert_eq!(scene.trace, ["own 1", "redo 1", "other 1"]);
    scene.next();
    assert_eq!(scene.verdict, exhausted(Cause::Chain));
}

#[test]
fn next_strategy_and_a_busy_runner_go_to_the_next_step() {
    let mut scene = scene(&["own", "other", "third"], Redoer::Caller);
    scene.next();
    let seq = scene.seq();
    scene.send(Event::RunnerBusy { seq });
    assert_eq!(scene.trace, ["own 1", "other 1", "third 1"]);
    let attempts = scene.memory.episode().expect("it runs").attempts();
    assert_eq!(attempts.iter().map(|attempt| &*attempt.result).collect::<Vec<_>>(), ["next_strategy"; 2]);
}

#[test]
fn abort_and_escalate_end_the_episode_with_their_reason() {
    let mut aborted = scene(&["own", "other"], Redoer::Caller);
    aborted.answer(Answer::abort("enough"));
    assert_eq!(aborted.verdict, Some(Verdict::Aborted { reason: "enough".into() }));
    let mut escalated = scene(&["own", "other"], Redoer::Caller);
    escalated.answer(Answer::escalate("ask Kim"));
    assert_eq!(escalated.verdict, Some(Verdict::Escalated { reason: "ask Kim".into() }));
}

#[test]
fn a_failed_redo_without_a_chain_ends_unhandled_with_that_failure() {
    let mut scene = scene(&["own"], Redoer::Caller);
    scene.success().fails(failure(Kind::ToolPairMismatch));
    assert_eq!(scene.verdict, Some(Verdict::Unhandled(Unhandled::NoChain)));
    let kept = scene.memory.kept().expect("an episode's verdict is kept");
    assert_eq!(kept.error.kind, Kind::ToolPairMismatch);
}

#[test]
fn a_failed_redo_that_is_no_known_failure_ends_unhandled() {
    let mut scene = scene(&["own"], Redoer::Caller);
    scene.success();
    let seq = scene.seq();
    scene.send(Event::Reported { seq, error: None });
    assert_eq!(scene.verdict, Some(Verdict::Unhandled(Unhandled::NotDetected)));
}

#[test]
fn a_clients_silent_redo_is_a_timeout() {
    let mut scene = scene(&["own", "other"], Redoer::Client);
    scene.success().elapse();
    assert_eq!(scene.trace, ["own 1", "redo 1", "wait 3600", "other 1"]);
    assert_eq!(scene.memory.episode().expect("it goes on").error().kind, Kind::Timeout);
}

#[test]
fn a_redo_asks_its_lane_after_the_wait_and_before_its_record() {
    let mut scene = on_lane(&["own"], Redoer::Caller);
    scene.retry(secs(2)).elapse();
    assert_eq!(scene.trace, ["own 1", "wait 2", "ask acme/large"]);
    scene.lane_opens();
    assert_eq!(scene.trace.last().map(String::as_str), Some("redo 1"));
}

#[test]
fn a_closed_lane_is_asked_again_when_it_said() {
    let mut scene = on_lane(&["own"], Redoer::Caller);
    scene.success().lane_closed_for(secs(30));
    assert_eq!(scene.memory.episode().map(Episode::phase), Some(PhaseName::Parked));
    scene.elapse().lane_opens().worked();
    let trace = ["own 1", "ask acme/large", "wait 30", "ask acme/large", "redo 1", "recovered (verified)"];
    assert_eq!(scene.trace, trace);
}

#[test]
fn a_lane_that_opens_early_lets_the_parked_go() {
    let mut scene = on_lane(&["own"], Redoer::Caller);
    scene.success().lane_closed_for(secs(30)).lane_opens();
    assert_eq!(scene.trace, ["own 1", "ask acme/large", "wait 30", "redo 1"]);
}

#[test]
fn max_park_over_is_the_next_step() {
    let mut scene = on_lane(&["own", "other"], Redoer::Caller);
    scene.success().lane_closed_for(secs(10_000));
    assert_eq!(scene.trace.last().map(String::as_str), Some("wait 1800"), "not longer than max_park");
    scene.elapse().lane_closed_for(secs(10));
    assert_eq!(scene.trace.last().map(String::as_str), Some("other 1"));
}

#[test]
fn a_lane_that_names_a_past_time_is_not_asked_in_a_spin() {
    let mut scene = on_lane(&["own"], Redoer::Caller);
    scene.success().lane_closed_for(secs(0));
    assert_eq!(scene.trace.last().map(String::as_str), Some("wait 0.1"));
}

#[test]
fn another_model_is_another_lane() {
    let mut error = failure_on_lane(Kind::RateLimit);
    error.details.retry_after = Some(secs(90));
    let mut scene = Scene::opened(plan([chain(SESSION, &["own"])]), Redoer::Caller, error);
    scene.success_with(Remedy::SwitchModel { model: "acme/small".into() }).carried(Carrier::Turn(None));
    assert_eq!(scene.trace, ["own 1", "carry switch_model", "redo 1"]);
    let redo = scene.redo.as_ref().expect("it is redone");
    assert_eq!(redo.turn.model.as_deref(), Some("acme/small"));
}

#[test]
fn a_remedy_that_rides_stays_on_every_later_redo_and_an_instruction_does_not() {
    let mut scene = scene(&["own", "other", "third"], Redoer::Caller);
    let cut = || Remedy::Truncate { ratio: 0.5, min_output_size: 500 };
    scene.success_with(cut()).carried(Carrier::Turn(None)).fails(failure(Kind::RateLimit));
    scene.success_with(cut()).carried(Carrier::Turn(Some(Injection::new("be brief"))));
    let second = scene.redo.clone().expect("it is redone").turn;
    assert_eq!((second.truncate_to, second.injected_text()), (Some(0.25), "be brief".into()));
    scene.fails(failure(Kind::RateLimit));
    scene.success_with(cut()).carried(Carrier::Turn(None));
    let third = scene.redo.clone().expect("it is redone").turn;
    assert_eq!((third.truncate_to, third.injections.len(), third.redo), (Some(0.125), 0, 3));
}

#[test]
fn a_failed_remedy_is_the_next_step_and_the_turn_is_not_redone() {
    let mut scene = scene(&["own", "other"], Redoer::Caller);
    scene.success_with(Remedy::Rollback { checkpoint: None }).remedy_fails("no checkpoint");
    assert_eq!(scene.trace, ["own 1", "carry rollback", "other 1"]);
    assert!(scene.noted("no checkpoint"));
}

#[test]
fn a_remedy_that_fails_late_does_not_break_off_the_redo() {
    let mut scene = scene(&["own", "other"], Redoer::Caller);
    scene.success_with(Remedy::Compact { preserve: vec![] }).carried(Carrier::Client).remedy_fails("late");
    assert_eq!(scene.memory.episode().map(Episode::phase), Some(PhaseName::Redoing));
}

#[test]
fn a_client_that_cannot_redo_after_all_moves_the_chain_on() {
    let mut scene = scene(&["own", "other"], Redoer::Client);
    scene.success().remedy_fails("the client does not support this");
    assert_eq!(scene.trace, ["own 1", "redo 1", "wait 3600", "other 1"]);
}

#[test]
fn a_shell_that_gives_up_escalates() {
    let mut scene = scene(&["own"], Redoer::Caller);
    scene.send(Event::GivenUp { reason: "it failed too often".into() });
    assert_eq!(scene.verdict, Some(Verdict::Escalated { reason: "it failed too often".into() }));
}

#[test]
fn where_nobody_can_redo_retry_asks_the_strategy_again_after_its_delay() {
    let mut scene = scene(&["own"], Redoer::Nobody);
    scene.retry(secs(2)).elapse().success();
    assert_eq!(scene.trace, ["own 1", "wait 2", "own 2", "recovered (assumed)"]);
}

#[test]
fn steps_that_the_facts_rule_out_are_passed_over_without_wait_redo_or_attempt() {
    let mut error = failure(Kind::Overloaded);
    error.retryable = false;
    let scene = Scene::opened(plan([]), Redoer::Caller, error);
    assert_eq!(scene.trace, ["compact 1"]);
    assert_eq!(scene.memory.episode().expect("it runs").executions(), 1);
    assert!(scene.noted("StepSkipped"));
}

#[test]
fn the_deadline_ends_every_open_phase() {
    let deadline = Some(secs(60));
    type Go = fn(&mut Scene);
    let cases: [(&str, Go); 6] = [
        ("acting", |_| {}),
        ("waiting", |scene| {
            scene.retry(secs(2));
        }),
        ("asking", |scene| {
            scene.success();
        }),
        ("parked", |scene| {
            scene.success().lane_closed_for(secs(9));
        }),
        ("carrying", |scene| {
            scene.success_with(Remedy::Degrade).lane_opens();
        }),
        ("redoing", |scene| {
            scene.success().lane_opens();
        }),
    ];
    for (phase, go) in cases {
        for event in [Event::DeadlinePassed, Event::Cancelled] {
            let mut scene = Scene::new(plan([chain(SESSION, &["own"])]));
            scene.open(Redoer::Client, failure_on_lane(Kind::RateLimit), deadline).expect("there is a chain");
            go(&mut scene);
            let cancelled = event == Event::Cancelled;
            scene.send(event);
            let verdict = if cancelled { Some(Verdict::Cancelled) } else { exhausted(Cause::Deadline) };
            assert_eq!(scene.verdict, verdict, "{phase}");
        }
    }
}

#[test]
fn a_deadline_that_the_episode_does_not_have_ends_nothing() {
    let mut scene = scene(&["own"], Redoer::Caller);
    scene.send(Event::DeadlinePassed);
    assert_eq!(scene.verdict, None);
}
