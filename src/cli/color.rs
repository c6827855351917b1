use std::io::{self, IsTerminal};

/// Colours text for people, or leaves it as it is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Paint(bool);

const RED: &str = "31;1";
const YELLOW: &str = "33;1";
const GREEN: &str = "32;1";
const BLUE: &str = "34";
const BOLD: &str = "1";
const DIM: &str = "2";

impl Paint {
    /// For tests: never any colour.
    #[cfg(test)]
    pub const PLAIN: Self = Self(false);

    /// For stdout: only on a terminal, and not against `NO_COLOR`.
    pub fn stdout() -> Self {
        Self(io::stdout().is_terminal() && wanted())
    }

    /// For stderr, likewise.
    pub fn stderr() -> Self {
        Self(io::stderr().is_terminal() && wanted())
    }

    fn with(self, code: &str, text: &str) -> String {
        if self.0 && !text.is_empty() { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    /// A heading or a name that matters.
    pub fn bold(self, text: &str) -> String {
        self.with(BOLD, text)
    }

    /// What can be passed over.
    pub fn dim(self, text: &str) -> String {
        self.with(DIM, text)
    }

    /// What is well.
    pub fn good(self, text: &str) -> String {
        self.with(GREEN, text)
    }

    /// What is wrong.
    pub fn bad(self, text: &str) -> String {
        self.with(RED, text)
    }

    /// A rendered diagnostic: its severity, margin and caret.
    pub fn diagnostic(self, rendered: &str) -> String {
        if !self.0 {
            return rendered.to_owned();
        }
        rendered.lines().map(|line| self.line(line) + "\n").collect()
    }

    fn line(self, line: &str) -> String {
        if let Some(rest) = line.strip_prefix("error:") {
            return self.bad("error") + ":" + &self.bold(rest);
        }
        if let Some(rest) = line.strip_prefix("warning:") {
            return self.with(YELLOW, "warning") + ":" + &self.bold(rest);
        }
        match line.split_once(" | ") {
            Some((margin, caret)) if margin.trim().is_empty() && caret.trim() == "^" => {
                self.with(BLUE, &format!("{margin} | ")) + &self.bad(caret)
            }
            Some((margin, text)) if margin.trim().chars().all(|c| c.is_ascii_digit()) => {
                self.with(BLUE, &format!("{margin} | ")) + text
            }
            _ => self.with(BLUE, line),
        }
    }
}

/// See <https://no-color.org>; a terminal that can do nothing says so.
fn wanted() -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    !is_set("NO_COLOR") && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

#[cfg(test)]
mod tests {
    use super::*;

    const RENDERED: &str = "error: a: b\n --> x:1:2\n  |\n1 | 12 | 3\n  |  ^\n  = help: c\n";

    fn plain(text: &str) -> String {
        let mut parts = text.split('\u{1b}');
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |all, part| all + part.split_once('m').map_or("", |(_, rest)| rest))
    }

    #[test]
    fn colours_change_nothing_but_the_colour() {
        let coloured = Paint(true).diagnostic(RENDERED);
        assert_ne!(coloured, RENDERED);
        assert_eq!(plain(&coloured), RENDERED);
    }

    #[test]
    fn without_colour_every_text_stays_as_it_is() {
        let paint = Paint(false);
        assert_eq!(paint.diagnostic(RENDERED), RENDERED);
        assert_eq!(paint.bold("a") + &paint.dim("b") + &paint.good("c") + &paint.bad("d"), "abcd");
    }
}
