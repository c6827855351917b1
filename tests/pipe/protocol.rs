use serde_json::{Value, json};

use crate::support::Dir;

const FAILURE: &str = r#""error":{"message":"Overloaded","status":529}"#;

#[test]
fn a_failure_is_answered_by_a_redo_and_a_redo_that_worked_by_the_verdict() {
    let dir = Dir::new();
    let mut pipe = dir.pipe(&[]);
    let redo = pipe.ask(&format!(r#"{{"session":"s1","id":7,{FAILURE}}}"#));
    assert_eq!((&redo["id"], &redo["session"], &redo["action"]), (&json!(7), &json!("s1"), &json!("redo")), "{redo}");
    assert!(redo["not_before"].is_u64() && redo["wait_ms"].as_u64().is_some_and(|wait| wait <= 20), "{redo}");
    assert!(redo.get("explain").is_none());
    let stop = pipe.ask(&format!(r#"{{"op":"succeeded","session":"s1","seq":{}}}"#, redo["seq"]));
    assert_eq!((&stop["action"], &stop["verdict"]), (&json!("stop"), &json!("recovered")), "{stop}");
    assert_eq!(pipe.end().0, Some(0));
}

#[test]
fn failing_for_ever_ends_with_a_verdict_and_its_reason() {
    let dir = Dir::new();
    let mut pipe = dir.pipe(&["--no-state"]);
    let mut told = pipe.ask(&format!(r#"{{"session":"s1",{FAILURE},"explain":true}}"#));
    assert!(told["explain"].as_array().is_some_and(|notes| !notes.is_empty()));
    for _ in 0..3 {
        assert_eq!(told["action"], "redo", "{told}");
        told = pipe.ask(&format!(r#"{{"session":"s1",{FAILURE},"seq":{}}}"#, told["seq"]));
    }
    assert_eq!((&told["action"], &told["verdict"]), (&json!("stop"), &json!("aborted")), "{told}");
    assert!(told["reason"].as_str().unwrap().starts_with("aborted: "));
    assert!(!dir.0.path().join(".rolebox").exists(), "nothing is kept");
    pipe.end();
}

#[test]
fn a_line_that_cannot_be_taken_is_answered_and_costs_nothing_else() {
    let dir = Dir::new();
    let mut pipe = dir.pipe(&["--no-state"]);
    let cases = [
        ("no json", "bad_json", 1),
        (r#"{"session":"s1"}"#, "bad_request", 2),
        (r#"{"session":"s1","op":"retry"}"#, "bad_request", 3),
        (r#"{"op":"release","permit":9}"#, "no_such_permit", 4),
    ];
    for (line, code, number) in cases {
        let answer = pipe.ask(line);
        assert_eq!((&answer["error"]["code"], &answer["error"]["line"]), (&json!(code), &json!(number)), "{answer}");
        assert!(answer["error"]["help"].as_str().is_some_and(|help| !help.is_empty()));
    }
    let long = format!(r#"{{"session":"s1","error":"{}"}}"#, "x".repeat(17 << 20));
    assert_eq!(pipe.ask(&long)["error"]["code"], "too_long");
    assert_eq!(pipe.ask(&format!(r#"{{"session":"s1",{FAILURE}}}"#))["action"], "redo");
    pipe.end();
}

#[test]
fn what_is_said_about_a_session_is_taken_in_that_order() {
    let dir = Dir::new();
    let mut pipe = dir.pipe(&["--no-state"]);
    let lines: Vec<String> = (0..100)
        .map(|n| {
            let report = format!(r#"{{"session":"s{n}","id":"r",{FAILURE}}}"#);
            report + &format!("\n{{\"session\":\"s{n}\",\"op\":\"cancel\",\"id\":\"c\"}}")
        })
        .collect();
    pipe.send(&lines.join("\n"));
    let (code, answers) = pipe.end();
    assert_eq!((code, answers.len()), (Some(0), 200));
    let cancelled = answers.iter().filter(|answer| answer["id"] == "c");
    assert!(cancelled.clone().all(|answer| answer["cancelled"] == true), "each report was there before its cancel");
    assert_eq!(cancelled.count(), 100);
}

#[test]
fn the_end_of_input_answers_everything_first() {
    let dir = Dir::new();
    let mut pipe = dir.pipe(&[]);
    let lines: Vec<String> = (0..500).map(|n| format!(r#"{{"session":"s{n}","id":{n},{FAILURE}}}"#)).collect();
    pipe.send(&lines.join("\n"));
    let (code, answers) = pipe.end();
    assert_eq!(code, Some(0));
    let mut ids: Vec<u64> = answers.iter().map(|answer| answer["id"].as_u64().unwrap()).collect();
    ids.sort_unstable();
    assert_eq!(ids, (0..500).collect::<Vec<_>>());
    assert!(answers.iter().all(|answer| answer["action"] == "redo"));
}

#[test]
fn a_stop_and_a_crash_leave_open_episodes_that_go_on() {
    for signal in ["TERM", "KILL"] {
        let dir = Dir::new();
        let mut pipe = dir.pipe(&[]);
        let redo = pipe.ask(&format!(r#"{{"session":"s1",{FAILURE}}}"#));
        pipe.signal(signal);
        assert_eq!(pipe.wait().0, if signal == "TERM" { Some(143) } else { None });

        let mut pipe = dir.pipe(&[]);
        assert_eq!(pipe.ask(r#"{"op":"open"}"#)["open"], json!(["s1"]), "{signal}");
        // The redo failed: two more of the chain's three are left.
        let mut told = pipe.ask(&format!(r#"{{"session":"s1",{FAILURE},"seq":{}}}"#, redo["seq"]));
        let mut redos = 0;
        while told["action"] == "redo" {
            redos += 1;
            told = pipe.ask(&format!(r#"{{"session":"s1",{FAILURE},"seq":{}}}"#, told["seq"]));
        }
        assert_eq!((redos, &told["verdict"]), (2, &json!("aborted")), "{signal}: {told}");
        pipe.end();
    }
}

#[test]
fn one_process_a_state_directory() {
    let dir = Dir::new();
    let mut pipe = dir.pipe(&[]);
    pipe.ask(r#"{"op":"metrics"}"#);
    assert_eq!(dir.pipe(&[]).wait().0, Some(4));
    pipe.end();
}

#[test]
fn lanes_admit_and_take_back() {
    let dir = Dir::new();
    let mut pipe = dir.pipe(&["--no-state"]);
    let go = pipe.ask(r#"{"op":"admit","lane":"acme/large"}"#);
    assert_eq!(go["action"], "go", "{go}");
    assert_eq!(pipe.ask(&format!(r#"{{"op":"release","permit":{}}}"#, go["permit"]))["ok"], true);
    pipe.end();
}

#[test]
fn a_shutdown_is_the_end_of_input() {
    let dir = Dir::new();
    let mut pipe = dir.pipe(&["--no-state"]);
    pipe.send(r#"{"op":"shutdown"}"#);
    let (code, answers): (_, Vec<Value>) = pipe.wait();
    assert_eq!((code, answers.len()), (Some(0), 1));
}

#[test]
fn the_help_documents_the_protocol() {
    let dir = Dir::new();
    let help = dir.backstop().arg("--help").output().unwrap();
    let text = String::from_utf8(help.stdout).unwrap();
    for word in ["succeeded", "declined", "not_before", "remedy", "admit", "SIGTERM"] {
        assert!(text.contains(word), "{word}");
    }
}
