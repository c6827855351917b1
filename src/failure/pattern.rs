use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use regex::{Regex, RegexBuilder};
use serde_json::{Map, Value};

use super::evidence::Evidence;
use super::facts::{Facts, Overrides};
use super::{Category, Domain, ErrorSeverity, Kind, RecoveryAction, Report};

/// The most memory that one user's compiled regex may take.
const REGEX_SIZE_LIMIT: usize = 1 << 20;

/// Why a pattern cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PatternError {
    /// The regex does not compile, or compiles to more than 1 MiB.
    #[error("pattern `{pattern}`: {reason}")]
    Regex {
        /// The pattern's name.
        pattern: String,
        /// What the regex compiler says.
        reason: String,
    },
    /// A pattern without any condition would match everything.
    #[error("pattern `{pattern}` has no condition")]
    NoCondition {
        /// The pattern's name.
        pattern: String,
    },
}

type Predicate = dyn Fn(&Report) -> bool + Send + Sync;

#[derive(Clone)]
enum Matcher {
    Regex(Regex),
    Fields(Arc<BTreeMap<String, Value>>),
    Predicate(Arc<Predicate>),
}

/// A user's own pattern: how to know a failure, and what it then is.
///
/// Users' patterns win over the built-in ones; among themselves the higher priority wins, then the
/// one registered first.
///
/// ```
/// use backstop::failure::{Category, ErrorPattern, Kind};
///
/// let busy = ErrorPattern::regex("gpu_busy", Category::SessionError, Kind::Overloaded, "gpu queue is full")?;
/// let kind = Kind::parse("own");
/// let own = ErrorPattern::new("own", Category::SessionError, kind, |report| report.exit_code == Some(75));
/// assert_eq!(busy.name(), "gpu_busy");
/// assert_eq!(own.kind().as_str(), "own");
/// # Ok::<(), backstop::failure::PatternError>(())
/// ```
#[derive(Clone)]
pub struct ErrorPattern {
    name: Arc<str>,
    category: Category,
    kind: Kind,
    priority: i32,
    overrides: Overrides,
    matchers: Vec<Matcher>,
}

impl ErrorPattern {
    /// A pattern from a predicate over the report. A predicate that panics does not match.
    pub fn new(
        name: impl Into<Arc<str>>,
        category: Category,
        kind: Kind,
        matches: impl Fn(&Report) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self::with_matchers(name.into(), category, kind, vec![Matcher::Predicate(Arc::new(matches))])
    }

    /// A pattern from a case-insensitive regex, searched in every text of the failure.
    ///
    /// # Errors
    ///
    /// [`PatternError::Regex`] if it does not compile within 1 MiB.
    pub fn regex(name: impl Into<Arc<str>>, category: Category, kind: Kind, regex: &str) -> Result<Self, PatternError> {
        Self::data(name, category, kind, Some(regex), BTreeMap::new())
    }

    /// A pattern from JSON fields: each key a JSON pointer (`/error/code`), or a field's name (`code`) or
    /// a path of names (`error.code`) that may begin at any depth; each value what must stand there.
    ///
    /// # Errors
    ///
    /// [`PatternError::NoCondition`] if there are no fields.
    pub fn fields(
        name: impl Into<Arc<str>>,
        category: Category,
        kind: Kind,
        fields: BTreeMap<String, Value>,
    ) -> Result<Self, PatternError> {
        Self::data(name, category, kind, None, fields)
    }

    /// A pattern as configuration writes it: a regex, fields, or both (then both must match).
    ///
    /// # Errors
    ///
    /// [`PatternError`] if the regex does not compile or there is no condition at all.
    pub fn data(
        name: impl Into<Arc<str>>,
        category: Category,
        kind: Kind,
        regex: Option<&str>,
        fields: BTreeMap<String, Value>,
    ) -> Result<Self, PatternError> {
        let name = name.into();
        let mut matchers = Vec::new();
        if let Some(regex) = regex {
            let compiled = RegexBuilder::new(regex).case_insensitive(true).size_limit(REGEX_SIZE_LIMIT).build();
            let compiled = compiled
                .map_err(|error| PatternError::Regex { pattern: name.to_string(), reason: error.to_string() })?;
            matchers.push(Matcher::Regex(compiled));
        }
        if !fields.is_empty() {
            matchers.push(Matcher::Fields(Arc::new(fields)));
        }
        if matchers.is_empty() {
            return Err(PatternError::NoCondition { pattern: name.to_string() });
        }
        Ok(Self::with_matchers(name, category, kind, matchers))
    }

    fn with_matchers(name: Arc<str>, category: Category, kind: Kind, matchers: Vec<Matcher>) -> Self {
        Self { name, category, kind, priority: 0, overrides: Overrides::NONE, matchers }
    }

    /// Sets the priority among users' patterns; 0 unless set.
    #[must_use]
    pub fn with_priority(mut self, priority: i32) -> Self {
        self.priority = priority;
        self
    }

    /// Says whether the same request can work again.
    #[must_use]
    pub fn with_retryable(mut self, retryable: bool) -> Self {
        self.overrides.retryable = Some(retryable);
        self
    }

