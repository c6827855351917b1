use std::error::Error;
use std::io;

use serde_json::error::Category;

use super::link::Link;

/// What the standard library's I/O errors know.
pub(super) fn io<'a>(error: &'a (dyn Error + 'static), link: &mut Link<'a>) {
    let Some(error) = error.downcast_ref::<io::Error>() else { return };
    if let Some(code) = error.raw_os_error().and_then(os_code).or_else(|| io_code(error.kind())) {
        link.field("code", code);
    }
    // Its `source` would pass over the error inside it.
    if let Some(inner) = error.get_ref() {
        link.next = Some(inner);
    }
}

/// What `serde_json` knows of a text that did not parse.
///
/// `above` is the message of the error around it: whose text it was often stands there.
pub(super) fn json(error: &(dyn Error + 'static), above: Option<&str>, parses_answer: bool, link: &mut Link<'_>) {
    let Some(error) = error.downcast_ref::<serde_json::Error>() else { return };
    let own = error.to_string();
    // In one line, as words about a file and words about its text count only together.
    let message = match above {
        Some(above) if !above.contains(&own) => format!("{above}: failed to parse: {own}"),
        _ => own,
    };
    link.field("message", message);
    if let Some(code) = error.io_error_kind().and_then(io_code) {
        link.field("code", code);
    }
    if parses_answer {
        link.field("reason", "invalid response body");
        return;
    }
    // Names that the tables know.
    match error.classify() {
        Category::Io => {}
        Category::Eof => link.field("reason", "unexpected end of JSON"),
        Category::Syntax => link.field("name", "JSONDecodeError"),
        Category::Data => link.field("code", "OUTPUT_PARSING_FAILURE"),
    }
}

/// The name of an error number that has no kind of its own; these are the same on every Unix.
fn os_code(number: i32) -> Option<&'static str> {
    if !cfg!(unix) {
        return None;
    }
    Some(match number {
        1 => "EPERM",
        5 => "EIO",
        23 => "ENFILE",
        24 => "EMFILE",
        _ => return None,
    })
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
        io::ErrorKind::NetworkDown => "ENETDOWN",
        io::ErrorKind::AddrInUse => "EADDRINUSE",
        io::ErrorKind::AddrNotAvailable => "EADDRNOTAVAIL",
        io::ErrorKind::BrokenPipe => "EPIPE",
        io::ErrorKind::TimedOut => "ETIMEDOUT",
        io::ErrorKind::StorageFull => "ENOSPC",
        io::ErrorKind::QuotaExceeded => "EDQUOT",
        io::ErrorKind::FileTooLarge => "EFBIG",
        io::ErrorKind::OutOfMemory => "ENOMEM",
        io::ErrorKind::ReadOnlyFilesystem => "EROFS",
        io::ErrorKind::UnexpectedEof => "UNEXPECTED_EOF",
        io::ErrorKind::ResourceBusy => "EBUSY",
        io::ErrorKind::ExecutableFileBusy => "ETXTBSY",
        io::ErrorKind::AlreadyExists => "EEXIST",
        io::ErrorKind::IsADirectory => "EISDIR",
        io::ErrorKind::NotADirectory => "ENOTDIR",
        _ => return None,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde::Deserialize;

    use super::*;
    use crate::failure::{Kind, PatternRegistry, Report, Timestamp};

    fn kind(error: &(dyn Error + 'static)) -> Kind {
        let found = PatternRegistry::new().detect_first(&Report::from_error(error), Timestamp::default());
        found.into_failure().unwrap().kind
    }

    #[test]
    fn kinds_of_io_errors_are_told_without_a_word() {
        for (io, want) in [
            (io::ErrorKind::NotFound, Kind::FileNotFound),
            (io::ErrorKind::PermissionDenied, Kind::PermissionDenied),
            (io::ErrorKind::ReadOnlyFilesystem, Kind::PermissionDenied),
            (io::ErrorKind::ConnectionRefused, Kind::Network),
            (io::ErrorKind::ConnectionReset, Kind::Network),
            (io::ErrorKind::NetworkDown, Kind::Network),
            (io::ErrorKind::BrokenPipe, Kind::Network),
            (io::ErrorKind::TimedOut, Kind::Timeout),
            (io::ErrorKind::UnexpectedEof, Kind::StreamInterrupted),
            (io::ErrorKind::StorageFull, Kind::DiskFull),
            (io::ErrorKind::QuotaExceeded, Kind::DiskFull),
            (io::ErrorKind::OutOfMemory, Kind::OutOfMemory),
        ] {
            assert_eq!(kind(&io::Error::from(io)), want, "{io:?}");
            // The message of a host's own hides what the system would have said.
            assert_eq!(kind(&io::Error::new(io, "it broke")), want, "{io:?} with other words");
        }
    }

    #[cfg(unix)]
    #[test]
    fn the_systems_error_numbers_are_facts() {
        for (number, want) in
            [(24, Kind::ResourceLimit), (23, Kind::ResourceLimit), (1, Kind::PermissionDenied), (28, Kind::DiskFull)]
        {
            assert_eq!(kind(&io::Error::from_raw_os_error(number)), want, "{number}");
        }
    }

    #[test]
    fn a_real_file_that_is_missing_is_named_so() {
        let error = std::fs::read("/no/such/folder/at/all").unwrap_err();
        assert_eq!(kind(&error), Kind::FileNotFound);
    }

    #[test]
    fn json_is_cut_off_malformed_or_of_the_wrong_shape() {
        #[derive(Debug, Deserialize)]
        struct Plan {
            #[allow(dead_code)]
            steps: Vec<u32>,
        }
        for (text, want) in [
            ("{\"steps\": [1,", Kind::JsonTruncated),
            ("{\"steps\": \"", Kind::JsonTruncated),
            ("", Kind::JsonTruncated),
            ("{\"steps\": [1]} and more", Kind::JsonSyntax),
            ("{\"steps\": [01]}", Kind::JsonSyntax),
            ("I will now", Kind::JsonSyntax),
            ("{\"steps\": [1,]}", Kind::JsonSyntax),
            ("{\"steps\": \"a\u{1}b\"}", Kind::JsonSyntax),
            ("{}", Kind::SchemaMismatch),
            ("{\"steps\": \"one\"}", Kind::SchemaMismatch),
            ("{\"steps\": [-1]}", Kind::SchemaMismatch),
        ] {
            let error = serde_json::from_str::<Plan>(text).unwrap_err();
            assert_eq!(kind(&error), want, "{text}: {error}");
        }
    }

    #[test]
    fn json_that_could_not_be_read_is_a_failure_of_the_reading() {
        struct Broken;
        impl io::Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::new(io::ErrorKind::ConnectionReset, "it broke"))
            }
        }
        let error = serde_json::from_reader::<_, serde_json::Value>(Broken).unwrap_err();
        assert_eq!(kind(&error), Kind::Network);
    }
}
