//! Detection is total, bounded and the same every time, and what it tells is fit to be kept (R2, R12).

use backstop::failure::{
    Category, Detection, ErrorPattern, MAX_MESSAGE, PatternRegistry, RecoveryError, Report, Source, Timestamp, fence,
    mask,
};
use serde_json::Value;

pub const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

/// Detection over a small cap has the same promises, and is looked at too.
const SMALL_CAP: usize = 256;

/// The input is a JSON value, or else a text; its length chooses the context.
pub fn check(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let value = serde_json::from_slice(input).unwrap_or_else(|_| Value::from(text.as_ref()));
    let report = Report::from_value(value);
    let report = match input.len() % 8 {
        0 => report.with_source(Source::Command).with_exit_code(1),
        1 => report.with_source(Source::Provider).with_status(429),
        2 => report.with_source(Source::Tool).with_tool("edit"),
        3 => report.with_source(Source::Verifier),
        _ => report,
    };
    sound(&PatternRegistry::new(), &report);
    sound(&PatternRegistry::new().with_text_cap(SMALL_CAP), &report);
    numbers_do_not_count(&text);
}

/// What every detection promises, whatever is known and whatever is reported.
pub fn sound(registry: &PatternRegistry, report: &Report) {
    let first = registry.detect_first(report, NOW);
    let (again, why) = registry.detect_explained(report, NOW);
    assert_eq!(again, first);
    assert!(!why.winner.is_empty());
    let shown = serde_json::to_string(&why).expect("an explanation is data");
    assert!(shown.len() <= 256 * 1024, "an explanation of {} bytes", shown.len());
    let all = registry.detect(report, NOW);
    assert_eq!(all.first(), first.failure());
    all.iter().for_each(fit_to_be_kept);
    for category in Category::ALL {
        match registry.detect_category(report, *category, NOW) {
            Detection::Failure(error) => {
                assert_eq!(error.category, *category);
                fit_to_be_kept(&error);
            }
            Detection::Cancelled => assert_eq!(first, Detection::Cancelled),
            Detection::NotAFailure => panic!("a category handed over always gives a failure"),
        }
    }
}

fn fit_to_be_kept(error: &RecoveryError) {
    let message = &error.message;
    assert!(message.len() <= MAX_MESSAGE && !message.contains("[object Object]"));
    assert!(!message.chars().any(|ch| ch.is_control() && ch != '\n'), "{message:?}");
    // A cut can make a word's edge that was none, and so what only looks like a secret.
    assert!(message.len() + 64 > MAX_MESSAGE || mask(message) == **message, "a message is masked: {message}");
    let fenced = fence(&error.kind, message);
    assert!(matches!(fenced.matches("```").count(), 0 | 2), "{fenced}");
    let kept = serde_json::to_string(&RecoveryError { raw: None, ..error.clone() }).expect("an error is data");
    assert!(kept.len() <= 16 * 1024, "{} bytes", kept.len());
    let read: RecoveryError = serde_json::from_str(&kept).expect("what is written reads");
    assert_eq!(read, RecoveryError { raw: None, ..error.clone() });
}

/// The same words with other digits are the same failure, as far as the fingerprint goes.
fn numbers_do_not_count(text: &str) {
    let turned = |text: &str| -> String {
        let other = |ch: char| ch.to_digit(10).and_then(|digit| char::from_digit((digit + 3) % 10, 10)).unwrap_or(ch);
        text.chars().map(other).collect()
    };
    let mut registry = PatternRegistry::new();
    // One kind for both, so that only the words are compared.
    registry.register(ErrorPattern::new("all", Category::SessionError, backstop::Kind::Other, |_| true));
    let detected = |text: String| registry.detect_first(&Report::text(text), NOW).into_failure();
    if let (Some(one), Some(other)) = (detected(text.to_owned()), detected(turned(text)))
        && one.details.status == other.details.status
        && *turned(&one.message) == *other.message
    {
        assert_eq!(one.fingerprint, other.fingerprint, "{:?} and {:?}", one.message, other.message);
    }
}
