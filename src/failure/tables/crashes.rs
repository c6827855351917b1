//! Programs that broke down, and what they were built from.

use super::super::Kind;
use super::super::rule::Rule;

pub(crate) const RULES: &[Rule] = &[
    Rule {
        name: "compiler_killed",
        kind: &Kind::OutOfMemory,
        rank: 80,
        phrases: &[
            "killed signal terminated program*",
            "virtual memory exhausted*",
            "std::bad_alloc",
            "out of memory: killed process*",
            "oom-kill*",
            "oomkilled",
        ],
        yes: "c++: fatal error: Killed signal terminated program cc1plus",
        no: "the program was terminated",
        ..Rule::BASE
    },
    Rule {
        name: "executable_missing",
        kind: &Kind::ToolUnavailable,
        rank: 76,
        phrases: &[
            "executable doesn't exist at*",
            "executable does not exist at*",
            "playwright install",
            "please install it first*",
            "is it installed?",
            "is it in your path?",
            "not found in path",
            "not found in your path",
            "not found on path",
        ],
        regexes: &[
            ("linker*", r"\blinker \S+ not found"),
            ("not installed*", r"\b\S+ is not installed\b"),
            ("exec*", r#"\bexec: "[^"\n]{1,80}": executable file not found\b"#),
        ],
        unless: &["no module named*", "model*"],
        yes: "error: linker `cc` not found",
        no: "error: the file was not found",
        ..Rule::BASE
    },
    Rule {
        name: "import_of_a_name",
        kind: &Kind::InvalidGeneration,
        rank: 57,
        phrases: &[
            "importerror: cannot import name*",
            "does not provide an export named*",
            "has no exported member*",
            "is not exported from*",
            "unresolved import*",
        ],
        yes: "ImportError: cannot import name 'foo' from 'bar'",
        no: "the import was sorted",
        ..Rule::BASE
    },
    Rule {
        name: "program_crashed",
        kind: &Kind::ProcessFailed,
        rank: 53,
        phrases: &[
            "panic: runtime error*",
            "goroutine 1 [running]*",
            "fatal error: all goroutines are asleep*",
            "exception in thread*",
            "unhandled exception*",
            "uncaught exception*",
            "uncaughtexception*",
            "unhandledpromiserejection*",
            "unhandled promise rejection*",
            "linking with*",
            "linker command failed*",
            "core dumped",
        ],
        unless: &["outofmemory*", "out of memory", "rate limit*", "429", "status code*", "llm*", "provider*"],
        yes: "Exception in thread \"main\" java.lang.NullPointerException",
        no: "the exception was handled in a thread",
        ..Rule::BASE
    },
];
