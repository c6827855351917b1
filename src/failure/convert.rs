use serde_json::{Map, Value, json};

use super::{Report, Source};

impl Report {
    /// A report of a bare value, its context read out of the value's own fields.
    ///
    /// Exit code, signal, status and tool name become the report's; output streams without a tool
    /// make it a [`Source::Command`], a tool's name a [`Source::Tool`].
    ///
    /// ```
    /// use backstop::failure::{Report, Source};
    /// use serde_json::json;
    ///
    /// let report = Report::from_value(json!({"exit_code": 1, "stdout": "", "stderr": "boom"}));
    /// assert_eq!((report.source, report.exit_code), (Source::Command, Some(1)));
    /// ```
    pub fn from_value(value: Value) -> Self {
        let mut report = Self::default();
        if let Value::Object(map) = &value {
            let number = |keys: &[&str]| keys.iter().find_map(|key| map.get(*key)?.as_i64());
            report.exit_code =
                number(&["exit_code", "exitCode", "returncode"]).and_then(|code| i32::try_from(code).ok());
            let status = number(&["status", "status_code", "statusCode"]).and_then(|code| u16::try_from(code).ok());
            report.status = status.filter(|status| (400..600).contains(status));
            report.signal = map.get("signal").and_then(Value::as_str).map(Into::into);
            report.tool = map.get("tool").and_then(Value::as_str).map(Into::into);
            let streams = map.contains_key("stdout") || map.contains_key("stderr");
            if report.tool.is_some() {
                report.source = Source::Tool;
            } else if streams && (report.exit_code.is_some() || report.signal.is_some()) {
                report.source = Source::Command;
            }
        }
        report.value = value;
        report
    }

    /// A report of a whole run of a command line: how it ended and the tails of its streams.
    ///
    /// ```
    /// use backstop::failure::{Kind, PatternRegistry, Report, Timestamp};
    ///
    /// let report = Report::from_run(Some(1), None, "", "Error: 529 Overloaded");
    /// let found = PatternRegistry::new().detect_first(&report, Timestamp::default());
    /// assert_eq!(found.failure().map(|error| &error.kind), Some(&Kind::Overloaded));
    /// ```
    pub fn from_run(
        exit_code: Option<i32>,
        signal: Option<&str>,
        stdout: impl Into<String>,
        stderr: impl Into<String>,
    ) -> Self {
        let report = Self::new(json!({"stdout": stdout.into(), "stderr": stderr.into()}));
        Self { exit_code, signal: signal.map(Into::into), source: Source::Command, ..report }
    }

    /// A report of an HTTP response: its status, headers and body (JSON or text).
    ///
    /// A wait that the server states counts, in `retry-after` (seconds or a date), `retry-after-ms` or the
    /// body's own words; names of headers may be written in any case.
    ///
    /// ```
    /// use backstop::failure::{Kind, PatternRegistry, Report, Timestamp};
    /// use std::time::Duration;
    ///
    /// let body = r#"{"type": "error", "error": {"type": "rate_limit_error", "message": "Slow down"}}"#;
    /// let report = Report::from_response(429, [("Retry-After", "7"), ("x-request-id", "r1")], body);
    /// let found = PatternRegistry::new().detect_first(&report, Timestamp::default());
    /// let error = found.failure().expect("a status of 429 is a failure");
    /// assert_eq!((&error.kind, error.details.retry_after), (&Kind::RateLimit, Some(Duration::from_secs(7))));
    /// ```
    pub fn from_response<'a>(
        status: u16,
        headers: impl IntoIterator<Item = (&'a str, &'a str)>,
        body: impl Into<Value>,
    ) -> Self {
        let headers: Map<String, Value> =
            headers.into_iter().map(|(name, value)| (name.to_ascii_lowercase(), value.into())).collect();
        let report = Self::new(json!({"status": status, "headers": headers, "body": body.into()}));
        Self { status: Some(status), source: Source::Provider, ..report }
    }
}
