use crate::failure::{Category, Kind};
use crate::policy::{Chain, ChainKey, Origin, Step};

/// The names of the strategies that Backstop brings along.
pub const BUILT_IN_STRATEGIES: &[&str] = &[
    "retry",
    "remind_and_retry",
    "truncate",
    "compact",
    "summarize",
    "fallback_model",
    "rollback",
    "degrade",
    "skip",
    "suggested",
    "escalate",
    "abort",
];

/// The chains that apply where the user wrote none (DESIGN §10).
pub fn built_in_chains() -> Vec<Chain> {
    let remind = |times: u64| Step::new("remind_and_retry").with("max_retries", times);
    let abort = |message: &str| Step::new("abort").with("message", message);
    let compact = Step::new("compact").with("preserve", vec!["todos", "artifacts"]);
    let chain = |key: ChainKey, steps: Vec<Step>| Chain { key, steps, enabled: true, origin: Origin::BUILT_IN };
    let category = |category: Category, steps: Vec<Step>| chain(ChainKey::Category(category), steps);
    let kind = |kind: Kind, steps: Vec<Step>| chain(ChainKey::Kind(kind), steps);

    let mut chains = vec![
        category(
            Category::SessionError,
            vec![Step::new("retry"), compact, abort("session failed after all recovery attempts")],
        ),
        category(
            Category::ContextWindow,
            vec![Step::new("truncate"), Step::new("summarize"), abort("the context window stayed too small")],
        ),
        category(Category::EditError, vec![remind(2)]),
        category(Category::JsonError, vec![remind(2)]),
        category(Category::EmptyResponse, vec![remind(1)]),
    ];
    for other_model in [Kind::Auth, Kind::QuotaExhausted, Kind::ModelNotFound] {
        chains.push(kind(other_model, vec![Step::new("fallback_model"), Step::new("escalate")]));
    }
    for correctable in [
        Kind::FileNotFound,
        Kind::ToolUnavailable,
        Kind::ToolTimeout,
        Kind::InvalidGeneration,
        Kind::ProcessFailed,
        Kind::OutputLimit,
    ] {
        chains.push(kind(correctable, vec![remind(2), abort("reminders did not help")]));
    }
    for persons in [Kind::InvalidRequest, Kind::Tls, Kind::PermissionDenied] {
        chains.push(kind(persons, vec![Step::new("escalate")]));
    }
    chains
}
