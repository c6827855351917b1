use std::fmt::Write;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};

use super::classify::{describe, registry};
use super::color::Paint;
use super::human::{escaped, short, span};
use super::{Exit, Globals, config, input, output};
use crate::actors::{Clock, SystemClock};
use crate::failure::{Explanation, Report, classify, mask};
use crate::policy::{Forecast, ForecastAttempt, ForecastStep, Span};
use crate::strategy;

/// Say why a failure is what it is, and what would be done about it.
///
/// Shows the evidence, the pattern that won and those that lost, the chain that is chosen and the line
/// that chose it, every step with its waits, and the worst case: every redo failing in the same way.
/// Nothing is done and nothing is written.
#[derive(Debug, Args)]
pub(super) struct ExplainArgs {
    /// The failure, as for `classify`; without one, or as `-`, all of standard input.
    #[arg(allow_hyphen_values = true)]
    value: Option<String>,
}

pub(super) fn run(args: &ExplainArgs, globals: &Globals) -> Exit {
    let config = match config::load(globals) {
        Ok(config) => config,
        Err(exit) => return exit,
    };
    let value = match input::value_or_stdin(args.value.as_deref()) {
        Ok(value) => value,
        Err(error) => return output::stopped(&error),
    };
    let (registry, now) = (registry(&config), SystemClock.now());
    let answer = classify(&registry, &value, now);
    let (detection, why) = registry.detect_explained(&Report::from_value(value), now);
    let plan = detection.failure().map(|error| strategy::forecast(&config, error, None));
    let diagnosis = detection.failure().map(|error| &*error.diagnosis);
    if globals.json {
        let report = json!({"answer": answer, "diagnosis": diagnosis, "explanation": why, "forecast": plan});
        output::json_line(&report);
        return Exit::Done;
    }
    let paint = Paint::stdout();
    let mut text = describe(&answer, paint);
    if let Some(diagnosis) = diagnosis {
        text += &format!("  {:<12}{}\n", "diagnosis", escaped(diagnosis));
    }
    text += &reasons(&why, paint);
    if let Some(plan) = &plan {
        text += &plan_text(plan, paint);
    }
    output::line(text.trim_end());
    Exit::Done
}

fn reasons(why: &Explanation, paint: Paint) -> String {
    let mut text = format!("\n{}\n  won: {}\n", paint.bold("Why"), escaped(&why.winner));
    for lost in &why.runners_up {
        text += &format!("  lost: {} ({})\n", escaped(&lost.pattern), escaped(&lost.reason));
    }
    for seen in &why.evidence {
        text += &paint.dim(&format!("  seen: {}", escaped(seen)));
        text.push('\n');
    }
    text
}

/// What would be done, for people; also what `exec --dry-run` shows.
pub(super) fn plan_text(plan: &Forecast, paint: Paint) -> String {
    let mut text = format!("\n{}\n", paint.bold("What would be done"));
    let Some(chain) = &plan.chain else {
        return text + &format!("  no chain is run: {}\n", escaped(&plan.verdict.to_string()));
    };
    let (key, origin) = (escaped(&chain.key.to_string()), escaped(&chain.origin.to_string()));
    text += &format!("  chain {key}, {origin}: {}\n", chain.because);
    for (number, step) in (1..).zip(&plan.steps) {
        text += &step_text(number, step, paint);
    }
    text += &format!("\n{}\n  If every redo fails in the same way: {}", paint.bold("Worst case"), worst(plan));
    for remark in &plan.remarks {
        text += &format!("  {}\n", escaped(remark));
    }
    text
}

fn worst(plan: &Forecast) -> String {
    let least = if plan.complete { "" } else { "more than " };
    let count = |number: u32, one: &str| format!("{number} {one}{}", if number == 1 { "" } else { "s" });
    let mut text = format!(
        "{}\n  after {least}{}, {} and {} of waiting, besides the time that the turns take.\n",
        escaped(&plan.verdict.to_string()),
        count(plan.executions, "attempt"),
        count(plan.redos, "redo"),
        range(plan.waiting),
    );
    if plan.steps.iter().any(|step| step.unknown) {
        text += "  Own strategies are not asked here; what they wait and do comes on top.\n";
    }
    text
}

fn step_text(number: usize, step: &ForecastStep, paint: Paint) -> String {
    /// More attempts than this of one step differ in nothing that matters.
    const SHOWN: usize = 10;
    let settings: Vec<String> = step.step.config.as_map().iter().map(setting).collect();
    let settings = if settings.is_empty() { String::new() } else { format!(" ({})", settings.join(", ")) };
    let mut text = format!("  {number}. {}{settings}", paint.bold(&escaped(&step.step.strategy)));
    if let Some(reason) = &step.skipped_because {
        return text + &format!(": passed over, {}\n", escaped(reason));
    }
    if step.attempts.is_empty() {
        return text + ": not reached\n";
    }
    text.push('\n');
    for attempt in step.attempts.iter().take(SHOWN) {
        let _never_fails = writeln!(text, "     {}", attempt_text(attempt));
    }
    if let Some(more) = step.attempts.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        let _never_fails = writeln!(text, "     … and {more} more attempts");
    }
    text
}

fn setting((name, value): (&String, &Value)) -> String {
    /// Enough to recognise a text by.
    const SHOWN: usize = 40;
    let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    format!("{}: {}", escaped(name), short(&escaped(&mask(&value)), SHOWN))
}

fn attempt_text(attempt: &ForecastAttempt) -> String {
    let because = attempt.because.as_deref().unwrap_or("the strategy");
    let then = match &*attempt.status {
        "retry" | "success" if attempt.refused => {
            format!("a wait of {} is not begun ({because}), next step", range(attempt.delay))
        }
        "retry" | "success" if attempt.delay.longest == Duration::ZERO => "redo at once".to_owned(),
        "retry" | "success" => format!("wait {} ({because}), redo", range(attempt.delay)),
        "next_strategy" => "next step".to_owned(),
        _ => "the end".to_owned(),
    };
    format!("attempt {}: {}; {then}", attempt.attempt, escaped(&attempt.text))
}

fn range(delay: Span) -> String {
    let (shortest, longest) = (span(delay.shortest), span(delay.longest));
    if shortest == longest { longest } else { format!("{shortest} to {longest}") }
}