    /// Says whether anything but a person can help.
    #[must_use]
    pub fn with_recoverable(mut self, recoverable: bool) -> Self {
        self.overrides.recoverable = Some(recoverable);
        self
    }

    /// Says who is at fault.
    #[must_use]
    pub fn with_domain(mut self, domain: Domain) -> Self {
        self.overrides.domain = Some(domain);
        self
    }

    /// Says how bad it is.
    #[must_use]
    pub fn with_severity(mut self, severity: ErrorSeverity) -> Self {
        self.overrides.severity = Some(severity);
        self
    }

    /// Says what to do.
    #[must_use]
    pub fn with_action(mut self, action: RecoveryAction) -> Self {
        self.overrides.action = Some(action);
        self
    }

    /// The pattern's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The category of failures that match.
    pub fn category(&self) -> Category {
        self.category
    }

    /// The kind of failures that match.
    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    /// The priority among users' patterns.
    pub fn priority(&self) -> i32 {
        self.priority
    }

    pub(crate) fn shared_name(&self) -> Arc<str> {
        Arc::clone(&self.name)
    }

    pub(crate) fn facts(&self) -> Facts {
        self.overrides.over(Facts::of(&self.kind))
    }

    pub(crate) fn matches(&self, report: &Report, evidence: &Evidence) -> bool {
        self.matchers.iter().all(|matcher| match matcher {
            Matcher::Regex(regex) => regex.is_match(evidence.lines()),
            Matcher::Fields(fields) => fields.iter().all(|(key, want)| has_field(report, key, want)),
            // A pattern must not be able to stop other sessions (P4).
            Matcher::Predicate(matches) => catch_unwind(AssertUnwindSafe(|| matches(report))).unwrap_or(false),
        })
    }
}

fn has_field(report: &Report, key: &str, want: &Value) -> bool {
    let own = match key {
        "status" => report.status.map(Value::from),
        "exit_code" => report.exit_code.map(Value::from),
        "signal" => report.signal.as_deref().map(Value::from),
        "tool" => report.tool.as_deref().map(Value::from),
        "provider" => report.provider.as_deref().map(Value::from),
        "model" => report.model.as_deref().map(Value::from),
        _ => None,
    };
    if own.as_ref() == Some(want) {
        return true;
    }
    if key.starts_with('/') {
        return report.value.pointer(key) == Some(want);
    }
    // Depth is bounded by the parser for text, and by this walk for values built in memory.
    let mut open = vec![(&report.value, 0_usize)];
    let mut seen = 0_usize;
    while let Some((value, depth)) = open.pop() {
        seen += 1;
        if seen > super::evidence::MAX_NODES || depth > super::evidence::MAX_DEPTH {
            continue;
        }
        match value {
            Value::Object(map) => {
                if map.get(key).or_else(|| along(map, key)) == Some(want) {
                    return true;
                }
                open.extend(map.values().take(super::evidence::MAX_NODES).map(|inner| (inner, depth + 1)));
            }
            Value::Array(items) => {
                open.extend(items.iter().take(super::evidence::MAX_NODES).map(|inner| (inner, depth + 1)));
            }
            _ => {}
        }
    }
    false
}

/// What stands at the end of a dotted path that begins here.
fn along<'a>(map: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    let mut names = path.split('.');
    let first = map.get(names.next()?)?;
    names.try_fold(first, |value, name| value.get(name))
}

impl fmt::Debug for ErrorPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ErrorPattern")
            .field("name", &self.name)
            .field("category", &self.category)
            .field("kind", &self.kind)
            .field("priority", &self.priority)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::failure::evidence::DEFAULT_CAP;

    fn matches(pattern: &ErrorPattern, report: &Report) -> bool {
        pattern.matches(report, &Evidence::of(report, DEFAULT_CAP))
    }

    #[test]
    fn a_regex_bomb_is_refused() {
        let bomb = ErrorPattern::regex("bomb", Category::SessionError, Kind::Other, "(((a{1,100}){1,100}){1,100})");
        assert!(matches!(bomb, Err(PatternError::Regex { .. })));
    }

    #[test]
    fn a_pattern_without_condition_is_refused() {
        let none = ErrorPattern::fields("none", Category::SessionError, Kind::Other, BTreeMap::new());
        assert!(matches!(none, Err(PatternError::NoCondition { .. })));
    }

    #[test]
    fn fields_are_found_by_pointer_by_path_or_by_name_at_any_depth() {
        let report = Report::new(serde_json::json!({"error": {"code": "E7", "inner": [{"zone": 3}]}}));
        for (key, want) in [("/error/code", Value::from("E7")), ("zone", Value::from(3)), ("error.code", "E7".into())] {
            let fields = BTreeMap::from([(key.to_owned(), want)]);
            let pattern = ErrorPattern::fields("p", Category::SessionError, Kind::Other, fields).unwrap();
            assert!(matches(&pattern, &report), "{key}");
            assert!(!matches(&pattern, &Report::text("E7 3")), "{key}");
        }
    }

    #[test]
    fn a_predicate_that_panics_does_not_match() {
        let pattern = ErrorPattern::new("p", Category::SessionError, Kind::Other, |_| panic!("no"));
        assert!(!matches(&pattern, &Report::text("anything")));
    }
}
