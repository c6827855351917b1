//! A self-healing loop that repairs a small broken project in a temporary directory.
//!
//! The project is a shell library with four bugs and a test for each; every repair edits the file, runs a real
//! command and is verified by the tests. On the way a command is flaky, the disk is full once (writing to
//! `/dev/full` where there is one), an edit does not match, and the verifier says no to a wrong repair.
//!
//! ```text
//! cargo run --example self_healing_loop
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use backstop::healing::{Failure, LoopEvent, LoopEvents, LoopReport, SelfHealingLoop, Step};
use backstop::policy::config::ConfigBuilder;
use backstop::{RecoveryEngine, Report, SessionId, Turn};
use serde::{Deserialize, Serialize};

const BROKEN: &str = "add() { echo $(( $1 - $2 )); }\n\
                      double() { echo $(( $1 + 2 )); }\n\
                      greet() { echo \"helo $1\"; }\n\
                      last() { echo \"$1\"; }\n";

/// The tests: what is called, and what it has to answer.
const TESTS: [(&str, &str); 4] =
    [("add 2 3", "5"), ("double 7", "14"), ("greet world", "hello world"), ("last a b c", "c")];

/// The repairs as an agent would propose them: the text to find, and what takes its place.
const REPAIRS: [(&str, &str); 4] = [
    ("$1 - $2", "$1 + $2"),
    ("$1 + 2", "$1 * 2"),
    ("helo", "hello"),
    ("last() { echo \"$1\"; }", "last() { echo \"${@: -1}\"; }"),
];

/// The disk of this example fills up once: then there is no room, until the agent works in another place.
const CONFIG: &str = "kinds:\n  disk_full:\n    chain: [{strategy: degrade}, {strategy: escalate}]\n";

/// What is kept of the work: the file itself is part of it, so a redo and a rollback take edits back.
#[derive(Clone, Serialize, Deserialize)]
struct Project {
    source: String,
    repaired: usize,
    log: Vec<String>,
}

/// What goes wrong outside of the state, each once.
#[derive(Default)]
struct Trouble {
    tries: BTreeMap<&'static str, u32>,
}

impl Trouble {
    fn once(&mut self, what: &'static str) -> bool {
        let tries = self.tries.entry(what).or_default();
        *tries += 1;
        *tries == 1
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = std::env::temp_dir().join(format!("backstop-healing-{}", std::process::id()));
    fs::create_dir_all(&dir)?;
    let config = ConfigBuilder::new().yaml("example.yaml", CONFIG).build()?.config;
    let engine = RecoveryEngine::builder().config(config).state_dir(dir.join("state")).spawn().await?;

    let broken = Project { source: BROKEN.into(), repaired: 0, log: vec![] };
    let healing = SelfHealingLoop::new(&engine, SessionId::new("repair")?, broken)
        .with_alternative()
        .remaining(|project: &Project| (REPAIRS.len() - project.repaired) as u64);
    let checkpoints = healing.checkpoints();
    let watching = tokio::spawn(show(healing.events()));
    let mut trouble = Trouble::default();
    let file = dir.join("lib.sh");

    let report = healing
        .run_verified(
            async |_, project: &mut Project, turn: &Turn| {
                let next = project.repaired;
                if next == REPAIRS.len() {
                    return Ok(Step::Done(failing(&file)?.len()));
                }
                if next == 2 {
                    // Risky work ahead: a way back with a name.
                    checkpoints.save("two-repaired", project).await?;
                }
                repair(&file, project, turn, &mut trouble)?;
                Ok(Step::Continue)
            },
            async |_, project| {
                let failing = failing(&file)?;
                let broken_again: Vec<&str> = TESTS[..project.repaired]
                    .iter()
                    .map(|(call, _)| *call)
                    .filter(|call| failing.contains(call))
                    .collect();
                match broken_again.is_empty() {
                    true => Ok(()),
                    false => Err(Failure::said_no(format!(
                        "{} tests failed: {}",
                        broken_again.len(),
                        broken_again.join(", ")
                    ))),
                }
            },
        )
        .await?;
    watching.await?;
    sum_up(&report);
    engine.shutdown().await;
    fs::remove_dir_all(&dir)?;
    Ok(())
}

/// One repair: the project's next bug.
fn repair(file: &Path, project: &mut Project, turn: &Turn, trouble: &mut Trouble) -> Result<(), Failure> {
    let next = project.repaired;
    let (find, mut replace) = REPAIRS[next];
    if next == 0 && trouble.once("flaky") {
        // A package mirror that is down for a moment.
        run("echo 'curl: (7) Failed to connect to mirror.example port 443: Connection refused' >&2; exit 7")?;
    }
    if next == 1 && !turn.degraded {
        write(&full_disk(file), "the build's cache")?;
    }
    if next == 2 && trouble.once("verifier") {
        // The agent's first idea is wrong, and the verifier notices.
        replace = "hullo";
    }
    let find = if next == 3 && trouble.once("edit") { "last () {" } else { find };
    if !project.source.contains(find) {
        return Err(Report::text(format!("String to replace not found in file.\nString: {find}"))
            .with_tool("edit")
            .into());
    }
    project.source = project.source.replacen(find, replace, 1);
    write(file, &project.source)?;
    project.repaired += 1;
    project.log.push(format!("{find} -> {replace}"));
    Ok(())
}

/// A place where every write fails for want of room.
fn full_disk(file: &Path) -> PathBuf {
    let full = Path::new("/dev/full");
    if full.exists() { full.to_owned() } else { file.with_extension("cache") }
}

fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).open(path)?;
    file.write_all(text.as_bytes())?;
    file.flush()
}

