#![allow(clippy::unwrap_used)]

use super::*;
use crate::client::command::{Captured, JsonPointer};

fn captured(text: &str) -> Captured {
    Captured { tail: text.into(), bytes: text.len() as u64, sink_closed: false }
}

fn ended(code: i32, stdout: &str, stderr: &str) -> ChildOutcome {
    ChildOutcome {
        exit: Exit::Code(code),
        ended_by: EndedBy::Own,
        limit: None,
        stdout: captured(stdout),
        stderr: captured(stderr),
        duration: Duration::from_secs(1),
    }
}

fn failure(rules: &FailureRules, outcome: &ChildOutcome) -> Report {
    match judge(rules, outcome) {
        Judgement::Failed(report) => *report,
        other => panic!("{other:?}"),
    }
}

fn matching(failure: &str, success: &str) -> FailureRules {
    let pattern = |text: &str| (!text.is_empty()).then(|| FailureRules::pattern(text).unwrap());
    FailureRules {
        failure_regex: pattern(failure).into_iter().collect(),
        success_regex: pattern(success).into_iter().collect(),
        ..FailureRules::default()
    }
}

fn errors_at(pointer: &str) -> FailureRules {
    FailureRules { json_error: vec![JsonPointer::parse(pointer).unwrap()], ..FailureRules::default() }
}

#[test]
fn a_zero_exit_is_not_searched_for_words() {
    let talk = ended(0, "I fixed the 429 rate limit error: 500 Internal Server Error", "fatal: timed out");
    assert_eq!(judge(&FailureRules::default(), &talk), Judgement::Worked);
    assert_eq!(judge(&FailureRules::default(), &ended(0, "", "")), Judgement::Worked, "many commands say nothing");
}

#[test]
fn a_report_has_the_form_of_a_captured_run() {
    let report = failure(&FailureRules::default(), &ended(2, "out", "err"));
    assert_eq!(report.value, json!({"exit_code": 2, "stderr": "err", "stdout": "out"}));
    assert_eq!((report.source, report.exit_code, report.signal), (Source::Command, Some(2), None));

    let killed = ChildOutcome { exit: Exit::Signal("SIGKILL".into()), ..ended(0, "", "") };
    let report = failure(&FailureRules::default(), &killed);
    assert_eq!(report.value, json!({"exit_code": null, "signal": "SIGKILL", "stderr": "", "stdout": ""}));
    assert_eq!((report.exit_code, report.signal.as_deref()), (None, Some("SIGKILL")));
}

#[test]
fn a_report_carries_the_ends_of_long_streams() {
    let report = failure(&FailureRules::default(), &ended(1, &format!("{}the end", "ä".repeat(9_000)), ""));
    let text = report.value["stdout"].as_str().unwrap();
    assert!(text.len() <= REPORT_TAIL && text.len() > REPORT_TAIL - 4 && text.ends_with("äthe end"));
}

#[test]
fn a_failure_pattern_counts_on_both_streams_and_gives_its_line() {
    let rules = matching("^litellm\\.\\w+Error", "");
    let report = failure(&rules, &ended(0, "Tokens: 3\nlitellm.RateLimitError: wait 644ms\n", ""));
    assert_eq!(report.value["message"], "litellm.RateLimitError: wait 644ms");
    assert_eq!(report.exit_code, None, "a zero that is known to be wrong is no fact");
    let found = crate::PatternRegistry::new().detect_first(&report, crate::Timestamp::default());
    assert_eq!(found.into_failure().unwrap().kind, Kind::RateLimit);
    assert!(matches!(judge(&rules, &ended(0, "", "x\nlitellm.APIError")), Judgement::Failed(_)));
    assert_eq!(judge(&rules, &ended(0, "about litellm.APIError", "")), Judgement::Worked);
}

#[test]
fn with_a_success_pattern_a_zero_exit_needs_it_and_another_exit_fails_all_the_same() {
    let rules = matching("", "^DONE$");
    assert_eq!(judge(&rules, &ended(0, "work\nDONE\n", "")), Judgement::Worked);
    assert!(matches!(judge(&rules, &ended(0, "work\n", "DONE")), Judgement::Failed(_)));
    assert!(matches!(judge(&rules, &ended(1, "DONE\n", "")), Judgement::Failed(_)));
}

