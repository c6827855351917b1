use std::sync::Arc;

use crate::strategy::Attempt;

/// The reason of a final verdict; it is injected under this mark, with the failure's kind.
///
/// An empty message is the user's wish and stays; one of another type is the default.
pub(super) fn last_words(attempt: &Attempt, mark: &str, default: &str) -> Arc<str> {
    let message = attempt.config().text("message").unwrap_or(default);
    attempt.inject(format!("{mark} {message}\nFailure: {}", attempt.error().kind));
    message.into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::failure::Kind;
    use crate::strategy::testing::trial;

    fn words(settings: serde_json::Value) -> (String, String) {
        let attempt = trial(settings).kind(Kind::Auth).attempt();
        let reason = last_words(&attempt, "[MARK]", "the default");
        let texts = attempt.take_injections();
        assert_eq!(texts.len(), 1);
        (reason.as_ref().to_owned(), texts[0].as_str().to_owned())
    }

    #[test]
    fn they_name_the_kind_and_nothing_of_the_failures_own_words() {
        assert_eq!(words(json!({})), ("the default".into(), "[MARK] the default\nFailure: auth".into()));
    }

    #[test]
    fn an_empty_message_is_kept_and_a_mistyped_one_is_not() {
        assert_eq!(words(json!({"message": ""})).0, "");
        assert_eq!(words(json!({"message": {"a": 1}})).0, "the default");
        assert_eq!(words(json!({"message": null})).0, "the default");
    }
}
