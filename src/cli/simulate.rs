use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use super::config::Text;
use super::human::table;
use super::{Exit, Globals, config, output};
use crate::RecoveryConfig;
use crate::engine::fleet::{Measured, Policy, SHIPPED, Scenario, Table, plot, shipped, simulate};

/// Let a fleet of sessions meet an outage on virtual time, and see what a policy is worth.
///
/// The real engine runs against a modelled provider; beside it run back-off without and with jitter, each
/// session for itself, and the original system's chain. The scenario is a file or one of those that ship:
/// outage, throttle, flapping, brown-out, revoked, night. The same seed gives the same run.
#[derive(Debug, Args)]
pub(super) struct SimulateArgs {
    /// A scenario file, or the name of one that ships.
    #[arg(required_unless_present = "list", value_name = "SCENARIO")]
    scenario: Option<PathBuf>,
    /// The configuration to judge, in place of the scenario's own.
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// Another configuration to run beside it; may be given several times.
    #[arg(long, value_name = "FILE")]
    compare: Vec<PathBuf>,
    /// Leave out what others do.
    #[arg(long)]
    no_baselines: bool,
    /// The first seed.
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// How many seeds to run; the table then shows the middle of each figure.
    #[arg(long, default_value_t = 1, value_name = "K", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    seeds: u64,
    /// Draw the first seed's runs into this file.
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
    /// List the scenarios that ship.
    #[arg(long)]
    list: bool,
}

/// The answer of `--json`.
#[derive(Serialize)]
struct Said<'a> {
    scenario: &'a str,
    seeds: [u64; 2],
    /// One row for each policy and seed.
    rows: Vec<Row<'a>>,
}

#[derive(Serialize)]
struct Row<'a> {
    seed: u64,
    #[serde(flatten)]
    table: &'a Table,
}

pub(super) fn run(args: &SimulateArgs, globals: &Globals) -> Exit {
    let Some(scenario) = args.scenario.as_ref().filter(|_| !args.list) else {
        for (name, text) in SHIPPED {
            output::line(format_args!(
                "{name:<12}{}",
                text.lines().next().unwrap_or_default().trim_start_matches("# ")
            ));
        }
        return Exit::Done;
    };
    let scenario = match read(scenario) {
        Ok(scenario) => scenario,
        Err(exit) => return exit,
    };
    let policies = match policies(args, globals, &scenario) {
        Ok(policies) => policies,
        Err(exit) => return exit,
    };
    let bar = progress(args.seeds * policies.len() as u64, globals);
    let mut measured: Vec<Vec<Measured>> = vec![];
    for policy in &policies {
        bar.set_message(policy.name.clone());
        let mut runs = vec![];
        for seed in args.seed..args.seed.saturating_add(args.seeds) {
            runs.push(simulate(&scenario, policy, seed));
            bar.inc(1);
        }
        measured.push(runs);
    }
    bar.finish_and_clear();
    if let Some(file) = &args.plot {
        let first: Vec<Measured> = measured.iter().filter_map(|runs| runs.first().cloned()).collect();
        if let Err(error) = std::fs::write(file, plot(&first)) {
            output::note(format_args!("error: cannot write {}: {error}", file.display()));
            return Exit::Failed;
        }
    }
    let tables: Vec<Vec<Table>> = measured.iter().map(|runs| runs.iter().map(Measured::table).collect()).collect();
    if globals.json {
        let rows = tables.iter().flatten().zip(measured.iter().flatten());
        let rows = rows.map(|(table, run)| Row { seed: run.seed, table }).collect();
        let seeds = [args.seed, args.seed.saturating_add(args.seeds - 1)];
        output::json_line(&Said { scenario: &scenario.name, seeds, rows });
    } else {
        print(&scenario, &tables);
    }
    Exit::Done
}

fn read(place: &Path) -> Result<Scenario, Exit> {
    let known = place.to_str().and_then(|name| Some((name, shipped(name)?)));
    let parsed = match known {
        Some((name, text)) => Scenario::parse(name, text),
        None => match Text::read(place) {
            Ok(Text { name, text }) => Scenario::parse(&name, &text),
            Err(error) => {
                output::error(&error);
                output::note("`backstop simulate --list` names the scenarios that ship");
                return Err(Exit::Config);
            }
        },
    };
    parsed.map_err(|error| {
        output::error(&error);
        Exit::Config
    })
}

/// What is compared: the policy first, then others, then what others do.
fn policies(args: &SimulateArgs, globals: &Globals, scenario: &Scenario) -> Result<Vec<Policy>, Exit> {
    let load = |file: &PathBuf| -> Result<RecoveryConfig, Exit> {
        config::load(&Globals { config: vec![file.clone()], ..globals.clone() })
    };
    let own = match &args.policy {
        Some(file) => load(file)?,
        None => scenario.policy.clone(),
    };
    let mut all = vec![Policy::engine("backstop", own)];
    for file in &args.compare {
        all.push(Policy::engine(file.display().to_string(), load(file)?));
    }
    if !args.no_baselines {
        all.extend(Policy::baselines());
    }
    Ok(all)
}

fn progress(runs: u64, globals: &Globals) -> ProgressBar {
    if globals.quiet || globals.json || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg} ({elapsed})");
    ProgressBar::new(runs).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

fn print(scenario: &Scenario, tables: &[Vec<Table>]) {
    output::line(format_args!(
        "{}: {} sessions, {} runs of each policy",
        scenario.name,
        scenario.sessions,
        tables.first().map_or(0, Vec::len)
    ));
    let head = [
        "policy",
        "worked",
        "recovered",
        "recover p50",
        "p95",
        "calls/turn",
        "in trouble",
        "in flight",
        "2nd trips",
        "moving p95",
        "least",
        "fairness",
    ];
    let rows: Vec<_> = tables.iter().filter_map(|runs| row(runs)).collect();
    output::line(table(head, &rows).trim_end());
}

/// The middle of each figure.
fn row(runs: &[Table]) -> Option<[String; 12]> {
    let middle = |figure: &dyn Fn(&Table) -> Option<f64>| {
        let mut figures: Vec<f64> = runs.iter().filter_map(figure).collect();
        figures.sort_by(f64::total_cmp);
        figures.get(figures.len() / 2).copied()
    };
    let shown = |figure: Option<f64>, digits: usize, unit: &str| match figure {
        None => "-".to_owned(),
        Some(figure) if figure.is_infinite() => "never".to_owned(),
        Some(figure) => format!("{figure:.digits$}{unit}"),
    };
    Some([
        runs.first()?.policy.clone(),
        shown(middle(&|run| Some(run.worked as f64)), 0, ""),
        shown(middle(&|run| run.recovered_percent), 1, " %"),
        shown(middle(&|run| Some(run.recover_p50)), 1, " s"),
        shown(middle(&|run| Some(run.recover_p95)), 1, " s"),
        shown(middle(&|run| Some(run.calls_per_turn)), 3, ""),
        shown(middle(&|run| Some(run.calls_in_trouble as f64)), 0, ""),
        shown(middle(&|run| Some(run.in_flight as f64)), 0, ""),
        shown(middle(&|run| Some(run.second_trips as f64)), 0, ""),
        shown(middle(&|run| run.moving_p95), 1, " s"),
        shown(middle(&|run| run.moving_bound), 1, " s"),
        shown(middle(&|run| Some(run.fairness)), 3, ""),
    ])
}
