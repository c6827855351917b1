//! Failures that are taken for each other elsewhere, told apart.
#![allow(clippy::unwrap_used)]

use backstop::failure::{PatternRegistry, Timestamp, classify};
use serde_json::{Value, json};

/// Each value with its kind, and whether the same request may be sent again.
#[track_caller]
fn check(cases: &[(Value, &str, bool)]) {
    let registry = PatternRegistry::new();
    for (value, kind, retryable) in cases {
        let answer = classify(&registry, value, Timestamp::default());
        assert_eq!((answer.kind.as_str(), answer.retryable), (*kind, *retryable), "{value}: {}", answer.pattern);
    }
}

#[test]
fn throttle_plan_window_and_unpaid() {
    check(&[
        (json!("429 Too Many Requests"), "rate_limit", true),
        (json!("You've hit your usage limit. Try again in 3 hours 12 minutes."), "quota_exhausted", true),
        (json!("Your credit balance is too low to access the Anthropic API."), "quota_exhausted", false),
        (
            json!({"error": {"code": "insufficient_quota", "message": "You exceeded your current quota"}}),
            "quota_exhausted",
            false,
        ),
    ]);
}

#[test]
fn a_limit_per_minute_an_overflow_an_output_limit_and_the_parameter() {
    check(&[
        (
            json!("Rate limit reached on tokens per min (TPM): Limit 30000, Used 29000, Requested 4500."),
            "rate_limit",
            true,
        ),
        (
            json!("Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 45000."),
            "rate_limit",
            false,
        ),
        (json!("prompt is too long: 208310 tokens > 200000 maximum"), "context_overflow", false),
        (json!("API Error: Claude's response exceeded the 32000 output token maximum."), "output_limit", false),
        (
            json!("max_tokens: 100000 > 8192, which is the maximum allowed number of output tokens for x"),
            "invalid_request",
            false,
        ),
    ]);
}

#[test]
fn overload_outage_and_a_gateways_page() {
    check(&[
        (json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}), "overloaded", true),
        (json!("503 Service Unavailable"), "service_unavailable", true),
        (json!("<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>"), "server_error", true),
        (json!("<html><head><title>504 Gateway Time-out</title></head></html>"), "timeout", true),
    ]);
}

#[test]
fn a_key_the_systems_no_a_guards_no_and_the_users_no() {
    check(&[
        (json!("401 Unauthorized: invalid x-api-key"), "auth", false),
        (json!("git@github.com: Permission denied (publickey)."), "auth", false),
        (json!("Error: EACCES: permission denied, open '/root/.npmrc'"), "permission_denied", false),
        (json!("PreToolUse:Bash hook error: Blocked: do not push to main"), "guard_blocked", false),
        (json!({"decision": "block", "reason": "generated files"}), "guard_blocked", false),
        (json!("The user doesn't want to proceed with this tool use."), "user_rejected", false),
    ]);
}

#[test]
fn edits_that_fail_in_different_ways() {
    check(&[
        (json!("Error: oldString not found in content"), "edit_not_found", false),
        (json!("Found 3 matches of the string to replace, but replace_all is false."), "edit_multiple_matches", false),
        (json!("No changes to make: old_string and new_string are exactly the same."), "edit_no_change", false),
        (json!("Reversed (or previously applied) patch detected!  Assume -R? [n]"), "edit_no_change", false),
        (
            json!("File has been modified since read. Read it again before attempting to write it."),
            "edit_stale_file",
            false,
        ),
        (json!("error: corrupt patch at line 14"), "edit_bad_patch", false),
    ]);
}

#[test]
fn whose_json_it_is_and_what_is_wrong_with_it() {
    check(&[
        (json!("SyntaxError: Expected ',' or '}' after property value in JSON at position 51"), "json_syntax", true),
        (json!("Unterminated string in JSON at position 1432"), "json_truncated", false),
        (json!("Invalid arguments for tool read: missing required parameter `path`"), "schema_mismatch", false),
        (json!("API returned an empty or malformed response (HTTP 200), body is not valid JSON"), "network", true),
        (
            json!("Failed to load session state: Unexpected end of JSON input (/home/dev/.agent/session.json)"),
            "data_corruption",
            false,
        ),
    ]);
}

#[test]
fn no_reply_a_short_reply_and_a_command_without_output() {
    check(&[
        (
            json!({"choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": ""}}]}),
            "empty_response",
            true,
        ),
        (
            json!({"choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": "ok"}}]}),
            "not_an_error",
            false,
        ),
        (json!({"tool": "bash", "command": "mkdir -p build", "exit_code": 0, "output": ""}), "not_an_error", false),
    ]);
}

#[test]
fn a_tool_that_is_missing_fails_or_has_lost_its_server() {
    check(&[
        (json!("Unknown tool: web_fetch_v2"), "tool_unavailable", false),
        (
            json!({"isError": true, "content": [{"type": "text", "text": "Error: repository not found"}]}),
            "tool_failed",
            false,
        ),
        (json!("MCP error -32000: Connection closed"), "mcp_disconnected", true),
        (json!("McpError: MCP error -32001: Request timed out"), "tool_timeout", true),
    ]);
}

#[test]
fn what_a_machine_runs_out_of() {
    check(&[
        (json!("ENOSPC: no space left on device, write"), "disk_full", false),
        (json!("ENOSPC: System limit for number of file watchers reached, watch '/repo'"), "resource_limit", false),
        (json!("OSError: [Errno 122] Disk quota exceeded"), "disk_full", false),
        (json!("java.lang.OutOfMemoryError: Java heap space"), "out_of_memory", false),
        (json!({"exit_code": 137, "stdout": "", "stderr": "Killed"}), "process_killed", false),
    ]);
}

#[test]
fn a_verifier_says_no_contradicts_itself_or_is_broken() {
    check(&[
        (
            json!({"exit_code": 1, "stdout": "=== 1 failed, 12 passed in 0.52s ===", "stderr": ""}),
            "verification_failed",
            false,
        ),
        (json!("verifier returned both PASS and FAIL for the same step"), "verifier_contradiction", false),
        (json!("VerifierError: the judge model returned no verdict"), "verifier_contradiction", false),
    ]);
}

#[test]
fn the_network_certificates_and_a_host_that_is_made_up() {
    check(&[
        (json!("ConnectionResetError: [Errno 104] Connection reset by peer"), "network", true),
        (json!("curl: (60) SSL certificate problem: unable to get local issuer certificate"), "tls", false),
        (
            json!("fatal: unable to access 'https://github.com/x/y.git/': Could not resolve host: github.com"),
            "network",
            true,
        ),
    ]);
}
