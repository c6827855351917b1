//! The `claude` preset, held against every recorded run of that agent.
#![cfg(all(unix, feature = "cli"))]
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use backstop::Report;
use backstop::client::command::{Captured, ChildOutcome, EndedBy, Exit, Judgement, Preset, judge};
use serde::Deserialize;

#[derive(Deserialize)]
struct Capture {
    name: String,
    version: String,
    behaviour: String,
    exit_code: Option<i32>,
    signal: Option<String>,
    duration_s: f64,
    #[serde(default)]
    signal_sent: Option<String>,
    /// The recorder ended a run that would have gone on.
    #[serde(default)]
    capped: Option<String>,
    stdout: String,
    stderr: String,
}

impl Capture {
    /// The outcome that `exec` would have seen, had it started this run and sent these signals.
    fn outcome(&self) -> ChildOutcome {
        let ended_by = match self.signal_sent.as_deref() {
            Some("SIGINT") => EndedBy::Cancelled,
            Some("SIGTERM") => EndedBy::Suspended,
            _ if self.capped.is_some() => EndedBy::IdleTimeout,
            _ => EndedBy::Own,
        };
        ChildOutcome { ended_by, limit: Some(Duration::from_secs(90)), ..self.seen_from_outside() }
    }

    /// The same run when somebody else sent the signal.
    fn seen_from_outside(&self) -> ChildOutcome {
        let captured = |text: &str| Captured { tail: text.into(), bytes: text.len() as u64, sink_closed: false };
        ChildOutcome {
            exit: match (&self.signal, self.exit_code) {
                (Some(name), _) => Exit::Signal(name.as_str().into()),
                (None, code) => Exit::Code(code.unwrap()),
            },
            ended_by: EndedBy::Own,
            limit: None,
            stdout: captured(&self.stdout),
            stderr: captured(&self.stderr),
            duration: Duration::from_secs_f64(self.duration_s),
        }
    }

    /// What a person reading the record would say.
    fn expected(&self) -> Expected {
        let fallback = ["claude-model_404-plain-fallback", "claude-overloaded-plain-fallback"];
        let worked = ["ok", "tool", "resume"].contains(&self.behaviour.as_str()) || self.behaviour.ends_with("_once");
        match self.signal_sent.as_deref() {
            Some("SIGINT") => Expected::Cancelled,
            Some("SIGTERM") => Expected::Suspended,
            Some(_) => Expected::Failed,
            None if worked || fallback.contains(&self.name.as_str()) => Expected::Worked,
            None => Expected::Failed,
        }
    }
}

#[derive(Debug, PartialEq)]
enum Expected {
    Worked,
    Failed,
    Cancelled,
    Suspended,
}

fn captures() -> Vec<Capture> {
    let text = include_str!("data/captures/claude.jsonl");
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn preset() -> Preset {
    Preset::named("claude").unwrap()
}

fn report(name: &str) -> Report {
    let capture = captures().into_iter().find(|capture| capture.name == name).unwrap();
    match judge(&preset().rules, &capture.outcome()) {
        Judgement::Failed(report) => *report,
        other => panic!("{name}: {other:?}"),
    }
}

#[test]
fn every_recorded_run_is_judged_as_a_person_would() {
    let captures = captures();
    assert_eq!(captures.len(), 109);
    for capture in captures {
        let judged = match judge(&preset().rules, &capture.outcome()) {
            Judgement::Worked => Expected::Worked,
            Judgement::Failed(_) => Expected::Failed,
            Judgement::Cancelled => Expected::Cancelled,
            Judgement::Suspended => Expected::Suspended,
        };
        assert_eq!(judged, capture.expected(), "{}", capture.name);
        assert_eq!(capture.version, preset().agent_version, "{}", capture.name);
    }
}

#[test]
fn the_facts_of_a_json_result_are_in_the_report() {
    // name, HTTP status, kind, the start of the agent's own words
    let cases = [
        ("claude-auth_401-json-long", Some(401), Some("auth"), "Invalid API key"),
        ("claude-context_400-json", Some(400), Some("context_overflow"), "Prompt is too long"),
        ("claude-context_400-stream", Some(400), Some("context_overflow"), "Prompt is too long"),
        ("claude-err_500-json-sid", Some(500), None, "API Error: 500 Internal server error."),
        ("claude-err_500-stream-long", Some(500), None, "API Error: 500 Internal server error."),
        ("claude-overloaded-json-long", Some(529), Some("overloaded"), "API Error: 529 Overloaded."),
        ("claude-plan_window-json-oauth", Some(429), Some("quota_exhausted"), "You've hit your 5-hour limit"),
        ("claude-plan_window-json", Some(429), None, "API Error: Request rejected (429)"),
        ("claude-quota_429-json", Some(400), None, "Credit balance is too low"),
        ("claude-refused-json-long", None, Some("network"), "API Error: Connection refused"),
        ("claude-filter-json", None, Some("content_filter"), "API Error: Sonnet 5.5's safeguards"),
        ("claude-length-json", None, Some("output_limit"), "API Error: Claude's response exceeded"),
        ("claude-tool_loop-json-maxturns", None, Some("guard_blocked"), "Reached maximum number of turns"),
    ];
    for (name, status, kind, words) in cases {
        let report = report(name);
        assert_eq!(report.status, status, "{name}");
        assert_eq!(report.value.get("code").and_then(|code| code.as_str()), kind, "{name}");
        let message = report.value["error"]["message"].as_str().unwrap();
        assert!(message.starts_with(words), "{name}: {message}");
        assert_eq!(report.exit_code, Some(1), "{name}");
    }
}

#[test]
fn an_empty_reply_is_told_in_text_and_in_json() {
    for name in ["claude-empty-plain", "claude-empty-json"] {
        let report = report(name);
        assert_eq!((report.exit_code, &report.value["code"]), (Some(0), &"empty_response".into()), "{name}");
        assert!(report.value.get("error").is_none(), "{name}: the result itself knows of no error");
    }
}

#[test]
fn a_run_that_we_ended_is_a_timeout() {
    for name in ["claude-hang-plain", "claude-stall-plain-long", "claude-err_500-stream", "claude-auth_401-json"] {
        let report = report(name);
        assert_eq!(report.value["code"], "timeout", "{name}");
        assert_eq!(report.value["message"], "no output for 90 s: ended by backstop", "{name}");
    }
}

#[test]
fn an_interrupt_by_somebody_else_is_known_where_the_agent_says_so() {
    let captures = captures();
    let judged = |name: &str| {
        let capture = captures.iter().find(|capture| capture.name == name).unwrap();
        judge(&preset().rules, &capture.seen_from_outside())
    };
    assert_eq!(judged("claude-stall-json-SIGINT"), Judgement::Cancelled);
    // In text mode the same words stand for every turn that broke off.
    assert!(matches!(judged("claude-stall-plain-SIGINT"), Judgement::Failed(_)));
    let Judgement::Failed(killed) = judged("claude-stall-plain-SIGKILL") else { panic!("it was killed") };
    assert_eq!((killed.exit_code, killed.signal.as_deref()), (None, Some("SIGKILL")));
}

#[test]
fn a_result_that_was_followed_by_a_hang_counts() {
    let captures = captures();
    let capture = captures.iter().find(|capture| capture.name == "claude-ok-json").unwrap();
    let lingered =
        ChildOutcome { exit: Exit::Code(143), ended_by: EndedBy::IdleTimeout, ..capture.seen_from_outside() };
    assert_eq!(judge(&preset().rules, &lingered), Judgement::Worked);
}
