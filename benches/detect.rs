//! What detection costs beside a bare pass over the same text, over inputs of 20 B to 20 kB.
//!
//! Timings depend on the machine; the ratios printed at the end are taken within one run.

use std::hint::black_box;
use std::time::{Duration, Instant};

use backstop::Report;
use backstop::failure::PatternRegistry;
use backstop::failure::measure::{NOW, Prepared, RuleByRule};
use criterion::Criterion;
use memchr::memmem::Finder;

const CORPUS: &str = include_str!("../tests/data/corpus/dev.jsonl");
/// Ordinary lines of a log around a failure, as long texts have them.
const FILLER: &str = "2025-06-03 worker started, reading the queue; 12 items done in 48 ms, nothing to report\n";
const LONG: usize = 20_000;

/// Each input of the corpus as it is, and each that is a text or holds a message also in a long log.
fn reports() -> Vec<Report> {
    let mut all = Vec::new();
    for line in CORPUS.lines() {
        let case: serde_json::Value = serde_json::from_str(line).expect("the corpus is JSON");
        let input = &case["input"];
        all.push(Report::from_value(input.clone()));
        let text = input.as_str().or_else(|| input["message"].as_str()).or_else(|| input["error"]["message"].as_str());
        if let Some(text) = text {
            let half = FILLER.repeat(LONG.saturating_sub(text.len()) / FILLER.len() / 2);
            all.push(Report::text(format!("Error: {text}\n{half}{half}")));
            all.push(Report::from_value(serde_json::json!({"error": {"message": format!("{half}{text}\n{half}")}})));
        }
    }
    all
}

/// The median of several measurements of one call, in nanoseconds.
fn time<T>(mut call: impl FnMut() -> T) -> f64 {
    const ROUNDS: usize = 7;
    black_box(call());
    let started = Instant::now();
    let mut repeats = 0_u32;
    while started.elapsed() < Duration::from_micros(50) {
        black_box(call());
        repeats += 1;
    }
    let mut rounds: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let started = Instant::now();
            for _ in 0..repeats {
                black_box(call());
            }
            started.elapsed().as_nanos() as f64 / f64::from(repeats)
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    rounds[ROUNDS / 2]
}

#[derive(Default)]
struct Row {
    bytes: usize,
    memmem: f64,
    literals: f64,
    scan: f64,
    gate: f64,
    evidence: f64,
    detect: f64,
    one_by_one: f64,
}

fn main() {
    let started = Instant::now();
    let registry = PatternRegistry::new();
    black_box(registry.detect_first(&Report::text("503 Service Unavailable"), NOW));
    println!("the first detection, which compiles what is built in: {:?}", started.elapsed());
    let short = Report::text("503 Service Unavailable").with_status(503);

    let mut criterion = Criterion::default().configure_from_args();
    criterion.bench_function("detect 503", |bench| bench.iter(|| registry.detect_first(black_box(&short), NOW)));
    criterion.final_summary();

    let each = RuleByRule::new();
    let finder = Finder::new("a needle that is nowhere");
    let rows: Vec<Row> =
        reports().iter().chain([&short]).map(|report| measure(report, &registry, &each, &finder)).collect();
    table(&rows);
}

fn measure(report: &Report, registry: &PatternRegistry, each: &RuleByRule, finder: &Finder<'_>) -> Row {
    let prepared = Prepared::new(report);
    assert_eq!(prepared.winner(), each.winner(&prepared), "{report}");
    let row = Row {
        bytes: prepared.text().len(),
        memmem: time(|| finder.find(prepared.text().as_bytes())),
        literals: time(|| prepared.literals()),
        scan: time(|| prepared.scan()),
        gate: time(|| prepared.gate()),
        evidence: time(|| Prepared::new(report)),
        detect: time(|| registry.detect_first(report, NOW)),
        one_by_one: time(|| each.winner(&prepared)),
    };
    if std::env::var_os("DETECT_EACH").is_some() {
        println!(
            "{} B: literals {:.0}, scan {:.0}, gate {:.0}, evidence {:.0}, detect {:.0}, rule by rule {:.0}: {report}",
            row.bytes, row.literals, row.scan, row.gate, row.evidence, row.detect, row.one_by_one
        );
    }
    row
}

fn table(rows: &[Row]) {
    println!("\n| inputs | memmem ns | literals | scan | gate | evidence | detect_first | rule by rule |");
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    let line = |name: &str, chosen: &[&Row]| {
        let sum = |of: fn(&Row) -> f64| chosen.iter().map(|row| of(row)).sum::<f64>();
        let mean = |of: fn(&Row) -> f64| sum(of) / chosen.len().max(1) as f64;
        println!(
            "| {name} ({}) | {:.0} | {:.0} | {:.0} | {:.0} | {:.0} | {:.0} | {:.0} |",
            chosen.len(),
            mean(|row| row.memmem),
            mean(|row| row.literals),
            mean(|row| row.scan),
            mean(|row| row.gate),
            mean(|row| row.evidence),
            mean(|row| row.detect),
            mean(|row| row.one_by_one)
        );
        let median = |of: fn(&Row) -> f64| {
            let mut all: Vec<f64> = chosen.iter().map(|row| row.detect / of(row)).collect();
            all.sort_by(f64::total_cmp);
            all.get(all.len() / 2).copied().unwrap_or(f64::NAN)
        };
        println!(
            "| detect_first × (of sums; median) | {:.1}; {:.1} | {:.2}; {:.2} | | | | | {:.3}; {:.3} |",
            sum(|row| row.detect) / sum(|row| row.memmem),
            median(|row| row.memmem),
            sum(|row| row.detect) / sum(|row| row.literals),
            median(|row| row.literals),
            sum(|row| row.detect) / sum(|row| row.one_by_one),
            median(|row| row.one_by_one)
        );
    };
    let (long, short): (Vec<&Row>, Vec<&Row>) = rows.iter().partition(|row| row.bytes > 4_000);
    line("all", &rows.iter().collect::<Vec<_>>());
    line("up to 4 kB", &short);
    line("longer", &long);
    line("`503 Service Unavailable`", &rows.last().into_iter().collect::<Vec<_>>());
}
