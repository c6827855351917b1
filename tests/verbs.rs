//! What the looking verbs of the program promise: check, classify, explain, schema, completions.
#![cfg(feature = "cli")]
#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

fn backstop(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_backstop"));
    command.args(args).env_remove("NO_COLOR").env_remove("BACKSTOP_LOG");
    command
}

fn run(args: &[&str]) -> Output {
    backstop(args).stdin(Stdio::null()).output().unwrap()
}

fn run_with(args: &[&str], input: &[u8]) -> Output {
    let mut child = piped(args);
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let feed = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().unwrap();
    let _read_in_part = feed.join().unwrap();
    output
}

fn piped(args: &[&str]) -> Child {
    backstop(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn out(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

fn err(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}

fn json_of(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

fn file(dir: &TempDir, name: &str, text: &str) -> String {
    let path: PathBuf = dir.path().join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

const GOOD: &str = "recovery:\n  max_total_attempts: 4\n  edit_error:\n    chain: [retry, abort]\n";
const BAD: &str = "max_total_attemps: 4\nedit_error: [abrt, abort]\njson_error:\n  - strategy: retry\n    config: {backoff_factor: .nan}\n";
const WARNS: &str = "edit_error: [mine, abort]\n";

#[test]
fn a_good_file_is_ok() {
    let dir = TempDir::new().unwrap();
    let output = run(&["check", &file(&dir, "good.yaml", GOOD)]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(out(&output).ends_with("good.yaml: ok\n"), "{output:?}");
}

#[test]
fn every_problem_of_every_file_is_shown_with_its_line_and_a_caret() {
    let dir = TempDir::new().unwrap();
    let (bad, warns) = (file(&dir, "bad.yaml", BAD), file(&dir, "warns.yaml", WARNS));
    let output = run(&["check", &bad, &warns]);
    assert_eq!(output.status.code(), Some(1));
    let text = out(&output);
    for part in [
        "error: max_total_attemps: unknown key",
        "did you mean `max_total_attempts`?",
        "bad.yaml:2:14\n  |\n2 | edit_error: [abrt, abort]\n  |              ^\n",
        "bad.yaml:5:30",
        "bad.yaml: 3 problems",
        "error: edit_error.chain[0]: no strategy `mine`",
        "warns.yaml: 1 problem\n",
    ] {
        assert!(text.contains(part), "no {part:?} in:\n{text}");
    }
    assert!(!text.contains('\u{1b}'), "no colour where no terminal is");
}

#[test]
fn a_warning_is_an_error_until_the_name_is_known() {
    let dir = TempDir::new().unwrap();
    let warns = file(&dir, "warns.yaml", WARNS);
    assert_eq!(run(&["check", &warns]).status.code(), Some(1));
    assert_eq!(run(&["check", "--known", "other", "--known", "mine", &warns]).status.code(), Some(0));
}

#[test]
fn a_file_that_cannot_be_read_is_named_and_the_others_are_checked_all_the_same() {
    let dir = TempDir::new().unwrap();
    let (missing, bad) = (dir.path().join("missing.yaml"), file(&dir, "bad.yaml", BAD));
    let binary = dir.path().join("binary.yaml");
    std::fs::write(&binary, [0xff, 0xfe, 0x00]).unwrap();
    let paths = [missing.to_str().unwrap(), dir.path().to_str().unwrap(), binary.to_str().unwrap(), &bad];
    let output = run(&[&["check"], &paths[..]].concat());
    assert_eq!(output.status.code(), Some(1));
    for path in &paths[..3] {
        assert!(err(&output).contains(&format!("error: cannot read {path}: ")), "{output:?}");
    }
    assert!(out(&output).contains("bad.yaml: 3 problems"));
}

#[test]
fn standard_input_is_checked_too_but_once() {
    let output = run_with(&["check", "-"], BAD.as_bytes());
    assert_eq!(output.status.code(), Some(1));
    assert!(out(&output).contains("<stdin>:2:14"), "{output:?}");
    assert_eq!(run_with(&["check", "-", "-"], b"").status.code(), Some(2));
}

#[test]
fn the_values_in_force_are_printed_with_the_line_of_the_last_layer() {
    let dir = TempDir::new().unwrap();
    let (base, over) = (file(&dir, "base.yaml", GOOD), file(&dir, "over.yaml", "max_total_attempts: 7\n"));
    let output = run(&["check", "--print-effective", &base, &over]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = out(&output);
    let line = |start: &str| text.lines().find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("{text}"));
    assert!(line("max_total_attempts").contains(" 7 ") && line("max_total_attempts").ends_with("over.yaml:1:21"));
    assert!(line("max_wait_ms").ends_with("built in"));
    assert!(line("edit_error").contains("base.yaml:"));

    let report = json_of(&run(&["--json", "check", "--print-effective", &base, &over]));
    let values = report["effective"].as_array().unwrap();
    let attempts = values.iter().find(|value| value["path"] == "max_total_attempts").unwrap();
    assert_eq!(attempts["value"], 7);
    assert_eq!(report["files"][0]["ok"], true);
}

#[test]
fn nothing_is_in_force_when_a_file_is_refused() {
    let dir = TempDir::new().unwrap();
    let output = run(&["check", "--json", "--print-effective", &file(&dir, "bad.yaml", BAD)]);
    assert_eq!(output.status.code(), Some(1));
    let report = json_of(&output);
    assert_eq!(report.get("effective"), None);
    let problems = report["files"][0]["problems"].as_array().unwrap();
    assert_eq!(problems.len(), 3);
    assert_eq!((&problems[1]["line"], &problems[1]["column"]), (&json!(2), &json!(14)));
}

#[test]
fn check_needs_a_file() {
    assert_eq!(run(&["check"]).status.code(), Some(2));
}

#[test]
fn a_value_is_classified_as_argument_and_from_standard_input() {
    let text = "429 Too Many Requests. Please try again in 20s.";
    let answer = json_of(&run(&["classify", "--json", text]));
    assert_eq!((&answer["kind"], &answer["retry_after_ms"]), (&json!("rate_limit"), &json!(20_000)));
    let piped = json_of(&run_with(&["classify", "--json"], format!("{{\"error\": \"{text}\"}}\n").as_bytes()));
    assert_eq!(piped["kind"], "rate_limit");
    let human = run(&["classify", text]);
    assert!(out(&human).starts_with("session_error / rate_limit\n") && out(&human).contains("20 s"), "{human:?}");
    let ordinary = run_with(&["classify"], br#"{"tool": "read", "output": "Error: 429 rate limit"}"#);
    assert!(out(&ordinary).starts_with("none / not_an_error"), "{ordinary:?}");
}

#[test]
fn every_case_of_the_corpus_gets_one_answer_line_with_every_field() {
    let corpus = std::fs::read_to_string("tests/data/corpus/dev.jsonl").unwrap();
    let cases: Vec<Value> = corpus.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let input: String = cases.iter().map(|case| case["input"].to_string() + "\n").collect();
    let output = run_with(&["classify", "--jsonl"], input.as_bytes());
    let answers: Vec<Value> = out(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.len(), cases.len());
    let fields = ["category", "kind", "domain", "severity", "retryable", "recoverable", "suggested_action"];
    let numbers = ["retry_after_ms", "limit_tokens", "actual_tokens"];
    for answer in &answers {
        assert!(fields.iter().chain(&numbers).all(|field| answer.get(field).is_some()), "{answer}");
    }
    let right = cases.iter().zip(&answers).filter(|(case, answer)| case["expected"]["kind"] == answer["kind"]).count();
    assert!(right * 100 >= cases.len() * 90, "{right} of {}", cases.len());
}

#[test]
fn a_line_is_answered_before_the_next_one_is_asked() {
    let mut child = piped(&["classify", "--jsonl"]);
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    for (question, kind) in [("\"429 Too Many Requests\"", "rate_limit"), ("503 Service Unavailable", "")] {
        writeln!(stdin, "{question}").unwrap();
        let mut answer = String::new();
        stdout.read_line(&mut answer).unwrap();
        assert!(answer.contains(kind) && answer.contains("session_error"), "{answer}");
    }
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_reader_that_goes_away_ends_it_quietly() {
    let mut child = piped(&["classify", "--jsonl"]);
    let mut stdin = child.stdin.take().unwrap();
    let feed = std::thread::spawn(move || {
        let mut lines = 0;
        while lines < 1_000_000 && writeln!(stdin, "\"429 Too Many Requests\"").is_ok() {
            lines += 1;
        }
        lines
    });
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut String::new()).unwrap();
    drop(stdout);
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!((child.wait().unwrap().code(), said.as_str()), (Some(0), ""));
    assert!(feed.join().unwrap() < 1_000_000, "it went on without a reader");
}

const OWN: &str = "patterns:\n  - {name: busy, kind: overloaded, regex: gpu queue full}\n";

#[test]
fn own_patterns_of_a_configuration_win() {
    let dir = TempDir::new().unwrap();
    let own = file(&dir, "own.yaml", OWN);
    let answer = json_of(&run(&["--config", &own, "classify", "--json", "429: the GPU queue full"]));
    assert_eq!((&answer["kind"], &answer["pattern"]), (&json!("overloaded"), &json!("busy")));
}

#[test]
fn a_configuration_with_mistakes_is_refused_by_every_verb_with_the_place() {
    let dir = TempDir::new().unwrap();
    let bad = file(&dir, "bad.yaml", BAD);
    for verb in ["classify", "explain"] {
        let output = run(&["--config", &bad, verb, "429"]);
        assert_eq!(output.status.code(), Some(5), "{output:?}");
        assert!(err(&output).contains("bad.yaml:5:30") && err(&output).contains("^"), "{output:?}");
    }
}

#[test]
fn a_warning_is_said_once_with_its_place_and_not_under_quiet() {
    let dir = TempDir::new().unwrap();
    let warns = file(&dir, "warns.yaml", WARNS);
    let output = run(&["--config", &warns, "classify", "429 Too Many Requests"]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(err(&output).matches("warns.yaml:1:14").count(), 1, "{output:?}");
    let quiet = run(&["--quiet", "--config", &warns, "classify", "429 Too Many Requests"]);
    assert_eq!(err(&quiet), "");
}

#[test]
fn explain_names_winner_losers_chain_line_delays_and_worst_case() {
    let dir = TempDir::new().unwrap();
    let text = "session_error:\n  - strategy: retry\n    config: {backoff_ms: 500, max_retries: 1}\n  - abort\n";
    let config = file(&dir, "mine.yaml", text);
    let output = run(&["explain", "429 Too Many Requests", "--config", &config]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    for part in [
        "session_error / rate_limit",
        "  won: throttled",
        "  lost: http_429 (",
        "seen: status: 429",
        "mine.yaml:2:3: the user's chain for this category",
        "1. retry (backoff_ms: 500, max_retries: 1)",
        "wait 250 ms to 500 ms (the strategy), redo",
        "2. abort",
        "aborted:",
        "after 3 attempts, 1 redo and 250 ms to 500 ms of waiting",
    ] {
        assert!(out(&output).contains(part), "no {part:?} in:\n{}", out(&output));
    }
}

#[test]
fn explain_says_what_the_facts_pass_over_and_what_no_chain_answers() {
    let bad_gateway = run(&["explain", "This model's maximum context length is 8192 tokens, you requested 9000"]);
    assert!(out(&bad_gateway).contains("chain context_window, built in"), "{bad_gateway:?}");
    let full = json_of(&run(&["explain", "--json", "ENOSPC: no space left on device, write"]));
    let skipped = |step: &Value| step["skipped_because"].as_str().is_some_and(|why| why.contains("not retryable"));
    let steps = full["forecast"]["steps"].as_array().unwrap();
    assert!(full["forecast"]["chain"].is_null() || steps.iter().any(skipped), "{full}");
    let rejected = run(&["explain", "The user rejected permission to use this tool"]);
    assert!(out(&rejected).contains("no chain is run: unhandled"), "{rejected:?}");
    let ordinary = run(&["explain", "all is well"]);
    assert!(!out(&ordinary).contains("What would be done"), "{ordinary:?}");
}

#[test]
fn no_secret_and_no_control_character_gets_through() {
    let key = format!("sk-proj-{}", "a1B2".repeat(10));
    let value = format!("Error: \u{1b}[31mIncorrect API key provided: {key}");
    for verb in [&["classify"][..], &["explain"], &["classify", "--json"], &["explain", "--json"]] {
        let output = run(&[verb, &[value.as_str()]].concat());
        assert_eq!(output.status.code(), Some(0));
        assert!(!out(&output).contains(&key) && !out(&output).contains('\u{1b}'), "{output:?}");
    }
}

#[test]
fn the_printed_schema_accepts_what_check_accepts() {
    let schema = json_of(&run(&["schema", "--known", "mine"]));
    let validator = jsonschema::validator_for(&schema).unwrap();
    assert!(validator.is_valid(&json!({"edit_error": ["mine", "abort"]})));
    assert!(!validator.is_valid(&json!({"max_total_attempts": -1})));
}

#[test]
fn completions_know_the_verbs() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = run(&["completions", shell]);
        assert_eq!(output.status.code(), Some(0));
        assert!(["classify", "explain", "sessions"].iter().all(|verb| out(&output).contains(verb)), "{shell}");
    }
    assert_eq!(run(&["completions", "tcl"]).status.code(), Some(2));
}
