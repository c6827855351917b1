//! What is left when no words help: the status, the exit code, the signal.

use super::super::Kind;
use super::super::facts::Overrides;
use super::super::rule::Rule;

pub(crate) const RULES: &[Rule] = &[
    Rule {
        name: "http_429",
        kind: &Kind::RateLimit,
        rank: 10,
        statuses: &[420, 429],
        yes: r#"{"status": 429, "message": "later", "error": {}}"#,
        no: r#"{"status": 428, "error": {"message": "no"}}"#,
        ..Rule::BASE
    },
    Rule {
        name: "http_401",
        kind: &Kind::Auth,
        rank: 10,
        statuses: &[401, 403, 407, 451],
        yes: r#"{"status": 401, "error": {"message": "no"}}"#,
        no: r#"{"status": 404, "error": {"message": "no"}}"#,
        ..Rule::BASE
    },
    Rule {
        name: "http_404",
        kind: &Kind::ModelNotFound,
        rank: 10,
        statuses: &[404, 410],
        yes: r#"{"status": 404, "error": {"message": "no"}}"#,
        no: r#"{"status": 401, "error": {"message": "no"}}"#,
        ..Rule::BASE
    },
    Rule {
        name: "http_408",
        kind: &Kind::Timeout,
        rank: 10,
        statuses: &[408, 504, 522, 524, 598, 599],
        yes: r#"{"status": 504, "error": {"message": "no"}}"#,
        no: r#"{"status": 500, "error": {"message": "no"}}"#,
        ..Rule::BASE
    },
    Rule {
        name: "http_409",
        kind: &Kind::LockContention,
        rank: 10,
        statuses: &[409, 423],
        yes: r#"{"status": 409, "error": {"message": "no"}}"#,
        no: r#"{"status": 400, "error": {"message": "no"}}"#,
        ..Rule::BASE
    },
    Rule {
        name: "http_529",
        kind: &Kind::Overloaded,
        rank: 10,
        statuses: &[498, 529],
        yes: r#"{"status": 529, "error": {"message": "no"}}"#,
        no: r#"{"status": 500, "error": {"message": "no"}}"#,
        ..Rule::BASE
    },
    Rule {
        name: "http_503",
        kind: &Kind::ServiceUnavailable,
        rank: 10,
        statuses: &[503],
        yes: r#"{"status": 503, "error": {"message": "no"}}"#,
        no: r#"{"status": 500, "error": {"message": "no"}}"#,
        ..Rule::BASE
    },
    Rule {
        name: "http_5xx",
        kind: &Kind::ServerError,
        rank: 10,
        statuses: &[500, 501, 502, 505, 507, 508, 520, 521, 523, 525, 526, 527, 530],
        yes: r#"{"status": 500, "error": {"message": "no"}}"#,
        no: r#"{"status": 400, "error": {"message": "no"}}"#,
        ..Rule::BASE
    },
    Rule {
        name: "http_400",
        kind: &Kind::InvalidRequest,
        rank: 10,
        statuses: &[400, 405, 406, 411, 412, 414, 415, 422, 424, 428, 431],
        yes: r#"{"status": 400, "error": {"message": "no"}}"#,
        no: r#"{"status": 500, "error": {"message": "no"}}"#,
        ..Rule::BASE
    },
    Rule {
        name: "errored",
        kind: &Kind::ServerError,
        rank: 8,
        codes: &["finish:error"],
        over: Overrides::NONE,
        yes: r#"{"error": {"finish_reason": "error"}}"#,
        no: r#"{"choices":[{"finish_reason":"stop"}]}"#,
        ..Rule::BASE
    },
];