#[test]
fn an_empty_answer_is_a_failure_only_when_asked_for() {
    let rules = FailureRules { empty_is_failure: true, ..FailureRules::default() };
    assert_eq!(failure(&rules, &ended(0, " \n", "warning")).value["code"], "empty_response");
    assert_eq!(judge(&rules, &ended(0, "ok", "")), Judgement::Worked);
    let blank_tail = Captured { tail: b"\n".to_vec(), bytes: 900_000, sink_closed: false };
    assert_eq!(judge(&rules, &ChildOutcome { stdout: blank_tail, ..ended(0, "", "") }), Judgement::Worked);
}

#[test]
fn the_last_value_with_a_place_for_the_error_decides() {
    let line = |error: &str| format!("{{\"type\":\"message_end\",\"message\":{{\"errorMessage\":{error}}}}}\n");
    let rules = errors_at("/message/errorMessage");
    let end = "{\"type\":\"agent_end\"}\n";
    assert_eq!(judge(&rules, &ended(0, &(line("\"500\"") + &line("null") + end), "")), Judgement::Worked);
    let report = failure(&rules, &ended(0, &(line("null") + &line("\"500 oops\"") + end), ""));
    assert_eq!(report.value["error"], "500 oops");

    let stream = "{\"type\":\"error\",\"message\":\"Reconnecting\"}\n{\"type\":\"turn.failed\",\"error\":{\"message\":\"no\"}}\n";
    assert_eq!(failure(&errors_at("/error"), &ended(0, stream, "")).value["error"], json!({"message": "no"}));
}

#[test]
fn a_bare_mark_brings_its_object() {
    let report = failure(&errors_at("/is_error"), &ended(0, r#"{"is_error":true,"result":"API Error: 500"}"#, ""));
    assert_eq!(report.value["error"]["result"], "API Error: 500");
    assert_eq!(judge(&errors_at("/is_error"), &ended(0, r#"{"is_error":false}"#, "")), Judgement::Worked);
    assert_eq!(judge(&errors_at("/is_error"), &ended(0, "no JSON at all", "")), Judgement::Worked);
}

#[test]
fn a_timeout_is_marked_as_one() {
    let idle = ChildOutcome {
        ended_by: EndedBy::IdleTimeout,
        limit: Some(Duration::from_secs(300)),
        ..ended(143, "half a sentence", "")
    };
    let report = failure(&FailureRules::default(), &idle);
    assert_eq!(report.value["code"], "timeout");
    assert_eq!(report.value["message"], "no output for 300 s: ended by backstop");
    let turn = ChildOutcome { ended_by: EndedBy::TurnTimeout, limit: Some(Duration::from_millis(1500)), ..idle };
    assert_eq!(
        failure(&FailureRules::default(), &turn).value["message"],
        "still running after 1.5 s: ended by backstop"
    );
    let graceful = ChildOutcome { exit: Exit::Code(0), ..turn };
    assert_eq!(
        failure(&FailureRules::default(), &graceful).value["code"],
        "timeout",
        "exit 0 at SIGTERM proves nothing"
    );
}

#[test]
fn a_process_that_lingers_after_its_success_has_worked() {
    let lingers = |stdout| ChildOutcome { ended_by: EndedBy::IdleTimeout, ..ended(143, stdout, "") };
    assert_eq!(judge(&matching("", "^DONE$"), &lingers("DONE\n")), Judgement::Worked);
    assert!(matches!(judge(&matching("oops", "^DONE$"), &lingers("oops\nDONE\n")), Judgement::Failed(_)));
}

#[test]
fn an_exit_code_can_tell_the_kind_the_status_or_a_cancellation() {
    let meaning = |kind, status, cancelled| ExitMeaning { kind, status, cancelled };
    let exit_map = [(41, meaning(Some(Kind::Auth), None, false)), (173, meaning(None, Some(429), false))];
    let exit_map = exit_map.into_iter().chain([(130, meaning(None, None, true))]).collect();
    let rules = FailureRules { exit_map, ..FailureRules::default() };
    assert_eq!(failure(&rules, &ended(41, "", "")).value["code"], "auth");
    assert_eq!(failure(&rules, &ended(173, "", "")).status, Some(429));
    assert_eq!(judge(&rules, &ended(130, "", "")), Judgement::Cancelled);
}

#[test]
fn what_we_ended_ourselves_is_no_failure() {
    for (ended_by, expected) in [(EndedBy::Cancelled, Judgement::Cancelled), (EndedBy::Suspended, Judgement::Suspended)]
    {
        for outcome in [ended(0, "Execution error", ""), ended(1, "", "429"), ChildOutcome::not_started(ended_by)] {
            assert_eq!(judge(&FailureRules::default(), &ChildOutcome { ended_by, ..outcome }), expected);
        }
    }
}
