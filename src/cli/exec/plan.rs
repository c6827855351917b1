use std::sync::Arc;

use super::args::ExecArgs;
use super::chains::with_fallbacks;
use crate::RecoveryConfig;
use crate::cli::{Exit, Globals, config};
use crate::client::command::{Hook, HookClient};
use crate::policy::config::ConfigBuilder;

/// The configuration of a run: files, then the command line's own options.
///
/// # Errors
///
/// What is wrong was said on stderr.
pub(super) fn configuration(args: &ExecArgs, globals: &Globals) -> Result<RecoveryConfig, Exit> {
    let mut builder = config::read(globals)?;
    if !args.fallback_model.is_empty() {
        let files = |builder: &ConfigBuilder| {
            let texts = builder.texts().iter();
            texts.fold(ConfigBuilder::new(), |copy, (name, text)| copy.yaml(Arc::clone(name), text.clone()))
        };
        // What is wrong with the files is said below, once.
        let so_far = files(&builder).build().map(|loaded| loaded.config).unwrap_or_default();
        builder = with_fallbacks(builder, &so_far, &args.fallback_model);
    }
    if let Some(attempts) = args.max_attempts {
        builder = builder.max_total_attempts(attempts);
    }
    config::build(builder)
}

/// The hooks as a session's client; `None` without any.
pub(super) fn hooks(args: &ExecArgs) -> Option<Arc<HookClient>> {
    if args.on_compact.is_none() && args.on_summarize.is_none() && args.on_rollback.is_none() {
        return None;
    }
    let mut client = HookClient::new();
    if let Some(command) = &args.on_compact {
        client = client.on_compact(Hook::new("on-compact", command));
    }
    if let Some(command) = &args.on_summarize {
        client = client.on_summarize(Hook::new("on-summarize", command));
    }
    if let Some(command) = &args.on_rollback {
        client = client.on_rollback(Hook::new("on-rollback", command));
    }
    Some(Arc::new(client))
}
