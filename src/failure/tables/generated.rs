//! Generated code that is not valid.

use super::super::facts::Overrides;
use super::super::rule::Rule;
use super::super::{Category, ErrorSeverity, Kind};

pub(crate) const RULES: &[Rule] = &[
    Rule {
        name: "generated_syntax",
        kind: &Kind::InvalidGeneration,
        rank: 87,
        phrases: &[
            "introduced new syntax error*",
            "introduces syntax error*",
            "syntax error in generated*",
            "would introduce syntax*",
        ],
        over: Overrides { category: Some(Category::EditError), ..Overrides::NONE },
        yes: "Your proposed edit has introduced new syntax error(s).",
        no: "SyntaxError: Unexpected token } in JSON at position 4",
        ..Rule::BASE
    },
    Rule {
        name: "compile_error",
        kind: &Kind::InvalidGeneration,
        rank: 58,
        phrases: &[
            "syntaxerror: invalid syntax",
            "indentationerror*",
            "taberror*",
            "syntaxerror: unexpected identifier*",
            "syntaxerror: missing )*",
            "syntaxerror: unexpected eof while parsing",
            "syntaxerror: unterminated string literal*",
            "syntaxerror: '(' was never closed",
            "syntaxerror: expected*",
            "could not compile",
            "compilation failed",
            "compilation error*",
            "build failed",
            "failed to compile",
            "cannot find symbol",
            "undefined reference to*",
            "was not declared in this scope",
            "syntax error near unexpected token*",
            "parse error near*",
            "cannot find name",
            "does not compile",
        ],
        regexes: &[
            ("error*", r"^error\[E\d{4}\]"),
            ("error*", r"\berror TS\d{4}\b"),
            ("error*", r":\d+:\d+: (?:fatal )?error: "),
            ("error*", r"\.java:\d+: error: "),
            ("syntax error*", r"\.go:\d+:\d+: syntax error"),
        ],
        unless: &["json at position", "not valid json", "json.decoder"],
        over: Overrides { severity: Some(ErrorSeverity::Low), ..Overrides::NONE },
        yes: "  File \"<string>\", line 1\n    def f(:\n          ^\nSyntaxError: invalid syntax",
        no: "Unexpected token } in JSON at position 4",
        ..Rule::BASE
    },
];
