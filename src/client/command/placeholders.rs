use std::ffi::{OsStr, OsString};

/// A name in braces that a command's arguments may hold.
///
/// `{model}` stands for the model, `{{model}}` for the seven characters `{model}`. Every other text in
/// braces is left as it is, so JSON and other tools' templates pass unharmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Placeholder {
    /// `{attempt}`: which try of the turn this is, from 1.
    Attempt,
    /// `{model}`: the model to use.
    Model,
    /// `{inject}`: what recovery tells the agent.
    Inject,
    /// `{session}`: the session id.
    Session,
}

impl Placeholder {
    /// Every placeholder.
    pub const ALL: [Self; 4] = [Self::Attempt, Self::Model, Self::Inject, Self::Session];

    /// Its text, with the braces.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Attempt => "{attempt}",
            Self::Model => "{model}",
            Self::Inject => "{inject}",
            Self::Session => "{session}",
        }
    }
}

/// Whether any of the arguments holds this placeholder.
pub fn uses<A: AsRef<OsStr>>(args: &[A], placeholder: Placeholder) -> bool {
    let in_text = |text: &str| pieces(text).any(|piece| piece == Piece::Value(placeholder));
    args.iter().any(|arg| arg.as_ref().to_str().is_some_and(in_text))
}

/// Fills the arguments. One that is nothing but a placeholder without a value is left out, and with it
/// the flag (`-x`, `--long`) directly before it.
pub(super) fn fill<'v>(args: &[OsString], value: impl Fn(Placeholder) -> Option<&'v str>) -> Vec<OsString> {
    let mut filled: Vec<OsString> = Vec::with_capacity(args.len());
    for (index, arg) in args.iter().enumerate() {
        let Some(text) = arg.to_str() else {
            filled.push(arg.clone());
            continue;
        };
        let alone = Placeholder::ALL.into_iter().find(|placeholder| placeholder.text() == text);
        if alone.is_some_and(|placeholder| value(placeholder).is_none_or(str::is_empty)) {
            let flag_before = index > 0 && is_flag(&args[index - 1]);
            if flag_before {
                filled.pop();
            }
            continue;
        }
        let mut out = String::with_capacity(text.len());
        for piece in pieces(text) {
            out.push_str(match piece {
                Piece::Text(text) => text,
                Piece::Value(placeholder) => value(placeholder).unwrap_or_default(),
            });
        }
        filled.push(out.into());
    }
    filled
}

fn is_flag(arg: &OsStr) -> bool {
    arg.to_str().is_some_and(|arg| arg.starts_with('-') && !matches!(arg, "-" | "--") && !arg.contains('='))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Piece<'t> {
    Text(&'t str),
    Value(Placeholder),
}

fn pieces(text: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        for placeholder in Placeholder::ALL {
            if let Some(after) = rest.strip_prefix(placeholder.text()) {
                rest = after;
                return Some(Piece::Value(placeholder));
            }
            let escaped = rest.strip_prefix('{').and_then(|inner| inner.strip_prefix(placeholder.text()));
            if let Some(after) = escaped.and_then(|after| after.strip_prefix('}')) {
                rest = after;
                return Some(Piece::Text(placeholder.text()));
            }
        }
        let first = rest.chars().next().map_or(0, char::len_utf8);
        let end = rest[first..].find('{').map_or(rest.len(), |at| first + at);
        let (plain, after) = rest.split_at(end);
        rest = after;
        Some(Piece::Text(plain))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(args: &[&str]) -> Vec<String> {
        let value = |placeholder| match placeholder {
            Placeholder::Attempt => Some("2"),
            Placeholder::Session => Some("s-{attempt}"),
            Placeholder::Model => None,
            Placeholder::Inject => Some(""),
        };
        let args: Vec<OsString> = args.iter().map(Into::into).collect();
        fill(&args, value).into_iter().map(|arg| arg.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn values_replace_their_placeholders_anywhere_in_an_argument() {
        assert_eq!(filled(&["try-{attempt}-of-{session}", "{attempt}"]), ["try-2-of-s-{attempt}", "2"]);
    }

    #[test]
    fn a_doubled_brace_keeps_the_placeholder_as_text() {
        assert_eq!(filled(&["{{model}} {{attempt}}"]), ["{model} {attempt}"]);
    }

    #[test]
    fn other_braces_are_left_as_they_are() {
        let others = ["{\"a\":{\"b\":1}}", "{{.Names}}", "{unknown} {", "}} ${HOME} {Model}", "ä{"];
        assert_eq!(filled(&others), others);
        assert_eq!(filled(&["{\"try\":{attempt}}"]), ["{\"try\":2}"]);
    }

    #[test]
    fn an_argument_without_a_value_goes_and_takes_its_flag_along() {
        assert_eq!(filled(&["run", "--model", "{model}", "-i", "{inject}", "go"]), ["run", "go"]);
        assert_eq!(filled(&["run", "{inject}", "--", "{inject}"]), ["run", "--"]);
        assert_eq!(filled(&["--model={model}", "fix it\n{inject}"]), ["--model=", "fix it\n"]);
        assert_eq!(filled(&["{inject}", "--n", "{attempt}", "{model}"]), ["--n", "2"]);
    }

    #[test]
    fn an_escaped_placeholder_is_not_used() {
        assert!(uses(&["x={model}"], Placeholder::Model));
        assert!(!uses(&["{{model}}", "model"], Placeholder::Model));
    }
}
