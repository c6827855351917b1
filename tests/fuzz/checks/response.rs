//! HTTP responses as reports.

use std::time::Duration;

use backstop::failure::{Detection, PatternRegistry, Report};
use serde_json::Value;

use super::detect;

/// No stated wait is longer than a year: what is more is no wait but a mistake.
const LONGEST_WAIT: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// The first line begins with the status, lines up to an empty one are headers, the rest is the body.
pub fn check(input: &[u8]) {
    let input = String::from_utf8_lossy(input);
    let (head, body) = input.split_once("\n\n").unwrap_or((&input, ""));
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.trim().parse::<u16>().ok()).unwrap_or(500);
    let headers: Vec<_> = lines.filter_map(|line| line.split_once(':')).map(|(name, it)| (name, it.trim())).collect();
    let parsed = serde_json::from_str::<Value>(body);
    let registry = PatternRegistry::new();
    for body in parsed.into_iter().chain([Value::from(body)]) {
        let report = Report::from_response(status, headers.iter().copied(), body);
        detect::sound(&registry, &report);
        let found = registry.detect_first(&report, detect::NOW);
        if (400..600).contains(&status) && found == Detection::NotAFailure {
            // A filter's or a person's no is nobody's failure.
            let (_, why) = registry.detect_explained(&report, detect::NOW);
            assert_eq!(&*why.winner, "said_no", "{status} is a failure");
        }
        if let Some(error) = found.failure() {
            assert!(error.details.retry_after.is_none_or(|wait| wait <= LONGEST_WAIT), "{:?}", error.details);
        }
    }
}
