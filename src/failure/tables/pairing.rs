//! Tool calls and results that do not pair up in the transcript.

use super::super::Kind;
use super::super::rule::Rule;

pub(crate) const RULES: &[Rule] = &[Rule {
    name: "tool_pair",
    kind: &Kind::ToolPairMismatch,
    rank: 89,
    phrases: &[
        "invalid gemini function call history*",
        "does not match functioncall*",
        "must be followed by tool messages*",
        "tool use concurrency issues",
        "did not have response messages",
        "ids were found without*",
        "without `tool_result` blocks*",
        "unexpected `tool_use_id`*",
        "unexpected tool_use_id*",
        "each `tool_result` block must*",
        "each `tool_use` block must*",
        "corresponding `tool_use` block",
        "corresponding `tool_result` block",
        "must be a response to a preceding*",
        "must be a response to a preceeding*",
        "no tool output found for*",
        "no tool call found for*",
        "no function call found*",
        "number of function response parts*",
        "number of toolresult blocks*",
        "number of tool result blocks*",
        "function call turn comes immediately after*",
        "expected toolresult blocks*",
        "function response turn comes immediately after*",
        "tool_call_id not found",
        "not the same number of function calls and responses",
        "tool_result block(s) that are not*",
        "missing tool result*",
        "missing tool_result*",
        "orphaned tool*",
        "dangling tool*",
        "tool call result does not follow*",
        "unanswered tool call*",
        "tool_use blocks without*",
        "tool result without*",
        "tool_call_ids without*",
        "duplicate tool_result*",
        "multiple `tool_result` blocks*",
        "multiple tool_result blocks*",
        "`tool_use` ids must be unique",
        "toolcallid without*",
        "unexpected role 'tool'*",
        "function call must be followed*",
        "tool_use_id found in",
        "without its required following item",
        "without its required 'reasoning' item",
    ],
    regexes: &[
        ("orphan*", r"\btool[ _-]?(?:call|result|use|output)s?\b[^\n]{0,80}\n?[^\n]{0,60}\borphan"),
        ("tool_calls", r"\brole '?tool'?[^\n]{0,80}tool_calls"),
        (
            "tool*",
            concat!(
                r"\btool[ _-]?results?\b[^\n]{0,60}\b(?:without|no|missing|not)\b[^\n]{0,40}\b(?:tool[",
                r" _-]?(?:call|use)|corresponding|preceding|match)"
            ),
        ),
        (
            "tool*",
            concat!(
                r"\btool[ _-]?(?:calls?|uses?)\b[^\n]{0,60}\b(?:without|no|missing|has no|have",
                r" no)\b[^\n]{0,40}\b(?:results?|outputs?|responses?)\b"
            ),
        ),
        ("function*", r"\bfunction[ _]?call[^\n]{0,80}(?:without|no|missing)[^\n]{0,30}(?:output|response|result)"),
        (
            "not found",
            concat!(
                r"tool[_ ](?:call[_ ])?(?:use[_ ])?id\b[^\n]{0,80}\bnot found\b[^\n]{0,60}(?:previous",
                r"|messages|tool_calls|history)?"
            ),
        ),
        ("tool_result*", r"tool_result[^\n]{0,60}\bmissing\b|\bmissing\b[^\n]{0,40}tool_result"),
        ("tool messages", r"tool messages[^\n]{0,60}must (?:follow|be preceded)"),
    ],
    unless: &["unknown tool"],
    yes: "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'.",
    no: "the tool result was empty",
    ..Rule::BASE
}];
