//! `--dry-run`: what would be done.

use std::ffi::OsString;
use std::time::Duration;

use serde::Serialize;

use super::agent::Agent;
use super::args::{ExecArgs, StdinMode};
use super::{samples, session};
use crate::cli::{Exit, Globals, human, output};
use crate::client::command::{ChildSpec, Invocation};
use crate::failure::{PatternRegistry, Timestamp};
use crate::policy::{ForecastStep, Injection};
use crate::strategy::forecast;
use crate::{RecoveryConfig, RecoveryError, SessionId, Turn};

#[derive(Serialize)]
struct DryRun {
    session: SessionId,
    /// Whether the session was named: only then is a killed run found again.
    named: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<String>,
    first_try: Start,
    /// A redo after a rate limit, with something to say to the agent.
    redo: Start,
    stdin: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    turn_timeout_ms: Option<u128>,
    #[serde(skip_serializing_if = "Option::is_none")]
    idle_timeout_ms: Option<u128>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deadline_ms: Option<u128>,
    max_attempts: u32,
    failures: Vec<Expected>,
}

#[derive(Serialize)]
struct Start {
    command: Vec<String>,
    env: Vec<String>,
}

/// What one kind of failure leads to.
#[derive(Serialize)]
struct Expected {
    kind: String,
    /// The line that wrote the chain, if one is run.
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<String>,
    steps: Vec<String>,
}

/// Prints it to stdout.
pub(super) fn show(args: &ExecArgs, globals: &Globals, config: &RecoveryConfig, agent: &Agent) -> Exit {
    let plan = plan(args, globals, config, agent);
    let read = if globals.json { output::json_line(&plan) } else { output::line(text(&plan)) };
    if read { Exit::Done } else { Exit::Failed }
}

fn plan(args: &ExecArgs, globals: &Globals, config: &RecoveryConfig, agent: &Agent) -> DryRun {
    let id = args.session.clone().unwrap_or_else(session::fresh);
    let first = Turn::first(id.clone());
    let redo = Turn {
        redo: 1,
        seq: 1,
        model: args.fallback_model.first().map(|model| model.as_str().into()),
        injections: vec![Injection::new("<what recovery tells the agent>")],
        ..first.clone()
    };
    let patterns = PatternRegistry::new();
    let detected = |report| patterns.detect_first(&report, Timestamp::default()).into_failure();
    let expected = samples::reports().into_iter().filter_map(detected);
    let keeps = config.persist_state() && !args.no_state;
    let millis = |span: Option<Duration>| span.map(|span| span.as_millis());
    DryRun {
        named: args.session.is_some(),
        state: keeps.then(|| session::directory(&globals.state_dir, &id).display().to_string()),
        first_try: start(agent, &agent.invocation(&first, None)),
        redo: start(agent, &agent.invocation(&redo, Some(&crate::Kind::RateLimit))),
        stdin: match args.stdin {
            StdinMode::Auto => "what is piped in, replayed to each try; nothing from a terminal",
            StdinMode::Replay => "replayed to each try",
            StdinMode::Null => "nothing",
            StdinMode::Inherit => "backstop's own",
        },
        turn_timeout_ms: millis(args.turn_timeout),
        idle_timeout_ms: millis(args.idle_timeout),
        deadline_ms: millis(args.deadline),
        max_attempts: config.limits().max_total_attempts,
        failures: expected.map(|error| follows(&error, args, config)).collect(),
        session: id,
    }
}

fn start(agent: &Agent, invocation: &Invocation) -> Start {
    let ChildSpec { program, args, env, .. } = agent.spec(invocation);
    let lossy = |text: &OsString| text.to_string_lossy().into_owned();
    let set = env.iter().filter_map(|(name, value)| Some(format!("{}={}", lossy(name), lossy(value.as_ref()?))));
    Start { command: std::iter::once(&program).chain(&args).map(lossy).collect(), env: set.collect() }
}

