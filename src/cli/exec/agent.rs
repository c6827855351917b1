use std::ffi::{OsStr, OsString};
use std::path::Path;

use super::args::ExecArgs;
use crate::client::command::{
    ChildSpec, FailureRules, Invocation, Limits, Placeholder, Preset, PresetError, Stdin, uses,
};
use crate::failure::Kind;
use crate::policy::Turn;

/// The agent's command as the user wrote it: what to start, and when it counts as failed.
pub(super) struct Agent {
    program: OsString,
    args: Vec<OsString>,
    preset: Option<Preset>,
    model: Option<String>,
    limits: Limits,
    /// What it reads; known once stdin has been read.
    pub stdin: Stdin,
    /// When a try counts as failed.
    pub rules: FailureRules,
}

impl Agent {
    /// # Errors
    ///
    /// The preset is unknown or wrong.
    pub fn of(args: &ExecArgs) -> Result<Self, PresetError> {
        let preset = args.preset.as_deref().map(preset).transpose()?;
        let own = FailureRules {
            failure_regex: args.failure_regex.clone(),
            success_regex: args.success_regex.clone(),
            empty_is_failure: args.empty_is_failure,
            json_error: args.json_error.clone(),
            ..FailureRules::default()
        };
        let usual = preset.as_ref().map(|preset| preset.rules.clone()).unwrap_or_default();
        let mut command = args.command.iter().cloned();
        let program = command.next().or_else(|| preset.as_ref().map(|preset| preset.program.clone().into()));
        Ok(Self {
            program: program.unwrap_or_default(),
            args: command.collect(),
            model: args.model.clone(),
            limits: Limits { turn_timeout: args.turn_timeout, idle_timeout: args.idle_timeout, ..Limits::default() },
            stdin: Stdin::Null,
            rules: usual.and(own),
            preset,
        })
    }

    /// Whether a model can reach the command by its arguments.
    pub fn takes_models(&self) -> bool {
        let by_preset = |preset: &Preset| preset.args.iter().any(|group| uses(&group.0, Placeholder::Model));
        uses(&self.args, Placeholder::Model) || self.preset.as_ref().is_some_and(by_preset)
    }

    /// The model that a turn uses.
    pub fn model_of<'a>(&'a self, turn: &'a Turn) -> Option<&'a str> {
        turn.model.as_deref().or(self.model.as_deref())
    }

    /// One start of the command; `kind` is the failure that led to it.
    pub fn invocation(&self, turn: &Turn, kind: Option<&Kind>) -> Invocation {
        let mut invocation = Invocation::new(turn);
        if let Some(model) = &self.model {
            invocation = invocation.with_model(model);
        }
        match kind {
            Some(kind) => invocation.with_kind(kind),
            None => invocation,
        }
    }

    /// What to start for it.
    pub fn spec(&self, invocation: &Invocation) -> ChildSpec {
        let args = match &self.preset {
            Some(preset) => preset.arguments(&self.args, invocation),
            None => invocation.arguments(&self.args),
        };
        let is_set = |name: &str| std::env::var_os(name).is_some();
        let preset_env = self.preset.iter().flat_map(|preset| preset.environment(is_set));
        ChildSpec::new(&self.program, args)
            .with_env(preset_env)
            .with_env(invocation.environment())
            .with_stdin(self.stdin.clone())
            .with_limits(self.limits)
    }
}

/// A preset's name, or the path of a file.
fn preset(name: &str) -> Result<Preset, PresetError> {
    let is_file = name.contains('/') || Path::new(name).extension().is_some_and(is_yaml);
    if is_file { Preset::load(Path::new(name)) } else { Preset::named(name) }
}

fn is_yaml(extension: &OsStr) -> bool {
    extension == "yaml" || extension == "yml"
}
