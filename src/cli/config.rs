use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::{Exit, Globals, output};
use crate::RecoveryConfig;
use crate::policy::config::ConfigBuilder;

/// More than any configuration that a person writes; the parser has a bound of its own.
const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// The builder with every `--config` file in it; what cannot be read is said on stderr.
pub(super) fn read(globals: &Globals) -> Result<ConfigBuilder, Exit> {
    globals.config.iter().try_fold(ConfigBuilder::new(), |builder, path| {
        let text = text_of(path).map_err(|source| {
            output::note(format_args!("error: cannot read {}: {source}", path.display()));
            Exit::Config
        })?;
        Ok(builder.yaml(path.display().to_string(), text))
    })
}

/// The finished configuration; problems and warnings are said on stderr.
pub(super) fn build(builder: ConfigBuilder) -> Result<RecoveryConfig, Exit> {
    match builder.build() {
        Ok(loaded) => {
            for warning in loaded.warnings {
                output::note(warning);
            }
            Ok(loaded.config)
        }
        Err(problems) => {
            for problem in problems.diagnostics() {
                output::note(problem);
            }
            Err(Exit::Config)
        }
    }
}

fn text_of(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(MAX_BYTES).read_to_string(&mut text)?;
    Ok(text)
}
