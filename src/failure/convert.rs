use std::error::Error;
use std::io;

use serde_json::{Map, Value, json};

use super::{Report, Source};

/// How many causes of a Rust error are followed.
const MAX_CHAIN: usize = 16;

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

    /// A report of a Rust error and the causes below it.
    ///
    /// `std::io::Error`s anywhere in the chain give their kind as a fact. A report that stands in the
    /// chain already is taken as it is.
    ///
    /// ```
    /// use backstop::failure::{Kind, PatternRegistry, Report, Timestamp};
    ///
    /// let error = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
    /// let found = PatternRegistry::new().detect_first(&Report::from_error(&error), Timestamp::default());
    /// assert_eq!(found.failure().map(|error| &error.kind), Some(&Kind::Network));
    /// ```
    pub fn from_error(error: &(dyn Error + 'static)) -> Self {
        let mut chain = Vec::new();
        let mut next = Some(error);
        while let Some(error) = next.filter(|_| chain.len() < MAX_CHAIN) {
            if let Some(report) = error.downcast_ref::<Self>() {
                return report.clone();
            }
            chain.push(one_error(error));
            next = error.source();
        }
        let mut value = Value::Null;
        for mut link in chain.into_iter().rev() {
            if !value.is_null() {
                link.insert("cause".to_owned(), value);
            }
            value = Value::Object(link);
        }
        Self::new(json!({ "error": value }))
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
    pub fn from_response<'a>(
        status: u16,
        headers: impl IntoIterator<Item = (&'a str, &'a str)>,
        body: impl Into<String>,
    ) -> Self {
        let headers: Map<String, Value> =
            headers.into_iter().map(|(name, value)| (name.to_ascii_lowercase(), value.into())).collect();
        let report = Self::new(json!({"status": status, "headers": headers, "body": body.into()}));
        Self { status: Some(status), source: Source::Provider, ..report }
    }
}

fn one_error(error: &(dyn Error + 'static)) -> Map<String, Value> {
    let mut link = Map::new();
    link.insert("message".to_owned(), error.to_string().into());
    if let Some(code) = error.downcast_ref::<io::Error>().and_then(|error| io_code(error.kind())) {
        link.insert("code".to_owned(), code.into());
    }
    link
}

/// The operating system's name for what happened.
fn io_code(kind: io::ErrorKind) -> Option<&'static str> {
    Some(match kind {
        io::ErrorKind::NotFound => "ENOENT",
        io::ErrorKind::PermissionDenied => "EACCES",
        io::ErrorKind::ConnectionRefused => "ECONNREFUSED",
        io::ErrorKind::ConnectionReset => "ECONNRESET",
        io::ErrorKind::ConnectionAborted => "ECONNABORTED",
        io::ErrorKind::NotConnected => "ENOTCONN",
        io::ErrorKind::HostUnreachable => "EHOSTUNREACH",
        io::ErrorKind::NetworkUnreachable => "ENETUNREACH",
        io::ErrorKind::AddrInUse => "EADDRINUSE",
        io::ErrorKind::BrokenPipe => "EPIPE",
        io::ErrorKind::TimedOut => "ETIMEDOUT",
        io::ErrorKind::StorageFull => "ENOSPC",
        io::ErrorKind::QuotaExceeded => "EDQUOT",
        io::ErrorKind::OutOfMemory => "ENOMEM",
        io::ErrorKind::ReadOnlyFilesystem => "EROFS",
        io::ErrorKind::UnexpectedEof => "UNEXPECTED_EOF",
        io::ErrorKind::ResourceBusy => "EBUSY",
        _ => return None,
    })
}
