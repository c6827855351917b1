//! Throttles.

use super::super::Kind;
use super::super::rule::Rule;

pub(crate) const RULES: &[Rule] = &[
    Rule {
        name: "too_many_requests",
        kind: &Kind::RateLimit,
        rank: 50,
        phrases: &["too many requests", "rate limit*"],
        yes: "429 Too Many Requests",
        no: "the context window is full",
        ..Rule::BASE
    },
    Rule {
        name: "context_window",
        kind: &Kind::ContextOverflow,
        rank: 70,
        phrases: &["maximum context length"],
        yes: "This model's maximum context length is 8192 tokens",
        no: "429",
        ..Rule::BASE
    },
    Rule {
        name: "refused",
        kind: &Kind::Network,
        rank: 50,
        phrases: &["econnrefused"],
        yes: "Error: connect ECONNREFUSED 127.0.0.1:1",
        no: "429",
        ..Rule::BASE
    },
];
