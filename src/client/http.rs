//! HTTP responses as reports.

use std::time::Duration;

use reqwest::Response;

use crate::failure::Report;

/// How much of a body is read, in bytes.
pub const MAX_BODY: usize = 1024 * 1024;
/// How long a body is waited for.
pub const MAX_BODY_WAIT: Duration = Duration::from_secs(10);

impl Report {
    /// A report of a response that is an error: its status, its headers and as much of its body as comes
    /// within [`MAX_BODY_WAIT`] and [`MAX_BODY`].
    ///
    /// `error_for_status` would drop headers and body, and with them the stated wait. A body that breaks
    /// off is no error here: what came of it counts.
    ///
    /// # Cancellation
    ///
    /// Dropping the future closes the response; nothing else is lost.
    ///
    /// ```no_run
    /// # async fn turn(client: reqwest::Client) -> Result<String, Box<dyn std::error::Error>> {
    /// let response = client.post("https://api.example.com/v1/messages").send().await?;
    /// if !response.status().is_success() {
    ///     return Err(backstop::Report::from_http_response(response).await.into());
    /// }
    /// Ok(response.text().await?)
    /// # }
    /// ```
    pub async fn from_http_response(mut response: Response) -> Self {
        let (status, headers) = (response.status(), response.headers().clone());
        let mut body = Vec::new();
        let reading = async {
            while let Ok(Some(piece)) = response.chunk().await {
                let room = MAX_BODY - body.len();
                body.extend_from_slice(&piece[..piece.len().min(room)]);
                if body.len() == MAX_BODY {
                    break;
                }
            }
        };
        // Out of time, what has come is kept.
        let _in_time = tokio::time::timeout(MAX_BODY_WAIT, reading).await;
        Self::from_http_parts(status, &headers, String::from_utf8_lossy(&body).into_owned())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;
    use crate::failure::{Kind, PatternRegistry, RecoveryError, Timestamp};

    /// A report of what a server answers that then hangs up.
    async fn report(answer: String) -> Report {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            assert!(stream.read(&mut [0; 1024]).await.unwrap() > 0, "a request came");
            // A client that has read enough hangs up first.
            let _all = stream.write_all(answer.as_bytes()).await;
        });
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        Report::from_http_response(client.get(format!("http://{address}/")).send().await.unwrap()).await
    }

    fn detect(report: &Report, now: Timestamp) -> RecoveryError {
        PatternRegistry::new().detect_first(report, now).into_failure().unwrap()
    }

    fn answer(status: &str, headers: &str, body: &str) -> String {
        format!("HTTP/1.1 {status}\r\n{headers}\r\ncontent-length: {}\r\n\r\n{body}", body.len())
    }

    #[tokio::test]
    async fn the_wait_that_a_server_states_is_kept() {
        // Tue, 03 Jun 2025 10:00:00 GMT
        let now = Timestamp::from_millis(1_748_944_800_000);
        for (header, millis) in [
            ("Retry-After: 7", 7_000),
            ("retry-after: Tue, 03 Jun 2025 10:01:30 GMT", 90_000),
            ("retry-after-ms: 250", 250),
        ] {
            let found = detect(&report(answer("429 Later", header, "{\"error\": \"later\"}")).await, now);
            let wait = found.details.retry_after;
            assert_eq!((found.kind, wait), (Kind::RateLimit, Some(Duration::from_millis(millis))), "{header}");
        }
    }

    #[tokio::test]
    async fn the_body_says_more_than_the_status() {
        let body = r#"{"error":{"type":"insufficient_quota","message":"You exceeded your current quota"}}"#;
        let found = detect(&report(answer("429 Later", "x: y", body)).await, Timestamp::default());
        assert_eq!(found.kind, Kind::QuotaExhausted);
    }

    #[tokio::test]
    async fn a_body_that_breaks_off_counts_as_far_as_it_came() {
        let cut = "HTTP/1.1 529 Odd\r\ncontent-length: 1000\r\n\r\nOverloaded".to_owned();
        let report = report(cut).await;
        assert_eq!((report.status, &report.value["body"]), (Some(529), &"Overloaded".into()));
    }

    #[tokio::test]
    async fn a_body_without_end_is_cut() {
        let report = report(answer("500 Odd", "x: y", &"x".repeat(2 * MAX_BODY))).await;
        assert_eq!(report.value["body"].as_str().unwrap().len(), MAX_BODY);
    }
}
