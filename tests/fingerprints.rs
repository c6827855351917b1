//! Fingerprints: blind to what changes between two occurrences of one failure, and to nothing else.
#![allow(clippy::unwrap_used)]

use backstop::failure::{Category, PatternRegistry, RecoveryError, Report, Timestamp};
use serde_json::{Value, json};

fn found(report: &Report) -> RecoveryError {
    let (registry, now) = (PatternRegistry::new(), Timestamp::from_millis(1_700_000_000_000));
    let by_words = registry.detect_first(report, now).into_failure();
    // What no word tells to be a failure is one if the host says so.
    by_words.or_else(|| registry.detect_category(report, Category::SessionError, now).into_failure()).unwrap()
}

/// A report of a text, or of a value that is written as JSON.
fn report(given: &str) -> Report {
    match serde_json::from_str::<Value>(given) {
        Ok(value @ Value::Object(_)) => Report::from_value(value),
        _ => Report::text(given),
    }
}

/// Two occurrences of one failure.
const SAME: &[(&str, &str)] = &[
    // Numbers that a loop changes.
    ("Error: attempt 3 of the migration failed", "Error: attempt 17 of the migration failed"),
    (
        "Rate limit reached: Limit 30000, Used 29937, Requested 385",
        "Rate limit reached: Limit 30000, Used 100, Requested 9",
    ),
    ("prompt is too long: 215300 tokens > 200000 maximum", "prompt is too long: 233001 tokens > 200000 maximum"),
    ("3 tests failed", "1 test failed"),
    ("Error: found 2 errors", "Error: found 1 error"),
    ("out of memory: tried to allocate 1,234,567 bytes", "out of memory: tried to allocate 99 bytes"),
    ("the cache is 99.5% stale", "the cache is 12% stale"),
    ("AssertionError: expected -5 rows", "AssertionError: expected 12 rows"),
    ("worker 0x7ffe12ab crashed", "worker 0x10 crashed"),
    ("ids call_1, call_2 had no result", "ids call_7 had no result"),
    ("Error: step 4/12 broke off", "Error: step 5/12 broke off"),
    ("错误：第3次尝试失败", "错误：第12次尝试失败"),
    // Times, dates and durations.
    ("Please try again in 6ms", "Please try again in 9m38.016s"),
    ("Rate limit: retry in 1 second", "Rate limit: retry in 30 seconds"),
    ("timed out after 1 minute", "timed out after 90 seconds"),
    ("resets Mar 17th, 2030 5:46 PM", "resets Apr 2nd, 2031 9:46 AM"),
    ("usage limit reached, resets Monday at 5pm", "usage limit reached, resets Fri at 11am"),
    ("2030-01-02T10:11:12.123Z connection refused", "2031-11-22T00:00:00Z connection refused"),
    ("[12:01:07] socket hang up", "[23:59:59] socket hang up"),
    ("Error: built 1700000000000, too old", "Error: built 1800000000001, too old"),
    // Places: folders, other worktrees, lines and columns, ports.
    ("cannot open /home/a/b.rs", "cannot open /srv/other.rs"),
    ("error in /work/wt-1/src/main.rs:12:5: flux failed", "error in /work/wt-2/src/main.rs:44:17: flux failed"),
    ("cannot read C:\\Users\\dev\\x.rs", "cannot read D:\\build\\y.rs"),
    ("cannot read '/Users/John Doe/a.txt'", "cannot read '/tmp/b.txt'"),
    ("ENOENT: no such file or directory, open 'a.json'", "ENOENT: no such file or directory, open 'src/b.yaml'"),
    ("main.rs:12:5: flux failed", "other.rs:1:99: flux failed"),
    ("SyntaxError: invalid syntax (line 4, column 12)", "SyntaxError: invalid syntax (line 90, column 3)"),
    ("connect ECONNREFUSED 127.0.0.1:5432", "connect ECONNREFUSED 127.0.0.1:6379"),
    ("listen EADDRINUSE: address already in use :::3000", "listen EADDRINUSE: address already in use :::8080"),
    ("cannot fetch https://a.example/x?y=1", "cannot fetch http://b.example/long/path"),
    ("postgres://db-1.example:5432/x refused the connection", "postgres://db-2.example:5433/y refused the connection"),
    // Ids and hashes.
    ("server error (request req_011Cabc1)", "server error (request req_9Zz2)"),
    ("server error (request req_AbCdEfGhIjKlMn)", "server error (request req_QrStUvWxYzAbCd)"),
    ("server error, request id: QwErTyUiOp", "server error, request id: AsDfGhJkLz"),
    ("server error, request_id=abcdef", "server error, request_id=12"),
    ("job 00000000-0000-4000-8000-000000000001 vanished", "job 6f1c2b3a-aaaa-4bbb-8ccc-dddddddddddd vanished"),
    ("commit deadbeefcafe missing", "commit 0123456789ab missing"),
    ("fatal: bad object 3f2a9c1d8b7e6f5a4c3b", "fatal: bad object aaaabbbbccccdddd"),
    ("layer sha256:0011aabb does not exist", "layer sha256:ffee9988 does not exist"),
    ("container 4f5e6d7c8b9a exited", "container abcdefabcdef exited"),
    ("pid 4121 was stopped", "pid 17 was stopped"),
    // Snippets.
    (
        "String to replace not found in file.\nString: let x = 1;",
        "String to replace not found in file.\nString: fn other() {}",
    ),
    ("old_string: 'e.int' not found in src/a.java", "old_string: 'two words' not found in src/b.java"),
    (
        "Unexpected token 'I', \"I will now\"... is not valid JSON",
        "Unexpected token 'H', \"Here is th\"... is not valid JSON",
    ),
    ("JSON Parse error: Unexpected identifier \"I\"", "JSON Parse error: Unexpected identifier \"Sure\""),
    ("type check failed near `let a = b();`", "type check failed near `if x { y }`"),
    // Structured.
    (
        r#"{"status":500,"error":{"message":"Internal error, trace 9f8e7d6c"}}"#,
        r#"{"status":500,"error":{"message":"Internal error, trace 11223344"}}"#,
    ),
    (
        r#"{"exit_code":1,"stdout":"","stderr":"error: 3 crates in /a/b failed"}"#,
        r#"{"exit_code":1,"stdout":"","stderr":"error: 9 crates in /c/d/e failed"}"#,
    ),
    (r#"{"status":400,"message":"bad field at 3"}"#, r#"{"status":400,"message":"bad field at 77"}"#),
    // A gateway in trouble answers with one status and then another.
    (r#"{"status":500,"message":"upstream is broken"}"#, r#"{"status":520,"message":"Upstream is broken."}"#),
];

/// Two failures that have something in common.
const OTHER: &[(&str, &str)] = &[
    // Throttled and unpaid.
    ("429 Rate limit reached, try again in 6ms", "429 You exceeded your current quota, check your plan and billing"),
    ("Rate limit reached for requests", "Rate limit reached for tokens"),
    ("Your credit balance is too low", "Your account was suspended"),
    (r#"{"status":429,"message":"slow down"}"#, r#"{"status":402,"message":"slow down"}"#),
    // Who may not, and why.
    ("401 Unauthorized", "403 Forbidden"),
    ("Request failed with status code 401", "Request failed with status code 403"),
    (r#"{"status":401,"message":"access denied"}"#, r#"{"status":403,"message":"access denied"}"#),
    ("invalid x-api-key", "OAuth token has expired"),
    ("Permission denied (publickey)", "Permission denied (password)"),
    // Tools.
    ("tool `read` failed", "tool `edit` failed"),
    ("Tool search_docs not found", "Tool read_docs not found"),
    (
        r#"{"tool":"bash","state":{"status":"error","error":"it broke"}}"#,
        r#"{"tool":"grep","state":{"status":"error","error":"it broke"}}"#,
    ),
    ("Model tried to call unavailable tool 'ProxyRead'", "Model tried to call unavailable tool 'ProxyWrite'"),
    // Edits.
    ("Could not find oldString in the file", "Found multiple matches for oldString"),
    ("String to replace not found in file.", "File has been unexpectedly modified"),
    ("oldString and newString must be different", "Could not find oldString in the file"),
    // Models.
    ("The model `gpt-4o` does not exist", "The model `gpt-5` does not exist"),
    ("model not found: claude-3-5-sonnet-20241022", "model not found: claude-3-5-sonnet-20240620"),
    ("The model 'openai/gpt-9' does not exist", "The model 'meta-llama/llama-9' does not exist"),
    (
        "models/gemini-1.5-pro is not found for API version v1beta",
        "models/gemini-2.0-pro is not found for API version v1beta",
    ),
    // What is too long, and what is cut.
    ("prompt is too long: 215300 tokens > 200000 maximum", "max_tokens: 64000 > 8192, which is the maximum allowed"),
    ("Unexpected end of JSON input", "Unexpected token } in JSON at position 4"),
    // The machine.
    ("connect ECONNREFUSED 127.0.0.1:5432", "connect ETIMEDOUT 127.0.0.1:5432"),
    ("getaddrinfo ENOTFOUND api.example", "getaddrinfo EAI_AGAIN api.example"),
    ("disk is full", "disk is gone"),
    ("No space left on device", "Too many open files"),
    ("payment declined", "payment decoded"),
    ("unsupported media type image/png", "unsupported media type text/html"),
    ("input/output error", "client/server error"),
    ("step 3 failed: cannot decode", "step 3 failed: cannot encode"),
    ("无效的密钥，错误码401", "余额不足，错误码401"),
    ("错误码401密钥无效", "错误码401余额不足"),
    // Other words in quotes: a name is no snippet.
    ("module 'left' is missing", "module 'right' is missing"),
    ("command `cargo` not found", "command `npm` not found"),
    ("error[E0308]: mismatched types", "error[E0425]: cannot find value `x` in this scope"),
    (r#"{"error":{"message":"alpha broke"}}"#, r#"{"error":{"message":"beta broke"}}"#),
];

#[test]
fn two_occurrences_of_one_failure_agree() {
    let wrong: Vec<_> = SAME
        .iter()
        .map(|(one, other)| (found(&report(one)), found(&report(other))))
        .filter(|(one, other)| one.fingerprint != other.fingerprint)
        .map(|(one, other)| format!("{} {:?} / {} {:?}", one.kind, one.message, other.kind, other.message))
        .collect();
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), SAME.len(), wrong.join("\n"));
    assert!(SAME.len() >= 40);
}

#[test]
fn two_failures_do_not_agree() {
    let wrong: Vec<_> = OTHER
        .iter()
        .map(|(one, other)| (found(&report(one)), found(&report(other))))
        .filter(|(one, other)| one.fingerprint == other.fingerprint)
        .map(|(one, other)| format!("{} {:?} / {} {:?}", one.kind, one.message, other.kind, other.message))
        .collect();
    assert!(wrong.is_empty(), "{} of {} agree:\n{}", wrong.len(), OTHER.len(), wrong.join("\n"));
    assert!(OTHER.len() >= 30);
}

#[test]
fn a_failure_agrees_with_itself_whoever_reports_it() {
    let text = "Error: the flux capacitor is misaligned";
    let by_text = found(&Report::text(text));
    assert_eq!(found(&Report::text(format!("{text}\n"))).fingerprint, by_text.fingerprint);
    let at_other_models = Report::text(text).with_model("a/one").with_provider("a");
    assert_eq!(found(&at_other_models).fingerprint, by_text.fingerprint);
}

#[test]
fn the_tool_that_failed_counts_and_its_number_does_not() {
    let by = |tool: &str| found(&Report::new(json!({"error": "it broke"})).with_tool(tool)).fingerprint;
    assert_ne!(by("bash"), by("grep"));
    assert_eq!(by("worker_1"), by("worker_22"));
    assert_ne!(by("bash"), found(&Report::new(json!({"error": "it broke"}))).fingerprint);
}

#[test]
fn every_kind_has_fingerprints_of_its_own() {
    let mut all: Vec<_> = SAME.iter().chain(OTHER).map(|(one, _)| found(&report(one))).collect();
    all.sort_by_key(|error| error.fingerprint);
    for pair in all.windows(2).filter(|pair| pair[0].fingerprint == pair[1].fingerprint) {
        assert_eq!(pair[0].kind, pair[1].kind);
    }
}
