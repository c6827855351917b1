use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use serde_json::{Value, json};

use super::color::Paint;
use super::config::{STDIN, Text, render};
use super::human::{escaped, short, table};
use super::{Exit, Globals, output};
use crate::policy::config::{ConfigBuilder, Diagnostic, EffectiveValue, Severity};

/// Check configuration files strictly: what is a warning elsewhere is an error here.
///
/// Each file is checked alone. With --print-effective the files are then layered in the order given, the
/// later over the earlier, and every value in force is printed with the line that it comes from. Files
/// given by --config are checked first. Exits with 1 if there is any problem.
#[derive(Debug, Args)]
pub(super) struct CheckArgs {
    /// Files to check; `-` is standard input.
    #[arg(required_unless_present = "config", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Take this own strategy's name for known; may be given several times.
    #[arg(long, value_name = "NAME")]
    known: Vec<String>,
    /// Print every value in force with its origin, if the files can be used.
    #[arg(long)]
    print_effective: bool,
}

/// One file that was looked at.
struct Checked {
    path: PathBuf,
    /// The text, or why there is none.
    text: Result<Text, String>,
    problems: Vec<Diagnostic>,
}

pub(super) fn run(args: &CheckArgs, globals: &Globals) -> Exit {
    let paths: Vec<&PathBuf> = globals.config.iter().chain(&args.files).collect();
    if paths.iter().filter(|path| path.as_path() == Path::new(STDIN)).count() > 1 {
        output::note("error: standard input can be checked once");
        return Exit::Usage;
    }
    let checked: Vec<Checked> = paths.into_iter().map(|path| check(path, &args.known)).collect();
    let effective = args.print_effective.then(|| layered(&checked, &args.known)).flatten();
    let refused = args.print_effective && effective.is_none();
    if globals.json {
        output::json_line(&report(&checked, effective.as_deref()));
    } else {
        print(&checked, effective.as_deref(), globals);
    }
    let ok = !refused && checked.iter().all(|file| file.text.is_ok() && file.problems.is_empty());
    if ok { Exit::Done } else { Exit::Problems }
}

fn check(path: &Path, known: &[String]) -> Checked {
    let text = Text::read(path).map_err(|error| output::with_causes(&error));
    let mut problems = match &text {
        Ok(text) => match layers([text], known).build() {
            Ok(loaded) => loaded.warnings,
            Err(errors) => errors.diagnostics().to_vec(),
        },
        Err(_) => vec![],
    };
    for problem in &mut problems {
        problem.severity = Severity::Error;
    }
    Checked { path: path.to_owned(), text, problems }
}

fn layers<'a>(texts: impl IntoIterator<Item = &'a Text>, known: &[String]) -> ConfigBuilder {
    let builder = ConfigBuilder::new().known_strategies(known.iter().map(String::as_str));
    texts.into_iter().fold(builder, |builder, text| builder.yaml(text.name.clone(), text.text.as_str()))
}

/// What all files together amount to; `None` if any of them is refused.
fn layered(checked: &[Checked], known: &[String]) -> Option<Vec<EffectiveValue>> {
    let texts = checked.iter().map(|file| file.text.as_ref().ok()).collect::<Option<Vec<_>>>()?;
    Some(layers(texts, known).build().ok()?.config.effective())
}

/// A problem in `--json`.
#[derive(Serialize)]
struct Problem<'a> {
    line: Option<u32>,
    column: Option<u32>,
    path: &'a str,
    message: &'a str,
    help: Option<&'a str>,
}

fn report(checked: &[Checked], effective: Option<&[EffectiveValue]>) -> Value {
    let files = checked.iter().map(|file| {
        let problems: Vec<Problem> = file.problems.iter().map(problem).collect();
        let ok = file.text.is_ok() && problems.is_empty();
        json!({"file": file.path, "ok": ok, "problems": problems, "unreadable": file.text.as_ref().err()})
    });
    let mut report = json!({"files": files.collect::<Vec<_>>()});
    if let Some(values) = effective {
        let value = |value: &EffectiveValue| json!({"path": value.path, "value": value.value, "origin": value.origin.to_string()});
        report["effective"] = values.iter().map(value).collect();
    }
    report
}

fn problem(problem: &Diagnostic) -> Problem<'_> {
    Problem {
        line: problem.place.map(|place| place.line),
        column: problem.place.map(|place| place.column),
        path: &problem.path,
        message: &problem.message,
        help: problem.help.as_deref(),
    }
}

fn print(checked: &[Checked], effective: Option<&[EffectiveValue]>, globals: &Globals) {
    let paint = Paint::stdout();
    for file in checked {
        let name = escaped(&file.path.display().to_string());
        match &file.text {
            Err(reason) => output::note(format_args!("error: {reason}")),
            Ok(text) => {
                for problem in &file.problems {
                    output::line(paint.diagnostic(&render(problem, std::slice::from_ref(text))));
                }
                match file.problems.len() {
                    0 if globals.quiet || effective.is_some() => true,
                    0 => output::line(format_args!("{name}: {}", paint.good("ok"))),
                    1 => output::line(format_args!("{name}: {}", paint.bad("1 problem"))),
                    many => output::line(format_args!("{name}: {}", paint.bad(&format!("{many} problems")))),
                };
            }
        }
    }
    if let Some(values) = effective {
        output::line(effective_table(values).trim_end());
    }
}

/// One line a value, a chain's steps under it, the origin on the right.
fn effective_table(values: &[EffectiveValue]) -> String {
    /// Longer values would push the origins out of sight; `--json` has them whole.
    const SHOWN: usize = 60;
    let mut rows = vec![];
    for EffectiveValue { path, value, origin } in values {
        let origin = escaped(&origin.to_string());
        match value {
            Value::Array(steps) => {
                rows.push([escaped(path), String::new(), origin]);
                rows.extend(
                    steps
                        .iter()
                        .map(|step| [String::new(), short(&format!("- {}", step_text(step)), SHOWN), String::new()]),
                );
            }
            value => rows.push([escaped(path), short(&plain(value), SHOWN), origin]),
        }
    }
    table(["SETTING", "VALUE", "FROM"], &rows)
}

fn step_text(step: &Value) -> String {
    let strategy = plain(&step["strategy"]);
    match step["config"].as_object() {
        Some(settings) if !settings.is_empty() => {
            let settings = settings.iter().map(|(name, value)| format!("{}: {}", escaped(name), plain(value)));
            format!("{strategy} ({})", settings.collect::<Vec<_>>().join(", "))
        }
        _ => strategy,
    }
}

fn plain(value: &Value) -> String {
    escaped(&value.as_str().map_or_else(|| value.to_string(), str::to_owned))
}
