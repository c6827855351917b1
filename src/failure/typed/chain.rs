use std::error::Error;

use serde_json::{Value, json};

use super::super::text::head_and_tail;
use super::super::{Report, Source};
use super::link::Link;
use super::{standard, task};

/// How many causes of a Rust error are followed.
const MAX_CHAIN: usize = 16;
/// The longest message of one error that is kept, in bytes.
const MAX_MESSAGE: usize = 64 * 1024;

impl Report {
    /// A report of a Rust error and the causes below it.
    ///
    /// The chain of `source`s is followed, at most 16 errors deep, and what a type knows becomes a fact
    /// beside the words:
    ///
    /// | type | facts |
    /// | --- | --- |
    /// | `std::io::Error` | the system's name of its kind or number (`ENOSPC`, `EMFILE`, `ECONNREFUSED`, …); an error inside it is its cause |
    /// | `serde_json::Error` | cut off, malformed, or of the wrong shape |
    /// | `tokio::time::error::Elapsed` | a time-out |
    /// | `tokio::task::JoinError` | a panic fails the process, with the panic's text (masked); a task that was aborted sets [`Report::cancelled`] |
    /// | `reqwest::Error` (feature `reqwest`) | status, time-out, connection, body; URLs lose user, password and query in every message of the chain |
    /// | `async_openai::error::OpenAIError` (feature `async-openai`) | status, `type`, `code`; the text that did not parse |
    /// | `rig_core::error::ProviderError` (feature `rig`) | status, headers and body of the answer |
    ///
    /// A report that stands in the chain already is taken as it is.
    ///
    /// # Whose JSON it was
    ///
    /// A [`serde_json::Error`] does not say where its text came from, and JSON words mean a category
    /// [`JsonError`](crate::failure::Category::JsonError) only where the model wrote the text. Below an error of an
    /// HTTP client it is the server's answer that did not parse, which is a failure of the network.
    /// Elsewhere the words decide: alone they speak of the model's output, which is what a turn most often
    /// parses. Wrap the error in one of your own that names what was read (`cannot read settings.json`,
    /// `invalid response body`), and it counts as that.
    ///
    /// ```
    /// use backstop::failure::{Kind, PatternRegistry, Report, Timestamp};
    ///
    /// let kind = |report: &Report| {
    ///     let found = PatternRegistry::new().detect_first(report, Timestamp::default());
    ///     found.into_failure().map(|error| error.kind)
    /// };
    /// let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
    /// assert_eq!(kind(&Report::from_error(&refused)), Some(Kind::Network));
    ///
    /// let cut = serde_json::from_str::<serde_json::Value>(r#"{"plan": ["#).unwrap_err();
    /// assert_eq!(kind(&Report::from_error(&cut)), Some(Kind::JsonTruncated));
    /// ```
    pub fn from_error(error: &(dyn Error + 'static)) -> Self {
        let mut chain: Vec<Link> = Vec::new();
        let mut next = Some(error);
        let mut parses_answer = false;
        while let Some(error) = next.filter(|_| chain.len() < MAX_CHAIN) {
            if let Some(report) = error.downcast_ref::<Self>() {
                return report.clone();
            }
            let above = chain.last().and_then(|link| link.fields.get("message")?.as_str());
            let link = read(error, above, parses_answer);
            parses_answer |= link.parses_answer;
            next = link.next.or_else(|| error.source());
            chain.push(link);
        }
        join(chain)
    }
}

/// What is known of one error; `above` is the message of the one that wraps it.
fn read<'a>(error: &'a (dyn Error + 'static), above: Option<&str>, parses_answer: bool) -> Link<'a> {
    let mut link = Link::default();
    #[cfg(feature = "reqwest")]
    super::request::read(error, &mut link);
    #[cfg(feature = "async-openai")]
    super::openai::read(error, &mut link);
    #[cfg(feature = "rig")]
    super::rig::read(error, &mut link);
    standard::io(error, &mut link);
    standard::json(error, above, parses_answer, &mut link);
    task::read(error, &mut link);
    if !link.fields.contains_key("message") {
        link.field("message", bounded(&error.to_string()));
    }
    link
}

/// Head and tail of a text that may be of any size.
pub(super) fn bounded(text: &str) -> String {
    head_and_tail(text, MAX_MESSAGE).into_owned()
}

/// The innermost error inside the next outer one, and so on.
fn join(mut chain: Vec<Link>) -> Report {
    let replaced: Vec<_> = chain.iter_mut().flat_map(|link| std::mem::take(&mut link.replaced)).collect();
    let cancelled = chain.iter().any(|link| link.cancelled);
    let of_provider = chain.iter().any(|link| link.of_provider);
    let mut value = Value::Null;
    for mut link in chain.into_iter().rev() {
        if let Some(Value::String(message)) = link.fields.get_mut("message") {
            for (text, instead) in &replaced {
                *message = message.replace(text, instead);
            }
        }
        if !value.is_null() {
            link.field("cause", value);
        }
        value = Value::Object(link.fields);
    }
    let source = if of_provider { Source::Provider } else { Source::Unknown };
    Report { cancelled, source, ..Report::new(json!({ "error": value })) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fmt;
    use std::io;

    use super::*;
    use crate::failure::{Kind, PatternRegistry, Timestamp};

    /// An error of a host's own.
    #[derive(Debug)]
    struct Host(&'static str, Option<Box<dyn Error + Send + Sync>>);

    impl fmt::Display for Host {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl Error for Host {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            self.1.as_deref().map(|error| error as _)
        }
    }

    fn kind(error: &(dyn Error + 'static)) -> Kind {
        let found = PatternRegistry::new().detect_first(&Report::from_error(error), Timestamp::default());
        found.into_failure().unwrap().kind
    }

    #[test]
    fn the_innermost_cause_names_the_failure() {
        let disk = io::Error::from(io::ErrorKind::StorageFull);
        let wrapped = Host("cannot save", Some(Box::new(Host("write failed", Some(Box::new(disk))))));
        assert_eq!(kind(&wrapped), Kind::DiskFull);
    }

    #[test]
    fn an_error_inside_an_io_error_is_its_cause() {
        let inner = Host("turn failed", Some(Box::new(io::Error::from(io::ErrorKind::ConnectionReset))));
        assert_eq!(kind(&io::Error::other(inner)), Kind::Network);
        let report = Report::text("429 Too Many Requests").with_turn(3);
        assert_eq!(Report::from_error(&io::Error::other(report.clone())), report);
    }

    #[test]
    fn a_chain_without_end_is_cut() {
        let mut error = Host("end", None);
        for _ in 0..10_000 {
            error = Host("link", Some(Box::new(error)));
        }
        let text = Report::from_error(&error).value.to_string();
        assert_eq!(text.matches("link").count(), MAX_CHAIN);
        // Dropped piece by piece: a chain as long would be dropped by recursion.
        while let Some(next) = error.1.take() {
            error = *next.downcast::<Host>().unwrap();
        }
    }

    #[test]
    fn json_that_was_read_elsewhere_is_no_fault_of_the_model() {
        let cut = || serde_json::from_str::<Value>("{\"a\":").unwrap_err();
        assert_eq!(kind(&cut()), Kind::JsonTruncated);
        assert_eq!(kind(&Host("the plan is unusable", Some(Box::new(cut())))), Kind::JsonTruncated);
        let state = Host("cannot read state/session.json", Some(Box::new(cut())));
        assert_eq!(kind(&state), Kind::DataCorruption);
        assert_eq!(kind(&Host("invalid response body", Some(Box::new(cut())))), Kind::Network);
    }
}
