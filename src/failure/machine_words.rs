//! Codes, statuses and named numbers: what a value tells to machines.

use std::borrow::Cow;

use serde_json::Value;

use super::text::head;
use super::walk::{MAX_CODE, MAX_FACTS, Walk};

impl Walk {
    pub(crate) fn status_or_code(&mut self, value: &Value) {
        let number = value.as_i64().or_else(|| value.as_str()?.parse().ok());
        match (number, value.as_str()) {
            (Some(status @ 100..=599), _) => {
                let status = u16::try_from(status).unwrap_or_default();
                self.failed |= status >= 400;
                self.worked |= status < 300;
                // The innermost status that is an error wins over a wrapper's.
                if status >= 400 || self.status.is_none() {
                    self.status = Some(status);
                }
            }
            (Some(0), _) => self.worked = true,
            (Some(number), _) => {
                self.failed = true;
                self.code(&number.to_string());
            }
            (None, Some(word)) => self.code(&lower(word)),
            (None, None) => {}
        }
    }

    pub(crate) fn code(&mut self, word: &str) {
        if !word.is_empty() && self.codes.len() < MAX_FACTS {
            self.codes.push(head(word, MAX_CODE).to_owned());
        }
    }

    pub(crate) fn number(&mut self, name: &str, value: &Value) -> bool {
        let wait = name.contains("retry") || name.contains("resets");
        match value {
            Value::Number(number) => {
                if self.numbers.len() < MAX_FACTS {
                    self.numbers.push((name.to_owned(), number.to_string()));
                }
                true
            }
            Value::String(text) if wait && text.len() < MAX_CODE => {
                self.numbers.push((name.to_owned(), text.clone()));
                true
            }
            Value::Bool(flag) => {
                self.code(&format!("{name}={flag}"));
                true
            }
            _ => false,
        }
    }
}

/// A machine word as it is compared: what is longer is none.
pub(crate) fn lower(word: &str) -> String {
    head(word, MAX_CODE).to_ascii_lowercase()
}

/// A key's name without case, underscores and hyphens.
pub(crate) fn plain(key: &str) -> Cow<'_, str> {
    let key = head(key, MAX_CODE);
    if key.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return Cow::Borrowed(key);
    }
    key.chars().filter(|ch| !matches!(ch, '_' | '-')).map(|ch| ch.to_ascii_lowercase()).collect::<String>().into()
}
