//! Waits (R4), the limit of attempts (R7), and the bounds of what a strategy may say.

use super::super::fixture::{Scene, chain, failure, plan, plan_of, secs};
use super::super::{Episode, Event, Redoer};
use crate::failure::{Category, Kind};
use crate::policy::{Answer, Cause, Injection, Limits, Remedy, Verdict};

const SESSION: Category = Category::SessionError;

fn scene(steps: &[&str], redoer: Redoer) -> Scene {
    limited(steps, Limits::default().max_total_attempts, redoer)
}

fn limited(steps: &[&str], max_total_attempts: u32, redoer: Redoer) -> Scene {
    let limits = Limits { max_total_attempts, ..Limits::default() };
    Scene::opened(plan_of([chain(SESSION, steps)], limits), redoer, failure(Kind::RateLimit))
}

fn exhausted(cause: Cause) -> Option<Verdict> {
    Some(Verdict::Exhausted { cause })
}

#[test]
fn a_wait_over_the_cap_is_cut_for_a_strategy_and_not_begun_for_a_server() {
    let mut cut = scene(&["own"], Redoer::Caller);
    cut.retry(secs(10_000));
    assert_eq!(cut.trace, ["own 1", "wait 300"]);
    assert!(cut.noted("cut to max_wait_ms"));

    let mut error = failure(Kind::RateLimit);
    error.details.retry_after = Some(secs(301));
    let mut refused = Scene::opened(plan([chain(SESSION, &["own", "other"])]), Redoer::Caller, error);
    refused.retry(secs(2));
    assert_eq!(refused.trace, ["own 1", "other 1"]);
    assert!(refused.noted("longer than max_wait_ms"));
}

#[test]
fn a_stated_wait_replaces_a_shorter_one_and_counts_from_the_failure() {
    let mut error = failure(Kind::RateLimit);
    error.details.retry_after = Some(secs(60));
    let mut scene = Scene::opened(plan([chain(SESSION, &["own"])]), Redoer::Caller, error);
    scene.pass(secs(20)).retry(secs(2));
    assert_eq!(scene.trace, ["own 1", "wait 40"]);
    assert!(scene.noted("the server stated it"));
}

#[test]
fn a_stated_wait_holds_a_success_back_too() {
    let mut error = failure(Kind::RateLimit);
    error.details.retry_after = Some(secs(60));
    let mut scene = Scene::opened(plan([chain(SESSION, &["own"])]), Redoer::Caller, error);
    scene.success().elapse();
    assert_eq!(scene.trace, ["own 1", "wait 60", "redo 1"]);
}

#[test]
fn the_last_allowed_attempt_still_waits_and_redoes() {
    let mut scene = limited(&["own"], 1, Redoer::Caller);
    scene.retry(secs(2)).elapse().fails(failure(Kind::RateLimit));
    assert_eq!(scene.trace, ["own 1", "wait 2", "redo 1", "exhausted: the limit of attempts is reached"]);
}

#[test]
fn where_nobody_can_redo_there_is_no_sleep_after_the_last_allowed_attempt() {
    let mut scene = limited(&["own"], 1, Redoer::Nobody);
    scene.retry(secs(2));
    assert_eq!(scene.trace, ["own 1", "exhausted: the limit of attempts is reached"]);
}

#[test]
fn the_limit_lets_a_closing_abort_speak_uncounted() {
    for closing in ["abort", "escalate"] {
        let mut scene = limited(&["own", "other", closing], 1, Redoer::Caller);
        scene.next();
        assert_eq!(scene.trace, ["own 1".to_owned(), format!("{closing} 1")]);
        assert_eq!(scene.memory.episode().expect("it runs").executions(), 1);
        scene.answer(Answer::abort("the last words"));
        assert_eq!(scene.verdict, Some(Verdict::Aborted { reason: "the last words".into() }));
    }
}

#[test]
fn a_closing_step_that_does_not_close_is_the_limits_verdict() {
    for answer in [Answer::next_strategy("no"), Answer::success("yes"), Answer::retry(secs(1), "again")] {
        let mut scene = limited(&["own", "abort"], 1, Redoer::Caller);
        scene.next().answer(answer);
        assert_eq!(scene.verdict, exhausted(Cause::Attempts));
    }
}

#[test]
fn no_attempts_allowed_is_a_limit_like_any_other() {
    let scene = limited(&["own"], 0, Redoer::Caller);
    assert_eq!((scene.trace.len(), scene.verdict), (1, exhausted(Cause::Attempts)));
    let closing = limited(&["own", "abort"], 0, Redoer::Caller);
    assert_eq!(closing.trace, ["abort 1"]);
}

#[test]
fn the_end_of_the_chain_at_the_limit_is_the_end_of_the_chain() {
    let mut scene = limited(&["own", "other"], 2, Redoer::Nobody);
    scene.next().next();
    assert_eq!(scene.verdict, exhausted(Cause::Chain));
}

#[test]
fn an_answer_that_cannot_be_followed_counts_as_next_strategy() {
    for ratio in [f64::NAN, f64::INFINITY, 0.0, -0.5, 1.5] {
        let mut scene = scene(&["own", "other"], Redoer::Caller);
        scene.success_with(Remedy::Truncate { ratio, min_output_size: 0 });
        assert_eq!(scene.trace, ["own 1", "other 1"], "{ratio}");
        let written = scene.written();
        scene.crash(&written, Redoer::Caller);
    }
}

#[test]
fn what_a_strategy_says_is_bounded() {
    let mut scene = scene(&["own"], Redoer::Caller);
    let seq = scene.seq();
    let injections = (0..1_000).map(|n| Injection::new(format!("text {n}"))).collect();
    scene.send(Event::Answered { seq, answer: Answer::abort("ä".repeat(1_000_000)), injections });
    let kept = scene.memory.kept().expect("it aborted");
    assert!(matches!(&kept.verdict, Verdict::Aborted { reason } if reason.chars().count() == 1_000));
    assert_eq!(kept.injections.len(), Episode::INJECTIONS_KEPT);
    assert_eq!(kept.injections.last().map(Injection::as_str), Some("text 999"));
    assert!(kept.attempts[0].message.as_ref().is_some_and(|text| text.len() <= 2_000));
}

#[test]
fn the_attempts_kept_are_bounded_and_the_newest() {
    let limits = Limits { max_total_attempts: 100, ..Limits::default() };
    let plan = plan_of([chain(SESSION, &["own"])], limits);
    let mut scene = Scene::opened(plan, Redoer::Nobody, failure(Kind::RateLimit));
    for _ in 0..99 {
        scene.retry(secs(0));
    }
    let attempts = scene.memory.episode().expect("one is left").attempts();
    assert_eq!((attempts.len(), attempts[0].seq, attempts[63].seq), (Episode::ATTEMPTS_KEPT, 36, 99));
}
