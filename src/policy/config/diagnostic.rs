use std::fmt;
use std::sync::Arc;

/// How serious a problem in a configuration is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The value was ignored or repaired; the configuration loads.
    Warning,
    /// The configuration is refused.
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}

/// A position in a text; both numbers count from 1, columns in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The line.
    pub line: u32,
    /// The column.
    pub column: u32,
}

impl Place {
    /// The first character.
    pub(super) const START: Self = Self { line: 1, column: 1 };
}

/// One problem in a configuration, pointing at the character.
///
/// ```
/// use backstop::RecoveryConfig;
///
/// let text = "json_error:\n  - strategy: retry\n    config: {backoff_factor: .nan}\n";
/// let errors = RecoveryConfig::parse("recovery.yaml", text).unwrap_err();
/// assert_eq!(
///     errors.to_string(),
///     "recovery.yaml:3:30: json_error.chain[0].config.backoff_factor: \
///      expected a number from 1 to 100, found .nan"
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Whether the configuration still loads.
    pub severity: Severity,
    /// The name of the text, or of the layer where the value was not read from one.
    pub source: Arc<str>,
    /// Where in the text; `None` for values that code gave.
    pub place: Option<Place>,
    /// The value's path inside the recovery block; empty for the document itself.
    pub path: String,
    /// What is wrong.
    pub message: String,
    /// How to mend it, where that is known.
    pub help: Option<String>,
}

impl Diagnostic {
    /// Whether the configuration is refused because of it.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// The problem with its line of `text` and a caret under the character.
    pub fn render(&self, text: &str) -> String {
        let mut out = format!("{}: {}{}\n", self.severity, self.path_prefix(), self.message);
        if let Some(place) = self.place {
            let number = place.line.to_string();
            let margin = " ".repeat(number.len());
            out += &format!("{margin}--> {}:{}:{}\n", self.source, place.line, place.column);
            if let Some(line) = text.lines().nth(place.line as usize - 1) {
                let (shown, before) = excerpt(line, place.column as usize - 1);
                out += &format!("{margin} |\n{number} | {shown}\n{margin} | {before}^\n");
            }
        } else {
            out += &format!(" --> {}\n", self.source);
        }
        if let Some(help) = &self.help {
            out += &format!("  = help: {help}\n");
        }
        out
    }

    fn path_prefix(&self) -> String {
        if self.path.is_empty() { String::new() } else { format!("{}: ", self.path) }
    }
}

/// The part of a line around a column, and the blank that puts a caret under it.
fn excerpt(line: &str, column: usize) -> (String, String) {
    /// Lines longer than this are cut: a configuration on one line must not flood a terminal.
    const WIDTH: usize = 100;
    let skipped = column.saturating_sub(WIDTH / 2);
    let part: Vec<char> = line.chars().skip(skipped).take(WIDTH).collect();
    let shown = part.iter().map(|c| if c.is_control() && *c != '\t' { '\u{fffd}' } else { *c }).collect();
    let before = part.iter().take(column - skipped).map(|c| if *c == '\t' { '\t' } else { ' ' });
    let blank: String = before.collect();
    let missing = (column - skipped).saturating_sub(blank.chars().count());
    (shown, blank + &" ".repeat(missing))
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.source)?;
        if let Some(Place { line, column }) = self.place {
            write!(f, "{line}:{column}:")?;
        }
        write!(f, " {}{}", self.path_prefix(), self.message)?;
        match &self.help {
            Some(help) => write!(f, "; {help}"),
            None => Ok(()),
        }
    }
}

/// Why a configuration was refused: every problem that was found, warnings included.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", lines(.0))]
pub struct ConfigErrors(pub(super) Vec<Diagnostic>);

impl ConfigErrors {
    /// All problems, in the order of the layers and of the text.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.0
    }
}

fn lines(diagnostics: &[Diagnostic]) -> String {
    let errors = diagnostics.iter().filter(|diagnostic| diagnostic.is_error());
    errors.map(Diagnostic::to_string).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unknown_strategy(place: Option<Place>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Warning,
            source: "recovery.yaml".into(),
            place,
            path: "json_error.chain[0].strategy".into(),
            message: "no strategy `compct`".into(),
            help: Some("did you mean `compact`?".into()),
        }
    }

    #[test]
    fn one_line_holds_place_path_message_and_help() {
        let text = unknown_strategy(Some(Place { line: 9, column: 19 })).to_string();
        let expected =
            "recovery.yaml:9:19: json_error.chain[0].strategy: no strategy `compct`; did you mean `compact`?";
        assert_eq!(text, expected);
    }

    #[test]
    fn the_caret_stands_under_the_character() {
        let text = "json_error:\n\t- strategy: compct\n";
        let rendered = unknown_strategy(Some(Place { line: 2, column: 14 })).render(text);
        let expected = "warning: json_error.chain[0].strategy: no strategy `compct`\n \
                        --> recovery.yaml:2:14\n  |\n2 | \t- strategy: compct\n  | \t            ^\n  \
                        = help: did you mean `compact`?\n";
        assert_eq!(rendered, expected);
    }

    #[test]
    fn a_very_long_line_is_cut_around_the_character() {
        let text = format!("{}X{}", "a".repeat(5_000), "b".repeat(5_000));
        let rendered = unknown_strategy(Some(Place { line: 1, column: 5_001 })).render(&text);
        let lines: Vec<&str> = rendered.lines().collect();
        let caret = lines[4].chars().count() - 1;
        assert_eq!(lines[3].chars().nth(caret), Some('X'));
        assert!(lines[3].len() < 120);
    }

    #[test]
    fn a_place_outside_the_text_is_no_trouble() {
        unknown_strategy(Some(Place { line: 99, column: 99 })).render("short");
        unknown_strategy(Some(Place { line: 1, column: 99 })).render("short");
        unknown_strategy(None).render("");
    }
}
