//! Configuration files of every verb: read within bounds, layered, their problems shown with the place.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;

use super::color::Paint;
use super::{Exit, Globals, output};
use crate::RecoveryConfig;
use crate::policy::config::{ConfigBuilder, Diagnostic};

/// More than any configuration that a person writes; the parser has a bound of its own.
const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// The path that stands for standard input.
pub(super) const STDIN: &str = "-";

/// A configuration as it was read, not parsed yet.
#[derive(Debug, Clone)]
pub(super) struct Text {
    /// How messages call it.
    pub name: Arc<str>,
    /// What it says.
    pub text: String,
}

/// Why a configuration cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {name}")]
pub(super) struct Unreadable {
    name: String,
    #[source]
    source: io::Error,
}

impl Text {
    /// Reads a file, or standard input for `-`.
    pub fn read(path: &Path) -> Result<Self, Unreadable> {
        let is_stdin = path == Path::new(STDIN);
        let name = if is_stdin { "<stdin>".to_owned() } else { path.display().to_string() };
        let text = if is_stdin { text_of(io::stdin().lock()) } else { File::open(path).and_then(text_of) };
        match text {
            Ok(text) => Ok(Self { name: name.into(), text }),
            Err(source) => Err(Unreadable { name, source }),
        }
    }
}

fn text_of(from: impl Read) -> io::Result<String> {
    let mut text = String::new();
    from.take(MAX_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

/// The builder with every `--config` file in it; what cannot be read is said on stderr.
pub(super) fn read(globals: &Globals) -> Result<ConfigBuilder, Exit> {
    globals.config.iter().try_fold(ConfigBuilder::new(), |builder, path| match Text::read(path) {
        Ok(Text { name, text }) => Ok(builder.yaml(name, text)),
        Err(error) => {
            output::error(&error);
            Err(Exit::Config)
        }
    })
}

/// The finished configuration; problems and warnings are said on stderr, with the line that they are in.
pub(super) fn build(builder: ConfigBuilder) -> Result<RecoveryConfig, Exit> {
    let texts: Vec<Text> =
        builder.texts().iter().map(|(name, text)| Text { name: Arc::clone(name), text: text.clone() }).collect();
    match builder.build() {
        Ok(loaded) => {
            // Off under `--quiet`, like every other warning.
            if tracing::enabled!(tracing::Level::WARN) {
                show(&loaded.warnings, &texts);
            }
            Ok(loaded.config)
        }
        Err(problems) => {
            show(problems.diagnostics(), &texts);
            output::note("error: the configuration is refused");
            Err(Exit::Config)
        }
    }
}

/// The configuration that `--config` names; the built-in one without it.
pub(super) fn load(globals: &Globals) -> Result<RecoveryConfig, Exit> {
    build(read(globals)?)
}

fn show(problems: &[Diagnostic], texts: &[Text]) {
    let paint = Paint::stderr();
    for problem in problems {
        let text = paint.diagnostic(&render(problem, texts));
        let _nobody_reads = io::stderr().lock().write_all(text.as_bytes());
    }
}

/// The problem with its source line.
pub(super) fn render(problem: &Diagnostic, texts: &[Text]) -> String {
    let text = texts.iter().find(|text| text.name == problem.source);
    problem.render(text.map_or("", |text| &text.text))
}
