//! Structured replies of a model that cannot be read.

use super::super::Kind;
use super::super::rule::Rule;

pub(crate) const RULES: &[Rule] = &[
    Rule {
        name: "malformed_call",
        kind: &Kind::JsonSyntax,
        rank: 79,
        phrases: &["malformed function call*", "malformed_function_call*", "malformed tool call*"],
        codes: &["finish:malformed_function_call"],
        yes: "Response stopped due to malformed function call.",
        no: "the function call was formed",
        ..Rule::BASE
    },
    Rule {
        name: "reply_yaml",
        kind: &Kind::JsonSyntax,
        rank: 79,
        phrases: &["model output*", "model's output*", "llm output*", "model response*", "llm response*"],
        also: &[
            "yaml parse*",
            "yaml error*",
            "parse yaml*",
            "parse the yaml*",
            "invalid yaml*",
            "yaml.scanner*",
            "toml*",
        ],
        yes: "YAML parse error in model output: mapping values are not allowed here",
        no: "the model output was YAML",
        ..Rule::BASE
    },
    Rule {
        name: "reply_json",
        kind: &Kind::JsonSyntax,
        rank: 79,
        // The text says whose JSON it is, whatever library found it wrong.
        phrases: &[
            "assistant reply",
            "assistant response",
            "assistant message",
            "model output",
            "model reply",
            "model response",
            "model's output",
            "model's reply",
            "model's response",
            "llm output",
            "llm reply",
            "llm response",
            "output of the model",
            "response from the model",
            "response of the model",
            "structured output",
            "模型输出",
            "模型返回",
            "模型响应",
            "モデルの出力",
            "モデルの応答",
        ],
        also: &[
            "jsonparseexception*",
            "jsondecodeerror*",
            "not valid json",
            "invalid json*",
            "unexpected token*",
            "unexpected character*",
            "expecting value*",
            "expected value at line*",
            "looking for beginning of value",
            "malformed json*",
            "解析",
            "json の解析*",
        ],
        unless: &["unexpected end of*", "eof while parsing*", "unterminated*", "truncated*", "tool_use_failed"],
        yes: "Failed to deserialize assistant reply into Plan: JsonParseException: Unexpected character ('`')",
        no: "com.fasterxml.jackson.core.JsonParseException: Unexpected character",
        ..Rule::BASE
    },
];
