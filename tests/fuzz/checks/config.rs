//! Configuration texts: whatever they hold, they load or are refused with places (R14).

use std::collections::BTreeSet;

use backstop::RecoveryConfig;
use backstop::policy::config::Diagnostic;

/// The most problems that are told at once.
const MAX_PROBLEMS: usize = 201;

/// The input is a YAML text.
pub fn check(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let read = RecoveryConfig::parse("fuzz.yaml", text);
    assert_eq!(read, RecoveryConfig::parse("fuzz.yaml", text), "a text reads the same every time");
    match read {
        Ok(loaded) => {
            assert!(!loaded.warnings.iter().any(Diagnostic::is_error));
            well_placed(&loaded.warnings, text);
            for chain in loaded.config.chains() {
                assert!(!chain.steps.is_empty(), "{} has no step", chain.key);
            }
            let names: BTreeSet<_> = loaded.config.patterns().iter().map(|pattern| pattern.name()).collect();
            assert_eq!(names.len(), loaded.config.patterns().len(), "names of patterns are kept once");
        }
        Err(errors) => {
            assert!(errors.diagnostics().iter().any(Diagnostic::is_error), "a refusal without an error");
            well_placed(errors.diagnostics(), text);
        }
    }
}

/// Every problem has a place inside the text, words, and a bounded picture.
fn well_placed(problems: &[Diagnostic], text: &str) {
    assert!(problems.len() <= MAX_PROBLEMS);
    // YAML knows more line ends than most; a line more than there are is the text's end.
    let lines = text.chars().filter(|ch| matches!(ch, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')).count() + 2;
    for problem in problems {
        let place = problem.place.unwrap_or_else(|| panic!("without a place: {problem}"));
        assert!((1..=lines).contains(&(place.line as usize)), "{problem} in {lines} lines");
        assert!((1..=text.chars().count() + 1).contains(&(place.column as usize)), "{problem}");
        assert!(!problem.message.is_empty());
        let shown = problem.render(text);
        assert!(shown.starts_with("error: ") || shown.starts_with("warning: "));
        assert!(shown.len() <= 8 * 1024, "{} bytes: {shown}", shown.len());
        assert!(!shown.chars().any(|ch| ch.is_control() && ch != '\n' && ch != '\t'), "{shown:?}");
    }
    assert!(problems.is_sorted_by_key(|problem| problem.place), "in the order of the text");
}
