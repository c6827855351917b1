use std::io::{self, Write};

use clap::Args;

use super::color::Paint;
use super::human::{escaped, span};
use super::{Exit, Globals, config, input, output};
use crate::actors::{Clock, SystemClock};
use crate::failure::{ClassifyAnswer, PatternRegistry, classify};
use crate::policy::RecoveryConfig;

/// Say what kind of failure a value is.
///
/// The value is an error as a program has it: a text, or JSON such as a response's body, an error object,
/// or a command's {"exit_code", "stdout", "stderr"}. A --config adds its own patterns.
///
/// With --jsonl every line of standard input is one JSON value and gets one JSON answer on a line, in
/// order and at once; a line that is no JSON is taken as a text, and a blank line gets no answer.
#[derive(Debug, Args)]
pub(super) struct ClassifyArgs {
    /// The value; without one, or as `-`, all of standard input is the value.
    #[arg(allow_hyphen_values = true)]
    value: Option<String>,
    /// Answer line by line.
    #[arg(long, conflicts_with = "value")]
    jsonl: bool,
}

pub(super) fn run(args: &ClassifyArgs, globals: &Globals) -> Exit {
    let registry = match config::load(globals) {
        Ok(config) => registry(&config),
        Err(exit) => return exit,
    };
    if args.jsonl {
        return match lines(&registry, io::stdin().lock(), io::BufWriter::new(io::stdout().lock())) {
            Ok(()) => Exit::Done,
            Err(error) => output::stopped(&error),
        };
    }
    let value = match input::value_or_stdin(args.value.as_deref()) {
        Ok(value) => value,
        Err(error) => return output::stopped(&error),
    };
    let answer = classify(&registry, &value, SystemClock.now());
    if globals.json {
        output::json_line(&answer);
    } else {
        output::line(describe(&answer, Paint::stdout()).trim_end());
    }
    Exit::Done
}

/// The built-in knowledge with the configuration's own patterns over it.
pub(super) fn registry(config: &RecoveryConfig) -> PatternRegistry {
    let mut registry = PatternRegistry::new().with_text_cap(config.limits().detect_bytes);
    crate::engine::add_patterns(&mut registry, config);
    registry
}

/// Answers line by line. What is answered is seen at once by whoever sent one line and waits, and in
/// blocks by whoever sends many.
fn lines(registry: &PatternRegistry, from: impl io::Read, mut to: impl Write) -> io::Result<()> {
    let mut from = io::BufReader::new(from);
    while let Some(value) = input::next_line(&mut from)? {
        let answer = classify(registry, &value, SystemClock.now());
        serde_json::to_writer(&mut to, &answer)?;
        to.write_all(b"\n")?;
        if !from.buffer().contains(&b'\n') {
            to.flush()?;
        }
    }
    to.flush()
}

/// The answer for people.
pub(super) fn describe(answer: &ClassifyAnswer, paint: Paint) -> String {
    let name = paint.bold(&format!("{} / {}", answer.category, escaped(&answer.kind)));
    if answer.category == "none" {
        return format!("{name}: nothing to recover (rule {})\n", escaped(&answer.pattern));
    }
    let yes = |flag: bool| if flag { "yes" } else { "no" };
    let mut text = format!("{name}\n");
    let mut row = |head: &str, value: String| text += &format!("  {head:<12}{value}\n");
    row("message", escaped(&answer.message));
    row("domain", format!("{}, severity {}", answer.domain, answer.severity));
    row("retryable", yes(answer.retryable).to_owned());
    row("recoverable", yes(answer.recoverable).to_owned());
    row("suggested", answer.suggested_action.to_string());
    if let Some(wait) = answer.retry_after_ms {
        row("stated wait", span(std::time::Duration::from_millis(wait)));
    }
    match (answer.limit_tokens, answer.actual_tokens) {
        (None, None) => {}
        (limit, actual) => {
            let number = |number: Option<u64>| number.map_or_else(|| "unknown".to_owned(), |number| number.to_string());
            row("tokens", format!("limit {}, needed {}", number(limit), number(actual)));
        }
    }
    row("pattern", escaped(&answer.pattern));
    text
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn every_line_gets_one_answer_in_order() {
        let mut out = vec![];
        let input = "\"429 Too Many Requests\"\n\n{\"error\":\"maximum context length is 8192 tokens\"}\nno json\n";
        lines(&PatternRegistry::new(), input.as_bytes(), &mut out).unwrap();
        let kinds: Vec<String> = String::from_utf8(out)
            .unwrap()
            .lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["kind"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(kinds[..2], ["rate_limit", "context_overflow"]);
        assert_eq!(kinds.len(), 3);
    }

    #[test]
    fn a_message_cannot_paint_the_terminal() {
        let answer =
            classify(&PatternRegistry::new(), &"Error: \u{1b}[31m429 Too Many Requests".into(), Default::default());
        assert!(!describe(&answer, Paint::PLAIN).contains('\u{1b}'));
    }
}
