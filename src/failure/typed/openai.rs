use std::error::Error;

use async_openai::error::{ApiError, ApiErrorResponse, OpenAIError};
use serde_json::Value;

use super::link::Link;

/// What `async-openai`'s errors know.
pub(super) fn read(error: &(dyn Error + 'static), link: &mut Link<'_>) {
    if let Some(error) = error.downcast_ref::<ApiError>() {
        api_error(error, link);
    } else if let Some(answer) = error.downcast_ref::<ApiErrorResponse>() {
        answered(answer, link);
    }
    let Some(error) = error.downcast_ref::<OpenAIError>() else { return };
    link.of_provider = true;
    match error {
        OpenAIError::ApiError(answer) => answered(answer, link),
        OpenAIError::JSONDeserialize(cause, body) => unreadable(cause, body, link),
        OpenAIError::InvalidArgument(_) => link.field("code", "invalid_parameter"),
        // The cause below it, or the words, say all.
        _ => {}
    }
}

fn answered(answer: &ApiErrorResponse, link: &mut Link<'_>) {
    link.field("status", answer.status_code.as_u16());
    api_error(&answer.api_error, link);
}

fn api_error(error: &ApiError, link: &mut Link<'_>) {
    link.of_provider = true;
    link.field("message", error.message.as_str());
    for (name, value) in [("type", &error.r#type), ("code", &error.code), ("param", &error.param)] {
        if let Some(value) = value {
            link.field(name, value.as_str());
        }
    }
}

/// An answer of another shape: often another provider's error, or a gateway's page.
fn unreadable(cause: &serde_json::Error, body: &str, link: &mut Link<'_>) {
    let value = serde_json::from_str::<Value>(body);
    link.field("body", super::chain::bounded(body));
    if value.is_ok_and(|value| value.get("error").is_some_and(|error| !error.is_null())) {
        // What the server says counts more than that it says it in its own way.
        link.field("message", "failed to deserialize api response");
    } else {
        link.field("message", format!("failed to deserialize api response: {cause}"));
        link.field("reason", "invalid response body");
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use reqwest::StatusCode;

    use super::*;
    use crate::failure::{Kind, PatternRegistry, RecoveryError, Report, Source, Timestamp};

    fn detect(error: &(dyn Error + 'static)) -> RecoveryError {
        let report = Report::from_error(error);
        assert_eq!(report.source, Source::Provider);
        PatternRegistry::new().detect_first(&report, Timestamp::default()).into_failure().unwrap()
    }

    fn api(status: u16, message: &str, r#type: &str, code: &str) -> OpenAIError {
        let [r#type, code] = [r#type, code].map(|text| Some(text.to_owned()).filter(|text| !text.is_empty()));
        OpenAIError::ApiError(ApiErrorResponse {
            status_code: StatusCode::from_u16(status).unwrap(),
            api_error: ApiError { message: message.into(), r#type, code, ..ApiError::default() },
        })
    }

    #[test]
    fn status_type_and_code_are_facts() {
        for (error, want) in [
            (api(429, "It is too much", "insufficient_quota", "insufficient_quota"), Kind::QuotaExhausted),
            (api(429, "It is too much", "requests", "rate_limit_exceeded"), Kind::RateLimit),
            (api(400, "It is too much", "invalid_request_error", "context_length_exceeded"), Kind::ContextOverflow),
            (api(401, "It is not right", "invalid_request_error", "invalid_api_key"), Kind::Auth),
            (api(404, "It is not there", "invalid_request_error", "model_not_found"), Kind::ModelNotFound),
            (api(500, "It broke", "server_error", ""), Kind::ServerError),
            (api(503, "It broke", "", ""), Kind::ServiceUnavailable),
        ] {
            let found = detect(&error);
            assert_eq!(found.kind, want, "{error}");
            assert!(found.message.starts_with("It "), "{}", found.message);
        }
    }

    #[test]
    fn an_answer_that_did_not_parse_is_not_the_models_json() {
        let unreadable = |body: &str| {
            let cause = serde_json::from_str::<ApiError>(body).unwrap_err();
            detect(&OpenAIError::JSONDeserialize(cause, body.into())).kind
        };
        assert_eq!(unreadable("{\"choices\": ["), Kind::Network);
        assert_eq!(unreadable(""), Kind::Network);
        assert_eq!(unreadable(r#"{"error": {"message": "Rate limit exceeded", "code": 429}}"#), Kind::RateLimit);
    }

    #[test]
    fn a_wrong_argument_is_an_invalid_request() {
        assert_eq!(detect(&OpenAIError::InvalidArgument("no model".into())).kind, Kind::InvalidRequest);
    }
}