fn follows(error: &RecoveryError, args: &ExecArgs, config: &RecoveryConfig) -> Expected {
    let forecast = forecast(config, error, args.deadline);
    let origin = forecast.chain.as_ref().map(|chain| chain.origin.to_string());
    let reached = forecast.steps.iter().filter(|step| step.skipped_because.is_none());
    let mut steps: Vec<String> = reached.map(|step| described(step, args)).collect();
    if steps.is_empty() {
        steps.push(forecast.verdict.to_string());
    }
    Expected { kind: error.kind.to_string(), origin, steps }
}

/// A step with what it would do.
fn described(step: &ForecastStep, args: &ExecArgs) -> String {
    let name = &*step.step.strategy;
    let hook = |hook: &Option<OsString>, without: &str| match hook {
        Some(_) => format!("{name} by its hook"),
        None => format!("{name} ({without})"),
    };
    match name {
        "compact" => hook(&args.on_compact, "no --on-compact: passed over"),
        "rollback" => hook(&args.on_rollback, "no --on-rollback: passed over"),
        "summarize" => hook(&args.on_summarize, "no --on-summarize: {inject} asks for it"),
        "escalate" if args.on_escalate.is_some() => "escalate by its hook".to_owned(),
        "fallback_model" => {
            let models = [step.step.config.texts("model"), step.step.config.texts("models")].concat();
            if models.is_empty() {
                format!("{name} (none named: passed over)")
            } else {
                format!("{name} ({})", models.join(", "))
            }
        }
        _ => {
            let redos = step.attempts.iter().filter(|attempt| &*attempt.status == "retry");
            let waits: Vec<Duration> = redos.map(|attempt| attempt.delay.longest).collect();
            format!("{name}{}", after(&waits))
        }
    }
}

/// `, 8 times` where nothing is waited for, ` after 2 s, 4 s` else.
fn after(waits: &[Duration]) -> String {
    /// As many as show how they grow.
    const SHOWN: usize = 6;
    if waits.iter().all(Duration::is_zero) {
        return if waits.len() > 1 { format!(", {} times", waits.len()) } else { String::new() };
    }
    let mut shown: Vec<String> = waits.iter().take(SHOWN).copied().map(human::span).collect();
    if waits.len() > SHOWN {
        shown.push(format!("… {} times", waits.len()));
    }
    format!(" after {}", shown.join(", "))
}

fn text(plan: &DryRun) -> String {
    let words = |start: &Start| start.command.iter().map(|word| output::quoted(word)).collect::<Vec<_>>().join(" ");
    let span = |millis: Option<u128>| match millis.and_then(|millis| u64::try_from(millis).ok()) {
        Some(millis) => human::span(Duration::from_millis(millis)),
        None => "none".to_owned(),
    };
    let note = if plan.named { "" } else { " (a new one each run: name it with --session to go on after a crash)" };
    let mut lines = vec![
        format!("session    {}{note}", human::escaped(plan.session.as_str())),
        format!("state      {}", plan.state.as_deref().unwrap_or("none")),
        format!("first try  {}", words(&plan.first_try)),
        format!("redo       {}", words(&plan.redo)),
        format!("with       {}", plan.redo.env.join(" ")),
        format!("stdin      {}", plan.stdin),
        format!(
            "limits     a try {}, its silence {}, everything {}, at most {} attempts at recovery",
            span(plan.turn_timeout_ms),
            span(plan.idle_timeout_ms),
            span(plan.deadline_ms),
            plan.max_attempts
        ),
        "failures".to_owned(),
    ];
    let width = plan.failures.iter().map(|failure| failure.kind.len()).max().unwrap_or_default();
    for Expected { kind, origin, steps } in &plan.failures {
        let origin = origin.as_ref().map(|origin| format!("  [{origin}]")).unwrap_or_default();
        lines.push(format!("  {kind:width$}  {}{origin}", steps.join(" → ")));
    }
    lines.join("\n")
}
