use std::error::Error;

use reqwest::header::HeaderMap;
use reqwest::{StatusCode, Url};
use serde_json::Value;

use super::super::Report;
use super::link::Link;

impl Report {
    /// A report of an HTTP response taken apart: [`Report::from_response`] for the types of the `http` crate.
    ///
    /// Headers that are no text are left out.
    ///
    /// ```
    /// use backstop::Report;
    /// use reqwest::{StatusCode, header::HeaderMap};
    ///
    /// let headers = HeaderMap::from_iter([("retry-after".parse().unwrap(), "7".parse().unwrap())]);
    /// let report = Report::from_http_parts(StatusCode::TOO_MANY_REQUESTS, &headers, "slow down");
    /// assert_eq!((report.status, &report.value["headers"]["retry-after"]), (Some(429), &"7".into()));
    /// ```
    pub fn from_http_parts(status: StatusCode, headers: &HeaderMap, body: impl Into<Value>) -> Self {
        let headers = headers.iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
        Self::from_response(status.as_u16(), headers, body)
    }
}

/// What an HTTP client's errors know.
pub(super) fn read(error: &(dyn Error + 'static), link: &mut Link<'_>) {
    let Some(error) = error.downcast_ref::<reqwest::Error>() else { return };
    if let Some(status) = error.status() {
        link.field("status", status.as_u16());
        // Words about a whole class of statuses, which would outweigh the status itself.
        for class in ["HTTP status server error", "HTTP status client error"] {
            link.replaced.push((class.to_owned(), "HTTP status".to_owned()));
        }
    }
    // Names that the tables know.
    if error.is_timeout() {
        link.field("name", "TimeoutError");
    } else if error.is_body() {
        link.field("name", "IncompleteRead");
    } else if error.is_connect() {
        link.field("name", "ConnectError");
    } else if error.is_builder() {
        link.field("code", "invalid_parameter");
    }
    link.parses_answer = error.is_decode();
    if let Some(url) = error.url() {
        let shown = without_secrets(url);
        link.field("url", shown.as_str());
        link.replaced.push((url.as_str().to_owned(), shown.into()));
    }
}

/// A URL without user, password, query and fragment.
fn without_secrets(url: &Url) -> Url {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    // Both are refused only where a URL can have neither.
    let _no_user = url.set_username("");
    let _no_password = url.set_password(None);
    url
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fmt;
    use std::time::Duration;

    use reqwest::Client;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;
    use crate::failure::{Kind, PatternRegistry, RecoveryError, Timestamp};

    /// A server that reads a request's start and answers so, once; without an answer it keeps silent.
    async fn server(answer: Option<&'static str>) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            assert!(stream.read(&mut [0; 1024]).await.unwrap() > 0, "a request came");
            match answer {
                Some(answer) => stream.write_all(answer.as_bytes()).await.unwrap(),
                None => std::future::pending().await,
            }
        });
        format!("http://me:hunter2@{address}/v1?key=canary-4711")
    }

    fn client() -> Client {
        Client::builder().no_proxy().build().unwrap()
    }

    async fn answered(answer: &'static str) -> reqwest::Response {
        client().get(server(Some(answer)).await).send().await.unwrap()
    }

    fn detect(error: &(dyn Error + 'static)) -> RecoveryError {
        let report = Report::from_error(error);
        assert!(!report.value.to_string().contains("canary-4711"), "{}", report.value);
        assert!(!report.value.to_string().contains("hunter2"), "{}", report.value);
        PatternRegistry::new().detect_first(&report, Timestamp::default()).into_failure().unwrap()
    }

    #[tokio::test]
    async fn a_status_is_a_fact() {
        let answer = "HTTP/1.1 429 Later\r\ncontent-length: 0\r\n\r\n";
        let found = detect(&answered(answer).await.error_for_status().unwrap_err());
        assert_eq!((found.kind, found.details.status), (Kind::RateLimit, Some(429)));
        let answer = "HTTP/1.1 529 Odd\r\ncontent-length: 0\r\n\r\n";
        let found = detect(&answered(answer).await.error_for_status().unwrap_err());
        assert_eq!((found.kind, found.details.status), (Kind::Overloaded, Some(529)));
    }

    #[tokio::test]
    async fn a_server_that_is_not_there_is_a_failure_of_the_network() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let error = client().get(format!("http://{address}/?key=canary-4711")).send().await.unwrap_err();
        assert!(error.is_connect());
        assert_eq!(detect(&error).kind, Kind::Network);
    }

    #[tokio::test]
    async fn a_server_that_hangs_up_is_a_failure_of_the_network() {
        let error = client().get(server(Some("")).await).send().await.unwrap_err();
        assert!(matches!(detect(&error).kind, Kind::Network | Kind::StreamInterrupted), "{error:?}");
    }

    #[tokio::test]
    async fn a_server_that_never_answers_is_a_timeout() {
        let request = client().get(server(None).await).timeout(Duration::from_millis(20));
        let error = request.send().await.unwrap_err();
        assert_eq!(detect(&error).kind, Kind::Timeout);
    }

    #[tokio::test]
    async fn an_answer_that_breaks_off_is_an_interrupted_stream() {
        let answer = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"choices\": [";
        let error = answered(answer).await.text().await.unwrap_err();
        assert_eq!(detect(&error).kind, Kind::StreamInterrupted, "{error:?}");
    }

    /// A host's error that prints its cause, address and all.
    #[derive(Debug)]
    struct Host(reqwest::Error);

    impl fmt::Display for Host {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "the call failed: {}", self.0)
        }
    }

    impl Error for Host {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&self.0)
        }
    }

    #[tokio::test]
    async fn no_message_of_the_chain_keeps_what_an_address_hides() {
        let answer = "HTTP/1.1 500 Odd\r\ncontent-length: 0\r\n\r\n";
        let found = detect(&Host(answered(answer).await.error_for_status().unwrap_err()));
        assert_eq!(found.kind, Kind::ServerError);
    }
}
