//! Tests, linters, gates and reviewers.

use super::super::Kind;
use super::super::facts::Overrides;
use super::super::rule::Rule;
use super::super::{ErrorSeverity, RecoveryAction};

pub(crate) const RULES: &[Rule] = &[
    Rule {
        name: "verifier_flips",
        kind: &Kind::VerifierContradiction,
        rank: 84,
        phrases: &[
            "non-deterministic",
            "nondeterministic",
            "flaky",
            "inconsistent results",
            "results differ between runs",
        ],
        also: &["verify", "test*", "case*", "fail*", "pass*", "verdict*", "round*"],
        over: Overrides {
            severity: Some(ErrorSeverity::Medium),
            retryable: Some(true),
            recoverable: Some(true),
            action: Some(RecoveryAction::Retry),
            ..Overrides::NONE
        },
        yes: r#"{"tool": "verify", "exit_code": 1, "output": "summary: case_17 P F P P F (non-deterministic)"}"#,
        no: "the output is random",
        ..Rule::BASE
    },
    Rule {
        name: "verifier_contradiction",
        kind: &Kind::VerifierContradiction,
        rank: 84,
        phrases: &[
            "verifier contradict*",
            "contradictory verdict*",
            "verdicts disagree*",
            "verdict contradicts*",
            "conflicting verdicts*",
            "verifier disagrees*",
            "both approved and rejected",
            "contradicts its own*",
        ],
        yes: "verifier contradiction: approved in round 1, rejected in round 2 without a change",
        no: "the verifier agreed",
        ..Rule::BASE
    },
    Rule {
        name: "verification_failed",
        kind: &Kind::VerificationFailed,
        rank: 59,
        phrases: &[
            "verification failed*",
            "tests failed*",
            "test failed*",
            "test suites failed*",
            "failing tests*",
            "tests are failing*",
            "assertion failed*",
            "assertionerror*",
            "assertion `left == right` failed*",
            "test result: failed*",
            "lint errors*",
            "lint failed*",
            "fix any errors below*",
            "eslint*",
            "flake8*",
            "ruff check*",
            "clippy*",
            "mypy*",
            "quality gate*",
            "review rejected*",
            "reviewer rejected*",
            "changes requested",
            "verifier rejected*",
            "gate failed*",
            "check failed*",
            "checks failed*",
            "coverage threshold*",
            "pre-commit*",
            "verdict: fail*",
            "verdict: reject*",
            "測試失败",
            "测试失败",
            "テストに失敗",
        ],
        regexes: &[
            ("failed", r"\b\d+ failed\b"),
            ("fail*", r"^(?:--- )?(?-i:FAIL(?:ED|URES)?)\b[:! ]"),
            ("fail*", r"\b(?:tests?|specs?|suites?):? +\d+ failed"),
            ("failing", r"\b\d+ failing\b"),
            ("failures*", r"tests run: \d+, failures: [1-9]"),
        ],
        unless: &["apply_patch verification failed", "jsonparseexception", "certificate*", "preflight*"],
        yes: "=== 2 failed, 40 passed in 1.2s ===",
        no: "All 42 unit tests are green",
        ..Rule::BASE
    },
];
