//! Failures that recovery gets over.

use crate::support::{Dir, corpus};
use serde_json::Value;

#[test]
fn a_command_that_fails_with_a_real_error_is_run_again_until_it_works() {
    let errors = [
        ("a003", "rate_limit"),
        ("a052", "overloaded"),
        ("a198", "server_error"),
        ("a249", "network"),
        ("a030", "stream_interrupted"),
    ];
    for (id, kind) in errors {
        let dir = Dir::new();
        dir.file("error", &corpus(id));
        let ran = dir.run(&["--config", "fast.yaml"], &["python3", "flaky.py", "error", "2"]);
        ran.expect(0).reports("verdict", "recovered").reports("kind", kind).reports("tries", 3).reports("attempts", 2);
        assert_eq!(ran.stdout, "done\n", "the answer passes through untouched");
        ran.says(kind)
            .says("waiting 20 ms before the next try")
            .says("backstop: recovered (verified); 3 tries, 2 attempts");
    }
}

#[test]
fn a_command_that_works_at_once_is_left_alone() {
    let dir = Dir::new();
    let ran = dir.run(&[], &["sh", "-c", "echo answer; echo rate limit, error 429 >&2"]);
    ran.expect(0).reports("verdict", "worked").reports("tries", 1).reports("attempts", 0);
    assert_eq!(ran.stdout, "answer\n");
    assert!(ran.stderr.starts_with("rate limit, error 429\nbackstop: worked; 1 try"), "{ran:#?}");
}

#[test]
fn a_request_that_is_too_long_is_cut_and_the_agent_is_told() {
    let dir = Dir::new();
    dir.file("error", &corpus("a056"));
    let agent =
        r#"if [ -z "$BACKSTOP_TRUNCATE_TO" ]; then cat error >&2; exit 1; fi; echo "$BACKSTOP_TRUNCATE_TO: $1""#;
    let ran = dir.run(&[], &["sh", "-c", agent, "agent", "{inject}"]);
    ran.expect(0).reports("kind", "context_overflow");
    assert!(ran.stdout.starts_with("0.5: [RECOVERY]"), "{ran:#?}");
}

#[test]
fn another_model_takes_over_where_the_first_one_cannot_serve() {
    let dir = Dir::new();
    dir.file("error", &corpus("a329"));
    let agent = r#"if [ "$2" = third ]; then echo "with $2"; else cat error >&2; exit 1; fi"#;
    let models = ["--model", "first", "--fallback-model", "second", "--fallback-model", "third"];
    let ran = dir.run(&models, &["sh", "-c", agent, "agent", "--model", "{model}"]);
    ran.expect(0).reports("kind", "auth").reports("tries", 3);
    assert_eq!(ran.stdout, "with third\n");
}

#[test]
fn fallback_models_fill_the_users_own_chains() {
    let dir = Dir::new();
    dir.file("own.yaml", "kinds: {overloaded: [fallback_model, abort]}");
    dir.file("error", &corpus("a052"));
    let agent = r#"if [ "$BACKSTOP_MODEL" = other ]; then echo ok; else cat error >&2; exit 1; fi"#;
    let ran = dir.run(&["--config", "own.yaml", "--fallback-model", "other"], &["sh", "-c", agent]);
    ran.expect(0).reports("tries", 2).says("a fallback model reaches the command only by {model}");
}

#[test]
fn exit_code_0_is_no_success_where_the_options_say_so() {
    let cases: [(&[&str], &str, &str); 4] = [
        (&["--empty-is-failure"], "exit 0", "empty_response"),
        (&["--failure-regex", "^Error: .*overloaded"], "echo 'Error: 529 overloaded'", "overloaded"),
        (&["--success-regex", "^DONE$"], "echo 429 too many requests", "rate_limit"),
        (&["--json-error", "/error"], r#"echo '{"error":{"message":"Overloaded","status":529}}'"#, "overloaded"),
    ];
    for (options, fails, kind) in cases {
        let dir = Dir::new();
        let agent = format!("if [ -e again ]; then echo DONE; else touch again; {fails}; fi");
        let config = "empty_response: [{strategy: retry, config: {backoff_ms: 10}}]";
        dir.file("empty.yaml", config);
        let options = [&["--config", "fast.yaml", "--config", "empty.yaml"], options].concat();
        dir.run(&options, &["sh", "-c", &agent]).expect(0).reports("kind", kind).reports("tries", 2);
    }
}

#[test]
fn the_claude_preset_reads_what_the_agent_says() {
    let dir = Dir::new();
    let captures = include_str!("../data/captures/claude.jsonl");
    let capture = |name: &str| {
        let mut all = captures.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        all.find(|capture| capture["name"] == name).unwrap_or_else(|| panic!("no {name}"))
    };
    // Exit code 1 with a reason, exit code 0 without an answer, an answer.
    let runs = ["claude-overloaded-json-long", "claude-empty-json", "claude-ok-json"];
    let mut script = "#!/bin/sh\necho \"$@\" >> calls\ncase $BACKSTOP_ATTEMPT in\n".to_owned();
    for (number, name) in (1..).zip(runs) {
        let capture = capture(name);
        dir.file(&format!("out{number}"), capture["stdout"].as_str().unwrap());
        script += &format!("{number}) cat out{number}; exit {};;\n", capture["exit_code"]);
    }
    dir.file("claude", &(script + "esac\n"));
    let made_executable = std::process::Command::new("chmod").args(["+x", "claude"]).current_dir(dir.path("")).status();
    assert!(made_executable.unwrap().success());
    dir.file("empty.yaml", "empty_response: [{strategy: remind_and_retry, config: {reminder_text: Answer.}}]");
    let options = ["--preset", "claude", "--config", "fast.yaml", "--config", "empty.yaml", "--model", "sonnet"];
    let mut exec = dir.exec(&options, &["claude", "-p", "a prompt", "--output-format", "json"]);
    exec.env("PATH", format!("{}:{}", dir.path("").display(), std::env::var("PATH").unwrap()));
    let ran = dir.ended(exec);
    ran.expect(0).reports("tries", 3).says("overloaded").says("empty_response");
    let calls = dir.read("calls");
    let calls: Vec<&str> = calls.lines().collect();
    assert_eq!(calls[0], "-p a prompt --output-format json --model sonnet");
    assert!(calls[2].contains("--append-system-prompt") && calls[2].contains("Answer."), "{calls:#?}");
}

#[test]
fn a_dry_run_says_what_would_be_done_and_does_nothing() {
    let dir = Dir::new();
    let options =
        ["--dry-run", "--config", "fast.yaml", "--session", "night", "--model", "m1", "--fallback-model", "m2"];
    let ran = dir.run(&options, &["touch", "touched-{attempt}", "--model", "{model}"]);
    ran.expect(0);
    for part in [
        "session    night",
        ".rolebox/state/backstop/exec/night",
        "first try  touch touched-1 --model m1",
        "redo       touch touched-2 --model m2",
        "BACKSTOP_ATTEMPT=2",
        "retry after 20 ms, 20 ms, 20 ms",
        "fallback_model (m2) → escalate",
    ] {
        assert!(ran.stdout.contains(part), "{part:?} is missing in {}", ran.stdout);
    }
    assert!(!dir.has("touched-1") && !dir.has(".rolebox"));
    let plan: Value = serde_json::from_str(&dir.run(&[&options[..], &["--json"]].concat(), &["true"]).stdout).unwrap();
    assert_eq!(plan["first_try"]["command"][0], "true");
    assert!(plan["failures"].as_array().unwrap().iter().any(|failure| failure["kind"] == "rate_limit"));
}