fn run(script: &str) -> Result<String, Failure> {
    let output = Command::new("bash").args(["-c", script]).output()?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match output.status.success() {
        true => Ok(text(&output.stdout)),
        false => Err(Report::from_run(output.status.code(), None, text(&output.stdout), text(&output.stderr)).into()),
    }
}

/// The tests that fail now.
fn failing(file: &Path) -> Result<Vec<&'static str>, Failure> {
    let mut failing = vec![];
    for (call, wanted) in TESTS {
        if run(&format!("source '{}'; {call}", file.display()))?.trim() != wanted {
            failing.push(call);
        }
    }
    Ok(failing)
}

/// A live view: a line for everything that happens.
async fn show(mut events: LoopEvents) {
    let began = Instant::now();
    while let Some(event) = events.next().await {
        let line = match event {
            LoopEvent::Started { begun: 0, .. } => "started".to_owned(),
            LoopEvent::Started { begun, from } => format!("goes on after iteration {begun}, from {from:?}"),
            LoopEvent::Iteration { iteration } => format!("[{iteration}] begins"),
            LoopEvent::Redo { iteration, redo } => format!("[{iteration}] redo {redo}"),
            LoopEvent::Failed { iteration, kind, domain, message } => {
                let kind = kind.map_or_else(|| "unknown".to_owned(), |kind| kind.to_string());
                format!("[{iteration}] FAILED  {kind} ({domain}): {}", message.lines().next().unwrap_or_default())
            }
            LoopEvent::Completed { iteration, degraded: false } => format!("[{iteration}] works"),
            LoopEvent::Completed { iteration, degraded: true } => format!("[{iteration}] works, degraded"),
            LoopEvent::Checkpoint { name } => format!("      checkpoint {name}"),
            LoopEvent::RolledBack { name } => format!("      rolled back to {name}"),
            LoopEvent::Ended { how } => {
                println!("{:>6.1} s  ended: {how}", began.elapsed().as_secs_f64());
                return;
            }
            other => format!("      {other:?}"),
        };
        println!("{:>6.1} s  {line}", began.elapsed().as_secs_f64());
    }
}

fn sum_up(report: &LoopReport<Project, usize>) {
    println!("\n{} iterations, {} tries, {} failures", report.iterations, report.tries, report.failures());
    for (domain, count) in &report.failures_by_domain {
        println!("  {:<12} {count}", domain.as_str());
    }
    println!(
        "recoveries: {} of {} ({:.0} %)",
        report.recoveries.successful,
        report.recoveries.total,
        100.0 * report.recoveries.rate()
    );
    for (action, tally) in &report.recoveries.by_action {
        println!("  {action:<18} {} of {}", tally.successful, tally.total);
    }
    println!("degraded {}, skipped {}", report.degraded.len(), report.skipped.len());
    println!(
        "tests that fail at the end: {}",
        report.output.map_or_else(|| "unknown".to_owned(), |count| count.to_string())
    );
    println!("final state: {} repaired\n{}", report.state.repaired, report.state.source);
}
