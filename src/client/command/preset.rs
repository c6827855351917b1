use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::placeholders::uses;
use super::{ExitMeaning, FailureRules, Invocation, JsonPointer, Placeholder, ResultRules};
use crate::failure::Kind;

/// The presets that come with Backstop.
const EMBEDDED: [(&str, &str); 1] = [("claude", include_str!("../../../presets/claude.yaml"))];

/// The largest preset file: presets are written by hand.
const MAX_BYTES: u64 = 64 * 1024;

/// How to start one agent's command line and how to read what it says: data, versioned with the agent.
///
/// ```
/// use backstop::client::command::Preset;
///
/// let preset = Preset::named("claude")?;
/// assert_eq!(preset.program, "claude");
/// # Ok::<(), backstop::client::command::PresetError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Preset {
    /// Its name.
    pub name: String,
    /// Its own version, counted from 1.
    pub version: u32,
    /// The agent's program.
    pub program: String,
    /// The agent's version that it was made with.
    pub agent_version: String,
    /// What a user should know.
    pub notes: String,
    /// Variables to set where the user's environment has none of that name.
    pub env: BTreeMap<String, String>,
    /// Arguments to add.
    pub args: Vec<ArgumentGroup>,
    /// What counts as a failure.
    pub rules: FailureRules,
}

/// Arguments that belong together, such as a flag and its value. They are added when each of their
/// placeholders has a value, unless the user's own command already holds one of these placeholders.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct ArgumentGroup(pub Vec<String>);

/// Why a preset cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PresetError {
    /// No preset of this name comes with Backstop.
    #[error("no preset `{name}`; there are: {}", known.join(", "))]
    Unknown {
        /// The name.
        name: String,
        /// The names there are.
        known: Vec<&'static str>,
    },
    /// The file could not be read.
    #[error("cannot read the preset {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It is no preset: a syntax error, an unknown or missing key, a wrong type.
    #[error("{origin}: {problem}")]
    Malformed {
        /// The file or the preset's name.
        origin: String,
        /// What is wrong, with line and column.
        problem: String,
    },
    /// A value makes no sense.
    #[error("{origin}: {field}: {problem}")]
    Invalid {
        /// The file or the preset's name.
        origin: String,
        /// Where.
        field: String,
        /// What is wrong.
        problem: String,
    },
}

