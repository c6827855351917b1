//! What a tool's own code raises when it breaks, and what the system answers to a file operation.

use super::super::Kind;
use super::super::rule::Rule;

pub(crate) const RULES: &[Rule] = &[
    Rule {
        name: "tool_exception",
        kind: &Kind::ToolFailed,
        rank: 56,
        phrases: &[
            "toolexception*",
            "tool exception*",
            "tool raised*",
            "exception in tool*",
            "exception while running the tool*",
        ],
        codes: &["toolexception", "toolexecutionerror", "ai_toolexecutionerror", "toolerror"],
        yes: "ToolException: the search backend returned no collection",
        no: "the tool executed",
        ..Rule::BASE
    },
    Rule {
        name: "too_much_to_read",
        kind: &Kind::ToolFailed,
        rank: 88,
        phrases: &[
            "exceeds maximum allowed tokens*",
            "exceeds the maximum allowed tokens*",
            "file too large*",
            "file is too large*",
            "file content is too large*",
            "file size exceeds*",
            "too large to read*",
            "too large to display*",
        ],
        also: &["offset*", "pagination*", "file*", "read*", "tool*"],
        unless: &["prompt*", "context window*", "request*", "413*", "upload*"],
        yes: "File content (31337 tokens) exceeds maximum allowed tokens (25000). Please use offset and limit.",
        no: "The request exceeds the maximum allowed tokens of the context window.",
        ..Rule::BASE
    },
    Rule {
        name: "file_operation_refused",
        kind: &Kind::ToolFailed,
        rank: 55,
        phrases: &[
            "eexist",
            "exdev",
            "enotempty",
            "file already exists",
            "cross-device link*",
            "invalid cross-device link*",
            "directory not empty",
            "fileexistserror*",
            "enametoolong",
            "file name too long",
            "too many levels of symbolic links*",
            "eloop",
        ],
        codes: &["eexist", "exdev", "enotempty", "enametoolong", "eloop"],
        unless: &["lock*", "another git process*"],
        yes: "EEXIST: file already exists, mkdir '/repo/out'",
        no: "No such file: it exists elsewhere.",
        ..Rule::BASE
    },
    Rule {
        name: "medium_fails",
        kind: &Kind::DataCorruption,
        rank: 66,
        phrases: &[
            "eio: i/o error*",
            "eio: input/output error*",
            "errno 5] input/output error*",
            ": input/output error",
            "input/output error (os error 5)",
            "structure needs cleaning*",
            "buffer i/o error*",
            "bad superblock*",
            "checksum mismatch on disk*",
        ],
        codes: &["eio"],
        yes: "EIO: i/o error, read",
        no: "the input/output module",
        ..Rule::BASE
    },
];
