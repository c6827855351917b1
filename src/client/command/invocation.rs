use std::ffi::OsString;

use super::Placeholder;
use super::placeholders::fill;
use crate::failure::Kind;
use crate::policy::Remedy;
use crate::policy::Turn;

/// The longest value of a placeholder or variable: systems refuse a single one above 128 KiB.
const MAX_VALUE: usize = 100_000;

/// One start of a command: the turn it is to do, and why.
///
/// ```
/// use backstop::client::command::Invocation;
/// use backstop::{SessionId, Turn};
///
/// let turn = Turn::first(SessionId::new("night-run")?);
/// let args = Invocation::new(&turn).with_model("sonnet").arguments(&[
///     "-p".into(), "try {attempt}".into(), "--model".into(), "{model}".into(), "--note".into(), "{inject}".into(),
/// ]);
/// assert_eq!(args, ["-p", "try 1", "--model", "sonnet"]);
/// # Ok::<(), backstop::failure::EmptySessionId>(())
/// ```
#[derive(Debug, Clone)]
pub struct Invocation {
    session: String,
    attempt: String,
    seq: String,
    model: Option<String>,
    inject: Option<String>,
    truncate_to: Option<String>,
    degraded: bool,
    skip: bool,
    kind: Option<String>,
    remedy: Option<String>,
}

impl Invocation {
    /// The start that a turn asks for.
    pub fn new(turn: &Turn) -> Self {
        Self {
            session: clean(turn.session.as_str()),
            attempt: turn.redo.saturating_add(1).to_string(),
            seq: turn.seq.to_string(),
            model: turn.model.as_deref().map(clean),
            inject: Some(clean(&turn.injected_text())).filter(|text| !text.is_empty()),
            truncate_to: turn.truncate_to.map(|share| share.to_string()),
            degraded: turn.degraded,
            skip: turn.skip,
            kind: None,
            remedy: None,
        }
    }

    /// The model to use where the turn names none.
    #[must_use]
    pub fn with_model(mut self, usual: &str) -> Self {
        self.model.get_or_insert_with(|| clean(usual));
        self
    }

    /// The failure that led to this redo.
    #[must_use]
    pub fn with_kind(mut self, kind: &Kind) -> Self {
        self.kind = Some(clean(kind.as_str()));
        self
    }

    /// What was done, or is to be done, before this redo.
    #[must_use]
    pub fn with_remedy(mut self, remedy: &Remedy) -> Self {
        self.remedy = Some(remedy.name().to_owned());
        self
    }

    /// What stands for a placeholder now.
    pub fn value(&self, placeholder: Placeholder) -> Option<&str> {
        match placeholder {
            Placeholder::Attempt => Some(&self.attempt),
            Placeholder::Model => self.model.as_deref(),
            Placeholder::Inject => self.inject.as_deref(),
            Placeholder::Session => Some(&self.session),
        }
    }

    /// The arguments with their placeholders filled.
    ///
    /// An argument that is nothing but a placeholder without a value is left out, and with it the flag
    /// (`-x`, `--long`) directly before it: `--model {model}` is nothing at all until there is a model.
    pub fn arguments(&self, args: &[OsString]) -> Vec<OsString> {
        fill(args, |placeholder| self.value(placeholder))
    }

    /// The `BACKSTOP_*` variables; those without a value are to be removed, so that nothing is
    /// inherited from a Backstop around this one.
    pub fn environment(&self) -> Vec<(OsString, Option<OsString>)> {
        let flag = |set: bool| set.then_some("1");
        let variables = [
            ("BACKSTOP_SESSION", Some(self.session.as_str())),
            ("BACKSTOP_ATTEMPT", Some(&self.attempt)),
            ("BACKSTOP_SEQ", Some(&self.seq)),
            ("BACKSTOP_MODEL", self.model.as_deref()),
            ("BACKSTOP_INJECT", self.inject.as_deref()),
            ("BACKSTOP_TRUNCATE_TO", self.truncate_to.as_deref()),
            ("BACKSTOP_DEGRADED", flag(self.degraded)),
            ("BACKSTOP_SKIP", flag(self.skip)),
            ("BACKSTOP_KIND", self.kind.as_deref()),
            ("BACKSTOP_REMEDY", self.remedy.as_deref()),
        ];
        variables.into_iter().map(|(name, value)| (name.into(), value.map(Into::into))).collect()
    }
}

/// A value that the system accepts: without zero bytes, and not too long.
pub(super) fn clean(text: &str) -> String {
    let mut text = text.replace('\0', "");
    let mut end = text.len().min(MAX_VALUE);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::failure::SessionId;
    use crate::policy::Injection;

    fn variable(invocation: &Invocation, name: &str) -> Option<String> {
        let found = invocation.environment().into_iter().find(|(known, _)| known == name).unwrap();
        found.1.map(|value| value.into_string().unwrap())
    }

    #[test]
    fn a_redo_says_what_recovery_asks_of_it() {
        let turn = Turn {
            redo: 2,
            seq: 7,
            model: Some("opus".into()),
            truncate_to: Some(0.5),
            degraded: true,
            injections: vec![Injection::new("read the file first"), Injection::new("then edit")],
            ..Turn::first(SessionId::new("s").unwrap())
        };
        let redo =
            Invocation::new(&turn).with_model("sonnet").with_kind(&Kind::EditNotFound).with_remedy(&Remedy::Degrade);
        for (name, value) in [
            ("BACKSTOP_SESSION", "s"),
            ("BACKSTOP_ATTEMPT", "3"),
            ("BACKSTOP_SEQ", "7"),
            ("BACKSTOP_MODEL", "opus"),
            ("BACKSTOP_INJECT", "read the file first\n\nthen edit"),
            ("BACKSTOP_TRUNCATE_TO", "0.5"),
            ("BACKSTOP_DEGRADED", "1"),
            ("BACKSTOP_KIND", "edit_not_found"),
            ("BACKSTOP_REMEDY", "degrade"),
        ] {
            assert_eq!(variable(&redo, name).as_deref(), Some(value), "{name}");
        }
        assert_eq!(variable(&redo, "BACKSTOP_SKIP"), None);
    }

    #[test]
    fn a_first_try_inherits_nothing_from_a_backstop_around_it() {
        let first = Invocation::new(&Turn::first(SessionId::new("s").unwrap()));
        for name in ["BACKSTOP_KIND", "BACKSTOP_INJECT", "BACKSTOP_REMEDY", "BACKSTOP_MODEL"] {
            assert_eq!(variable(&first, name), None, "{name}");
        }
    }

    #[test]
    fn a_value_is_one_that_the_system_accepts() {
        assert_eq!(clean("a\0b"), "ab");
        let long = clean(&"ä".repeat(90_000));
        assert!(long.len() <= MAX_VALUE && long.ends_with('ä'));
    }
}
