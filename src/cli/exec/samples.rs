use serde_json::json;

use crate::failure::{Report, Source};

/// Failures that every agent meets sooner or later, as a command shows them: one for each chain that matters.
pub(super) fn reports() -> Vec<Report> {
    const STDERR: [&str; 10] = [
        "Error: 429 Too Many Requests: rate limit exceeded",
        "Error: 529 {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}",
        "Error: 500 Internal Server Error",
        "Error: connect ECONNREFUSED 127.0.0.1:443",
        "Error: request timed out",
        "Error: 401 {\"error\":{\"type\":\"authentication_error\",\"message\":\"invalid x-api-key\"}}",
        "Error: 429 You exceeded your current quota, please check your plan and billing details. (insufficient_quota)",
        "Error: 404 The model `no-such-model` does not exist (model_not_found)",
        "Error: 400 prompt is too long: 210000 tokens > 200000 maximum",
        "it went wrong",
    ];
    let command = |stderr: &str| {
        Report::new(json!({"exit_code": 1, "stderr": stderr, "stdout": ""}))
            .with_source(Source::Command)
            .with_exit_code(1)
    };
    let empty = json!({"exit_code": 0, "stderr": "", "stdout": "", "code": "empty_response",
        "message": "the command ended with exit code 0 and an empty answer"});
    let empty = Report::new(empty).with_source(Source::Command).with_exit_code(0);
    STDERR.into_iter().map(command).chain([empty]).collect()
}
