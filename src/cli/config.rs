//! Configuration files of every verb: read within bounds, layered, their problems shown with the place.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::color::Paint;
use super::{Globals, output};
use crate::policy::RecoveryConfig;
use crate::policy::config::{ConfigBuilder, ConfigErrors, Diagnostic};

/// The largest file that is read. The parser refuses far smaller ones, with a place.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// The name by which standard input is given and called.
const STDIN: &str = "-";

/// A configuration as it was read, not parsed yet.
#[derive(Debug)]
pub(super) struct Text {
    /// How messages call it.
    pub name: Arc<str>,
    /// What it says.
    pub text: String,
}

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum LoadError {
    /// The file cannot be read.
    #[error("cannot read {name}")]
    Read {
        name: String,
        #[source]
        source: io::Error,
    },
    /// The file is far too large.
    #[error("cannot read {name}: it has more than {} MiB", MAX_BYTES >> 20)]
    TooLarge { name: String },
    /// The file holds no UTF-8 text.
    #[error("cannot read {name}: it is not UTF-8 text")]
    NoText { name: String },
    /// It has mistakes.
    #[error("the configuration is refused")]
    Invalid {
        #[source]
        errors: ConfigErrors,
        texts: Vec<Text>,
    },
}

impl Text {
    /// Reads a file, or standard input for `-`.
    pub fn read(path: &Path) -> Result<Self, LoadError> {
        let name = if path == Path::new(STDIN) { "<stdin>".to_owned() } else { path.display().to_string() };
        let bytes = if path == Path::new(STDIN) { read_bounded(io::stdin().lock()) } else { read_file(path) };
        match bytes {
            Err(source) => Err(LoadError::Read { name, source }),
            Ok(bytes) if bytes.len() as u64 > MAX_BYTES => Err(LoadError::TooLarge { name }),
            Ok(bytes) => match String::from_utf8(bytes) {
                Ok(text) => Ok(Self { name: name.into(), text }),
                Err(_) => Err(LoadError::NoText { name }),
            },
        }
    }
}

fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    if file.metadata()?.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    read_bounded(file)
}

fn read_bounded(from: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = vec![];
    from.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Layers these texts over the built-in configuration, the later over the earlier.
pub(super) fn layer(texts: &[Text], known: &[String]) -> Result<(RecoveryConfig, Vec<Diagnostic>), ConfigErrors> {
    let mut builder = ConfigBuilder::new().known_strategies(known.iter().map(String::as_str));
    for text in texts {
        builder = builder.yaml(Arc::clone(&text.name), text.text.clone());
    }
    builder.build().map(|loaded| (loaded.config, loaded.warnings))
}

/// The configuration that `--config` names, the built-in one without it. Warnings are shown once, with
/// their place, unless `--quiet`.
///
/// # Errors
///
/// A file that cannot be read or has mistakes; [`show`] says so to a person.
pub(super) fn load(globals: &Globals) -> Result<RecoveryConfig, LoadError> {
    let texts = globals.config.iter().map(|path| Text::read(path)).collect::<Result<Vec<_>, _>>()?;
    match layer(&texts, &[]) {
        Ok((config, warnings)) => {
            if !globals.quiet {
                show_all(&warnings, &texts);
            }
            Ok(config)
        }
        Err(errors) => Err(LoadError::Invalid { errors, texts }),
    }
}

/// Shows on stderr why a configuration cannot be used.
pub(super) fn show(error: &LoadError) {
    match error {
        LoadError::Invalid { errors, texts } => {
            show_all(errors.diagnostics(), texts);
            output::note("error: the configuration is refused");
        }
        other => output::error(other),
    }
}

fn show_all(problems: &[Diagnostic], texts: &[Text]) {
    let paint = Paint::stderr();
    for problem in problems {
        eprint_quietly(&paint.diagnostic(&render(problem, texts)));
    }
}

/// The problem with its source line, wherever it was read.
pub(super) fn render(problem: &Diagnostic, texts: &[Text]) -> String {
    let by_name: BTreeMap<&str, &str> = texts.iter().map(|text| (&*text.name, text.text.as_str())).collect();
    problem.render(by_name.get(&*problem.source).copied().unwrap_or_default())
}

/// Nobody reading there is no reason to stop.
fn eprint_quietly(text: &str) {
    let _nobody_reads = io::Write::write_all(&mut io::stderr().lock(), text.as_bytes());
}

/// A value from the command line, or all of standard input up to a bound; a person at a terminal is told
/// that it is waited for.
pub(super) fn value_or_stdin(value: Option<&str>, most: u64) -> io::Result<String> {
    match value {
        Some(value) if value != STDIN => Ok(value.to_owned()),
        _ => {
            let stdin = io::stdin();
            if stdin.is_terminal() {
                output::note("reading from the terminal; Ctrl-D ends the input");
            }
            let mut bytes = vec![];
            stdin.lock().take(most).read_to_end(&mut bytes)?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        }
    }
}

/// Whether this path was given more than once as standard input, which can be read once.
pub(super) fn repeats_stdin(paths: &[PathBuf]) -> bool {
    paths.iter().filter(|path| path.as_path() == Path::new(STDIN)).count() > 1
}
