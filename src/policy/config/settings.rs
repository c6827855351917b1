use super::form::Form;

/// One setting of a strategy.
#[derive(Debug, Clone, Copy)]
pub(super) struct Setting {
    pub(super) name: &'static str,
    pub(super) form: Form,
    /// One sentence for the schema.
    pub(super) about: &'static str,
}

const fn setting(name: &'static str, form: Form, about: &'static str) -> Setting {
    Setting { name, form, about }
}

/// Repetitions of one step; more is a loop, which [`max_total_attempts`] would end anyway.
///
/// [`max_total_attempts`]: crate::policy::Limits::max_total_attempts
const TIMES: Form = Form::Whole(0, 1_000);

/// A wait of at most one day.
const WAIT_MS: Form = Form::Whole(0, 24 * 60 * 60 * 1_000);

/// The setting that every step has, own strategies' too.
pub(super) const TIMEOUT: Setting =
    setting("timeout_ms", Form::Whole(1, 24 * 60 * 60 * 1_000), "Time limit of one execution, in milliseconds.");

const RETRY: &[Setting] = &[
    setting("max_retries", TIMES, "Redos before the next step."),
    setting("backoff_ms", WAIT_MS, "Wait before the first redo, in milliseconds."),
    setting("backoff_factor", Form::Number(1.0, 100.0), "What each further wait is multiplied by."),
    setting("max_backoff_ms", WAIT_MS, "Longest wait, in milliseconds."),
    setting("jitter", Form::Flag, "Spread waits over 50 to 100 percent, so that a fleet does not return at once."),
];
const REMIND_AND_RETRY: &[Setting] = &[
    setting("max_retries", TIMES, "Redos before the next step."),
    setting("reminder_text", Form::Text, "What the next turn is told; fit for the kind by default."),
];
const TRUNCATE: &[Setting] = &[
    setting("max_truncations", TIMES, "Cuts before the next step."),
    setting("target_ratio", Form::Share, "The share of the request that one cut keeps."),
    setting(
        "min_output_size",
        Form::Whole(0, 1_000_000_000),
        "The smallest output that still makes sense, in characters.",
    ),
];
const COMPACT: &[Setting] = &[setting("preserve", Form::Names, "What the compaction must keep; passed to the client.")];
const SUMMARIZE: &[Setting] = &[setting("model", Form::Name, "The model that writes the summary.")];
const FALLBACK_MODEL: &[Setting] = &[
    setting("model", Form::Name, "The other model, `provider/name` or `name`."),
    setting("models", Form::Names, "Other models, tried in order."),
];
const ROLLBACK: &[Setting] =
    &[setting("checkpoint", Form::Name, "The checkpoint's name; the last good one by default.")];
const VERDICT: &[Setting] = &[setting("message", Form::Text, "The verdict's reason, for people.")];

/// The settings of a built-in strategy beside [`TIMEOUT`]; `None` for others, whose settings are
/// free.
pub(super) fn settings_of(strategy: &str) -> Option<&'static [Setting]> {
    Some(match strategy {
        "retry" => RETRY,
        "remind_and_retry" => REMIND_AND_RETRY,
        "truncate" => TRUNCATE,
        "compact" => COMPACT,
        "summarize" => SUMMARIZE,
        "fallback_model" => FALLBACK_MODEL,
        "rollback" => ROLLBACK,
        "degrade" | "skip" | "suggested" => &[],
        "escalate" | "abort" => VERDICT,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::BUILT_IN_STRATEGIES;
    use super::*;

    #[test]
    fn every_built_in_strategy_has_a_table() {
        for strategy in BUILT_IN_STRATEGIES {
            assert!(settings_of(strategy).is_some(), "{strategy}");
        }
        assert!(settings_of("my_own").is_none());
    }
}
