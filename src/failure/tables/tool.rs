//! Tools and their servers: missing, slow, failed, gone.

use super::super::Kind;
use super::super::facts::Overrides;
use super::super::rule::Rule;
use super::super::{ErrorSeverity, RecoveryAction};

pub(crate) const RULES: &[Rule] = &[
    Rule {
        name: "tool_unavailable",
        kind: &Kind::ToolUnavailable,
        rank: 87,
        phrases: &[
            "unknown tool*",
            "unavailable tool*",
            "no such tool*",
            "tool not found*",
            "tool does not exist",
            "no tool named*",
            "ai_nosuchtoolerror",
            "nosuchtoolerror",
            "invalid tool name*",
            "tool is not available",
            "not a valid tool*",
            "unknown function*",
            "function not found*",
            "unknown_server",
            "server is not configured",
            "not found in registry",
            "unknown mcp server*",
            "工具不存在",
            "未知工具",
            "ツールが見つかりません",
        ],
        regexes: &[
            (
                "tool*",
                concat!(
                    r"\btool\b[^\n\r\x{2028}]{0,100}\b(?:not found|does not exist|doesn't exist|is not",
                    r" (?:available|registered|defined|enabled))\b"
                ),
            ),
            ("tool", r"\A *tool .*not found"),
        ],
        unless: &["tool call timed out", "tool_call_id*", "tool_use_id*", "no tool output*", "file not found"],
        yes: "Model tried to call unavailable tool 'ProxyRead'. Available tools: bash, read.",
        no: "not found: tool grep",
        ..Rule::BASE
    },
    Rule {
        name: "command_not_found",
        kind: &Kind::ProcessFailed,
        rank: 69,
        phrases: &[
            "command not found",
            "is not recognized as an internal*",
            "executable file not found*",
            "executable not found*",
            "未找到命令",
            "コマンドが見つかりません",
        ],
        regexes: &[
            ("enoent", r"spawn\b[^\n]{0,200}\bENOENT|\bENOENT\b[^\n]{0,80}spawn"),
            ("not found", r"^(?:/bin/)?(?:ba|z|da)?sh: (?:line )?\d*:? ?[\w./-]+: not found"),
        ],
        yes: "bash: line 1: pnpm: command not found",
        no: "the command was found",
        ..Rule::BASE
    },
    Rule {
        name: "bad_flag",
        kind: &Kind::ProcessFailed,
        rank: 69,
        phrases: &[
            "unrecognized argument*",
            "unrecognized option*",
            "unknown option*",
            "unknown argument*",
            "unexpected argument*",
            "unknown flag*",
            "invalid option*",
            "no such option*",
            "flag provided but not defined*",
        ],
        yes: "aider: error: unrecognized arguments: --no-such-flag",
        no: "the flag was raised",
        ..Rule::BASE
    },
    Rule {
        name: "command_terminated_after_timeout",
        kind: &Kind::ToolTimeout,
        rank: 78,
        phrases: &[
            "terminated command after exceeding timeout*",
            "because it took more than*",
            "took longer than*",
            "exceeded the timeout*",
            "exceeded its timeout*",
            "did not complete within*",
            "did not finish within*",
            "was killed because it exceeded*",
            "killed by timeout*",
            "command timed out*",
            "killed after timeout*",
            "command was killed after*",
        ],
        regexes: &[(
            "time*",
            concat!(
                r"\b(?:command|process|shell|script|bash|exec)\b[^\n]{0,80}\b(?:timed out|exceed\w*",
                r" (?:the )?time|timeout of|time limit)"
            ),
        )],
        over: Overrides { retryable: Some(false), action: Some(RecoveryAction::RemindAndRetry), ..Overrides::NONE },
        yes: "Command timed out after 120000 ms",
        no: "Request timed out",
        ..Rule::BASE
    },
    Rule {
        name: "tool_timeout",
        kind: &Kind::ToolTimeout,
        rank: 77,
        phrases: &[
            "mcp error -32001*",
            "tool timed out*",
            "tool call timed out*",
            "tool execution timed out*",
            "ツールがタイムアウト",
            "工具执行超时",
        ],
        regexes: &[
            ("time*", r"\b(?:tool|mcp|function)\b[^\n]{0,80}\b(?:timed out|timeout|time limit)"),
            ("time*", r"\b(?:navigation|selector|locator|page)\b[^\n]{0,40}\btimeout (?:of )?\d+ ?ms exceeded"),
        ],
        unless: &["upstream timeout", "tool_calls"],
        yes: "MCP error -32001: Request timed out",
        no: "the tool ran",
        ..Rule::BASE
    },
    Rule {
        name: "mcp_not_connected",
        kind: &Kind::McpDisconnected,
        rank: 75,
        regexes: &[
            ("not connected", r"\A(?:error: )?not connected\.?(?:\n|\z)"),
            ("disconnected", r"\bmcp\b[^\n]{0,80}\bdisconnected"),
            ("not connected", r"\b(?:mcp|server|client)\b[^\n]{0,60}\bnot connected"),
        ],
        over: Overrides { retryable: Some(false), ..Overrides::NONE },
        yes: r#"{"isError": true, "content": [{"type": "text", "text": "Not connected"}]}"#,
        no: "MCP error -32000: Connection closed",
        ..Rule::BASE
    },
    Rule {
        name: "mcp_disconnected",
        kind: &Kind::McpDisconnected,
        rank: 74,
        phrases: &["mcp error -32000*", "transport closed", "server transport closed unexpectedly"],
        regexes: &[(
            "mcp*",
            concat!(
                r"\bmcp\b[^\n]{0,100}\b(?:connection (?:closed|lost|reset|refused)|server (?:exited",
                r"|crashed|died|closed|stopped)|transport (?:closed|error)|failed to (?:start|connect",
                r"|reconnect))"
            ),
        )],
        yes: "Error calling tool 'execute_sql': MCP error -32000: Connection closed",
        no: "MCP error -32001: Request timed out",
        ..Rule::BASE
    },
    Rule {
        name: "invalid_tool_json",
        kind: &Kind::JsonSyntax,
        rank: 73,
        phrases: &["invalid json argument*", "properly formatted json*"],
        yes: "Invalid JSON argument. Please retry with a properly formatted JSON argument",
        no: "invalid argument: 7",
        ..Rule::BASE
    },
    Rule {
        name: "restore_failed",
        kind: &Kind::ToolFailed,
        rank: 70,
        phrases: &[
            "restore failed*",
            "rollback failed*",
            "failed to restore*",
            "failed to roll back*",
            "would be overwritten by*",
        ],
        over: Overrides {
            severity: Some(ErrorSeverity::Critical),
            recoverable: Some(false),
            action: Some(RecoveryAction::Escalate),
            ..Overrides::NONE
        },
        yes: "Restore failed: error: Your local changes to the following files would be overwritten by checkout",
        no: "the store failed over",
        ..Rule::BASE
    },
    Rule {
        name: "tool_failed",
        kind: &Kind::ToolFailed,
        rank: 45,
        phrases: &[
            "mcp error*",
            "tool execution failed*",
            "tool failed*",
            "error executing tool*",
            "error calling tool*",
            "tool call failed*",
            "error reading file",
            "error running tool*",
            "tool_error",
            "toolexecutionerror",
            "工具执行失败",
            "ツールの実行に失敗",
        ],
        yes: "Error executing tool fetch_page: odd answer",
        no: "the toolbox failed",
        ..Rule::BASE
    },
];