impl Preset {
    /// The names of the presets that come with Backstop.
    pub fn names() -> impl Iterator<Item = &'static str> {
        EMBEDDED.iter().map(|(name, _)| *name)
    }

    /// A preset that comes with Backstop.
    ///
    /// # Errors
    ///
    /// [`PresetError::Unknown`].
    pub fn named(name: &str) -> Result<Self, PresetError> {
        match EMBEDDED.iter().find(|(known, _)| *known == name) {
            Some((_, text)) => Self::parse(name, text),
            None => Err(PresetError::Unknown { name: name.to_owned(), known: Self::names().collect() }),
        }
    }

    /// Reads a preset file.
    ///
    /// # Errors
    ///
    /// Every other variant of [`PresetError`].
    pub fn load(path: &Path) -> Result<Self, PresetError> {
        let read = |path: &Path| -> io::Result<String> {
            let mut text = String::new();
            std::fs::File::open(path)?.take(MAX_BYTES + 1).read_to_string(&mut text)?;
            Ok(text)
        };
        let text = read(path).map_err(|source| PresetError::Read { path: path.to_owned(), source })?;
        Self::parse(&path.display().to_string(), &text)
    }

    /// Takes a preset's text; `origin` names it in errors.
    ///
    /// # Errors
    ///
    /// [`PresetError::Malformed`] and [`PresetError::Invalid`].
    pub fn parse(origin: &str, text: &str) -> Result<Self, PresetError> {
        let malformed = |problem: String| PresetError::Malformed { origin: origin.to_owned(), problem };
        if text.len() as u64 > MAX_BYTES {
            return Err(malformed(format!("larger than {MAX_BYTES} bytes")));
        }
        let file: File = serde_yaml::from_str(text).map_err(|error| malformed(error.to_string()))?;
        file.check().map_err(|(field, problem)| PresetError::Invalid { origin: origin.to_owned(), field, problem })
    }

    /// The user's arguments with the preset's own added, all placeholders filled.
    ///
    /// They are put at the end, or before a bare `--`, after which an agent takes no more flags.
    pub fn arguments(&self, own: &[OsString], invocation: &Invocation) -> Vec<OsString> {
        let wanted = |group: &&ArgumentGroup| {
            let used = Placeholder::ALL.into_iter().filter(|placeholder| uses(&group.0, *placeholder));
            used.into_iter().all(|placeholder| invocation.value(placeholder).is_some() && !uses(own, placeholder))
        };
        let added = self.args.iter().filter(wanted).flat_map(|group| group.0.iter().map(OsString::from));
        let mut args = own.to_vec();
        let end = own.iter().position(|arg| arg == "--").unwrap_or(own.len());
        args.splice(end..end, added);
        invocation.arguments(&args)
    }

    /// The variables to set, without those that are set already.
    pub fn environment(&self, is_set: impl Fn(&str) -> bool) -> Vec<(OsString, Option<OsString>)> {
        let missing = self.env.iter().filter(|(name, _)| !is_set(name));
        missing.map(|(name, value)| (name.into(), Some(value.into()))).collect()
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    version: u32,
    agent: Agent,
    #[serde(default)]
    notes: String,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    args: Vec<ArgumentGroup>,
    #[serde(default)]
    failure: Failure,
    #[serde(default)]
    result: Option<ResultRules>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Agent {
    program: String,
    version: String,
}

#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct Failure {
    empty_output: bool,
    regex: Vec<String>,
    success_regex: Vec<String>,
    json_error: Vec<JsonPointer>,
    exit: BTreeMap<i32, ExitMeaning>,
}

type Problem = (String, String);

impl File {
    fn check(self) -> Result<Preset, Problem> {
        if self.name.is_empty() || self.version == 0 {
            return Err(("name, version".to_owned(), "a preset has a name and a version from 1".to_owned()));
        }
        if let Some(name) = self.env.keys().find(|name| name.is_empty() || name.contains(['=', '\0'])) {
            return Err(("env".to_owned(), format!("`{name}` cannot name a variable")));
        }
        for (code, meaning) in &self.failure.exit {
            built_in(meaning.kind.as_ref(), || format!("failure.exit.{code}"))?;
        }
        if let Some(result) = &self.result {
            for (index, hint) in result.kinds.iter().enumerate() {
                built_in(Some(&hint.kind), || format!("result.kinds[{index}]"))?;
            }
            if result.holds.is_empty() {
                return Err(("result.where".to_owned(), "must name at least one value".to_owned()));
            }
        }
        let Failure { empty_output, regex, success_regex, json_error, exit } = self.failure;
        let rules = FailureRules {
            failure_regex: compile("failure.regex", &regex)?,
            success_regex: compile("failure.success_regex", &success_regex)?,
            empty_is_failure: empty_output,
            json_error,
            exit_map: exit,
            result: self.result,
        };
        let Agent { program, version: agent_version } = self.agent;
        let Self { name, version, notes, env, args, .. } = self;
        Ok(Preset { name, version, program, agent_version, notes, env, args, rules })
    }
}

/// A kind that is not ours is a misspelling: a preset cannot know users' own kinds.
fn built_in(kind: Option<&Kind>, field: impl Fn() -> String) -> Result<(), Problem> {
    match kind {
        Some(Kind::Custom(name)) => Err((field(), format!("no kind `{name}`"))),
        _ => Ok(()),
    }
}

fn compile(field: &str, patterns: &[String]) -> Result<Vec<regex::Regex>, Problem> {
    let numbered = patterns.iter().enumerate();
    let compiled = numbered.map(|(index, text)| {
        FailureRules::pattern(text).map_err(|error| (format!("{field}[{index}]"), error.to_string()))
    });
    compiled.collect()
}

#[cfg(test)]
#[path = "preset_tests.rs"]
mod tests;
