use std::error::Error;

use rig_core::ProviderResponseError;
use rig_core::error::{ErrorReport, ProviderError};
use rig_core::http_client;
use serde_json::{Map, Value};

use super::link::Link;

/// What `rig`'s errors know.
pub(super) fn read<'a>(error: &'a (dyn Error + 'static), link: &mut Link<'a>) {
    if let Some(error) = error.downcast_ref::<ErrorReport>() {
        told(error, link);
    } else if let Some(error) = error.downcast_ref::<http_client::Error>() {
        http(error, link);
    }
    let Some(error) = error.downcast_ref::<ProviderError>() else { return };
    link.of_provider = true;
    if let Some(response) = error.provider_response() {
        return answered(response, link);
    }
    match error {
        // Shared, and not told as a source.
        ProviderError::Http(cause) => link.next = Some(&**cause),
        // What a model writes is parsed elsewhere; here it is the answer around it.
        ProviderError::Json(_) => link.parses_answer = true,
        ProviderError::Truncated => link.field("name", "IncompleteRead"),
        ProviderError::Request(_) | ProviderError::Url(_) | ProviderError::UnsupportedOption(_) => {
            link.field("code", "invalid_parameter");
        }
        ProviderError::Relayed(report) => told(report, link),
        // The words say all.
        _ => {}
    }
}

fn told(report: &ErrorReport, link: &mut Link<'_>) {
    link.of_provider = true;
    if let Some(response) = &report.provider_response {
        answered(response, link);
    }
    if let Some(status) = report.http_status {
        link.field("status", status);
    }
    if let Some(code) = &report.code {
        link.field("code", code.as_str());
    }
}

fn http(error: &http_client::Error, link: &mut Link<'_>) {
    link.of_provider = true;
    match error {
        http_client::Error::InvalidStatusCodeWithDetails { status, body, headers } => {
            link.field("message", "the answer is an error");
            link.field("status", status.as_u16());
            link.field("headers", texts(headers.iter().map(|(name, value)| (name.as_str(), value.to_str().ok()))));
            link.field("body", super::chain::bounded(body));
        }
        http_client::Error::StreamEnded => link.field("name", "IncompleteRead"),
        _ => {}
    }
}

fn answered(response: &ProviderResponseError, link: &mut Link<'_>) {
    link.field("message", "the provider's answer is an error");
    link.field("body", super::chain::bounded(&response.body));
    if let Some(status) = response.status {
        link.field("status", status.as_u16());
    }
    if let Some(code) = &response.code {
        link.field("code", code.as_str());
    }
    if response.refusal {
        link.field("reason", "content_filter");
    }
    if let Some(headers) = &response.headers {
        link.field("headers", texts(headers.iter().map(|(name, value)| (name.as_str(), value.to_str().ok()))));
    }
}

fn texts<'a>(headers: impl Iterator<Item = (&'a str, Option<&'a str>)>) -> Map<String, Value> {
    headers.filter_map(|(name, value)| Some((name.to_owned(), value?.into()))).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io;
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::failure::{Kind, PatternRegistry, RecoveryError, Report, Timestamp};

    fn detect(error: &(dyn Error + 'static)) -> RecoveryError {
        let found = PatternRegistry::new().detect_first(&Report::from_error(error), Timestamp::default());
        found.into_failure().unwrap()
    }

    fn response(status: u16, body: &str, retry_after: &str) -> ProviderResponseError {
        let headers = [("retry-after".parse().unwrap(), retry_after.parse().unwrap())];
        ProviderResponseError::new(status.try_into().unwrap(), body).with_headers(Some(headers.into_iter().collect()))
    }

    #[test]
    fn status_headers_and_body_of_the_answer_are_facts() {
        let found = detect(&ProviderError::ProviderResponse(response(429, "later", "7")));
        assert_eq!((found.kind, found.details.retry_after), (Kind::RateLimit, Some(Duration::from_secs(7))));
        let overflow = r#"{"error":{"code":"context_length_exceeded","message":"too much"}}"#;
        let found = detect(&ProviderError::ProviderResponse(response(400, overflow, "0")));
        assert_eq!(found.kind, Kind::ContextOverflow);
        let found = detect(&ProviderError::InvalidAuthentication(response(401, "no", "0")));
        assert_eq!(found.kind, Kind::Auth);
    }

    #[test]
    fn a_refused_answer_is_a_filters() {
        let refused = ProviderResponseError::without_status("I will not").with_refusal(true);
        assert_eq!(detect(&ProviderError::ProviderResponse(refused)).kind, Kind::ContentFilter);
    }

    #[test]
    fn the_transports_own_error_is_the_cause() {
        let reset = || io::Error::from(io::ErrorKind::ConnectionReset);
        let error = ProviderError::Http(Arc::new(http_client::Error::Instance(Box::new(reset()))));
        assert_eq!(detect(&error).kind, Kind::Network);
        let error = ProviderError::Http(Arc::new(http_client::Error::StreamEnded));
        assert_eq!(detect(&error).kind, Kind::StreamInterrupted);
        assert_eq!(detect(&ProviderError::Truncated).kind, Kind::StreamInterrupted);
    }

    #[test]
    fn an_answer_that_did_not_parse_is_not_the_models_json() {
        let cause = serde_json::from_str::<Value>("{\"choices\": [").unwrap_err();
        assert_eq!(detect(&ProviderError::Json(Arc::new(cause))).kind, Kind::Network);
    }

    #[test]
    fn a_relayed_report_keeps_its_facts() {
        let mut report = ErrorReport::new(rig_core::ErrorKind::ProviderResponse, "it did not work");
        report.http_status = Some(529);
        assert_eq!(detect(&report).kind, Kind::Overloaded);
        assert_eq!(detect(&ProviderError::Relayed(Box::new(report))).kind, Kind::Overloaded);
    }
}
