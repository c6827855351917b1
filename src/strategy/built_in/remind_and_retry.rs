//! `remind_and_retry`: the turn again, with a text that helps the model to correct itself.
//!
//! | setting | default | meaning |
//! | --- | --- | --- |
//! | `max_retries` | 2 | redos before the chain goes on; 0 is none |
//! | `reminder_text` | fit for the failure's kind | what the next turn's system prompt is told, word for word |
//!
//! The wait is one second. The default text names the failure's kind and nothing of its words.
//!
//! ```yaml
//! edit_error:
//!   chain:
//!     - strategy: remind_and_retry
//!       config:
//!         max_retries: 3
//!         reminder_text: Read the file again before you edit it.
//! ```

use std::time::Duration;

use super::reminders;
use crate::policy::Answer;
use crate::strategy::settings::{all_made, attempts, words};
use crate::strategy::{Attempt, Decide};

const MAX_RETRIES: u32 = 2;

/// Long enough not to hammer, short enough that nobody waits: the model is to blame, not the server.
const DELAY: Duration = Duration::from_secs(1);

pub(crate) struct RemindAndRetry;

impl Decide for RemindAndRetry {
    fn name(&self) -> &str {
        "remind_and_retry"
    }

    fn decide(&self, attempt: &Attempt) -> Answer {
        let most = attempts(attempt.config(), "max_retries", MAX_RETRIES);
        all_made(attempt, most).unwrap_or_else(|| {
            match words(attempt.config(), "reminder_text") {
                Some(text) => attempt.inject(text),
                None => attempt.inject(default_text(attempt)),
            }
            Answer::retry(DELAY, format!("the model is reminded, attempt {} of {most}", attempt.number()))
        })
    }
}

fn default_text(attempt: &Attempt) -> String {
    let error = attempt.error();
    format!("[RECOVERY] The last turn failed ({}). {}", error.kind, reminders::for_failure(error))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::failure::Kind;
    use crate::strategy::testing::trial;

    fn reminder(settings: serde_json::Value, kind: Kind) -> String {
        let attempt = trial(settings).kind(kind).attempt();
        let answer = RemindAndRetry.decide(&attempt);
        assert!(matches!(answer, Answer::Retry { delay: DELAY, remedy: None, .. }), "{answer:?}");
        let texts = attempt.take_injections();
        assert_eq!(texts.len(), 1);
        texts[0].as_str().to_owned()
    }

    #[test]
    fn the_default_text_fits_the_kind() {
        let text = reminder(json!({}), Kind::EditMultipleMatches);
        assert!(text.contains("(edit_multiple_matches)") && text.contains("more than once"), "{text}");
        assert_ne!(reminder(json!({}), Kind::JsonTruncated), reminder(json!({}), Kind::JsonSyntax));
    }

    #[test]
    fn a_kind_of_the_users_own_gets_its_categorys_text() {
        let text = reminder(json!({}), Kind::parse("my_own"));
        assert!(text.contains("(my_own)") && text.contains("correct it"), "{text}");
    }

    #[test]
    fn nothing_of_the_failures_own_words_is_injected() {
        let text = reminder(json!({}), Kind::Other);
        assert!(!text.contains(&*trial(json!({})).attempt().error().message), "{text}");
    }

    #[test]
    fn the_users_text_is_injected_word_for_word() {
        assert_eq!(reminder(json!({"reminder_text": "多行\n提示"}), Kind::Other), "多行\n提示");
    }

    #[test]
    fn empty_and_mistyped_texts_are_the_default() {
        for written in [json!(""), json!(" \n"), json!(42)] {
            assert_eq!(
                reminder(json!({"reminder_text": written}), Kind::JsonSyntax),
                reminder(json!({}), Kind::JsonSyntax)
            );
        }
    }

    #[test]
    fn spent_it_moves_on_and_says_nothing_to_the_model() {
        for (settings, number) in [(json!({}), 3), (json!({"max_retries": 1}), 2), (json!({"max_retries": 0}), 1)] {
            let attempt = trial(settings).number(number).attempt();
            assert_eq!(RemindAndRetry.decide(&attempt).status(), "next_strategy");
            assert_eq!(attempt.take_injections(), []);
        }
    }
}
