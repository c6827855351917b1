//! Disks that are full, forbidden or gone while an engine recovers: it goes on in memory, says
//! so, knows whose records were not durable, and catches up.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use backstop::state::FileStore;
use tracing::span;

use super::child::{behind, child, said, say, whole};
use super::load::{Effects, builder, run_once};

/// A wait that only a broken engine reaches.
const AMPLE: Duration = Duration::from_secs(60);
/// Recoveries after which a full disk has shown itself.
const ROUNDS: usize = 2_000;

/// Lives through one fault; the parent reads what it says.
#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
pub async fn live_through(kind: &str, dir: &Path) {
    let warnings = Warnings::install();
    let effects = Effects::of(dir);
    let engine = match builder(dir, &effects).spawn().await {
        Ok(engine) => engine,
        Err(error) => {
            let source = std::error::Error::source(&error).map(ToString::to_string);
            return say(format_args!("refused {error}: {}", source.unwrap_or_default()));
        }
    };
    say(format_args!("before {}", run_once(&engine, &effects, 0).await));
    begin(kind, dir);
    let mut rounds = 0;
    while rounds < ROUNDS && run_once(&engine, &effects, rounds % 2).await {
        rounds += 1;
    }
    say(format_args!("during {}", rounds < ROUNDS));
    let outage = engine.last_outage();
    let named = outage.as_ref().map_or(0, |outage| outage.sessions.len());
    say(format_args!("named {named} metric {}", engine.metrics().sessions_not_durable));
    // It fails for some more tries, and says so once.
    tokio::time::sleep(Duration::from_millis(1_200)).await;
    end(kind, dir);
    let began = Instant::now();
    while engine.last_outage().is_some_and(|outage| outage.until.is_none()) && began.elapsed() < AMPLE {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let outage = engine.last_outage().unwrap();
    say(format_args!("healed {} {}", outage.until.is_some(), outage.not_durable.len()));
    say(format_args!("after {}", run_once(&engine, &effects, 2).await));
    let metrics = engine.settled_metrics().await.unwrap();
    say(format_args!("refused_writes {}", metrics.refused_writes > 0));
    say(format_args!("shutdown {}", engine.shutdown().await.durable));
    say(format_args!("warnings {}", warnings.0.load(Ordering::SeqCst)));
    let look = FileStore::inspect(dir.join("state")).unwrap();
    let recoveries = |name: &str| {
        let record = look.load(&name.try_into().unwrap());
        record.map_or(0, |record| record.read().unwrap().unwrap().episodes())
    };
    // Whatever was told while the disk failed is there now.
    let told = rounds / 2 + 1;
    say(format_args!("kept {}", recoveries("s0") as usize > told && recoveries("s2") == 1));
}

fn begin(kind: &str, dir: &Path) {
    let state = dir.join("state");
    match kind {
        "full" => {
            let filler = vec![0; 1 << 20];
            let _ = fs::write(state.join("filler"), filler);
        }
        "forbidden" => fs::set_permissions(&state, fs::Permissions::from_mode(0o000)).unwrap(),
        "removed" => {
            fs::remove_dir_all(&state).unwrap();
            // A file in its place: it cannot be made anew.
            fs::write(&state, "").unwrap();
        }
        other => panic!("no fault {other}"),
    }
}

fn end(kind: &str, dir: &Path) {
    let state = dir.join("state");
    match kind {
        "full" => fs::remove_file(state.join("filler")).unwrap(),
        "forbidden" => fs::set_permissions(&state, fs::Permissions::from_mode(0o700)).unwrap(),
        _ => fs::remove_file(&state).unwrap(),
    }
}

/// Counts what is said aloud of the disk.
struct Warnings(&'static AtomicUsize);

impl Warnings {
    fn install() -> Self {
        let counter = Box::leak(Box::default());
        tracing::subscriber::set_global_default(Self(counter)).unwrap();
        Self(counter)
    }
}

impl tracing::Subscriber for Warnings {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() == tracing::Level::ERROR && metadata.target().starts_with("backstop")
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, _: &tracing::Event<'_>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

#[track_caller]
fn expect_survival(kind: &str, (said, ended_well): (Vec<String>, bool)) {
    let told: Vec<&str> = said.iter().map(String::as_str).filter(|line| !line.starts_with("told ")).collect();
    let numbers = |line: &&str| {
        line.strip_prefix("named ")?.split_once(" metric ").map(|(named, now)| (named.parse(), now.parse()))
    };
    let (named, now): (Result<usize, _>, Result<u64, _>) = told.iter().find_map(numbers).unwrap();
    // A smaller record may find room on a disk that just refused a larger one.
    let is_named = (1..=2).contains(&named.unwrap()) && (kind == "full" || now.unwrap() > 0);
    assert!(is_named, "{kind}: {told:?}");
    let rest: Vec<&str> = told.into_iter().filter(|line| !line.starts_with("named ")).collect();
    let expected = [
        "before true",
        "during true",
        "healed true 0",
        "after true",
        "refused_writes true",
        "shutdown true",
        "warnings 1",
        "kept true",
    ];
    assert_eq!(rest, expected, "{kind}");
    assert!(ended_well);
}

/// A scene that only root can set.
fn as_root(kind: &str) -> bool {
    let is_root = fs::metadata("/proc/self").is_ok_and(|meta| std::os::unix::fs::MetadataExt::uid(&meta) == 0);
    let can = is_root && Command::new("unshare").args(["-m", "true"]).status().is_ok_and(|status| status.success());
    if !can {
        eprintln!("skipped: `{kind}` needs root and unshare");
    }
    can
}

/// A child whose state directory is a small disk of its own.
fn on_a_disk(options: &str, role: &str, dir: &Path) -> Command {
    fs::create_dir_all(dir.join("state")).unwrap();
    let script = format!("mount -t tmpfs -o mode=700,{options} tmpfs '{}' && exec \"$@\"", dir.join("state").display());
    behind("unshare", &["-m", "sh", "-c", &script, "sh"], role, dir)
}

#[test]
fn a_full_disk() {
    if as_root("full") {
        let dir = tempfile::tempdir().unwrap();
        expect_survival("full", whole(on_a_disk("size=256k", "fault full", dir.path())));
    }
}

#[test]
fn a_disk_that_is_read_only_or_without_inodes_at_the_start_is_refused_by_name() {
    if as_root("start") {
        for options in ["ro,size=1m", "size=1m,nr_inodes=2"] {
            let dir = tempfile::tempdir().unwrap();
            let (said, ended_well) = whole(on_a_disk(options, "fault full", dir.path()));
            let told = said.first().map(String::as_str).unwrap_or_default();
            assert!(told.starts_with("refused cannot open the recovery state: cannot "), "{options}: {said:?}");
            assert!(told.contains("/state"), "{told}");
            assert!(ended_well);
        }
    }
}

#[test]
fn a_directory_that_is_removed() {
    let dir = tempfile::tempdir().unwrap();
    expect_survival("removed", whole(child("fault removed", dir.path())));
}

#[test]
fn a_directory_that_becomes_forbidden() {
    let dir = tempfile::tempdir().unwrap();
    let role = "fault forbidden";
    let is_root = fs::metadata("/proc/self").is_ok_and(|meta| std::os::unix::fs::MetadataExt::uid(&meta) == 0);
    let outcome = if is_root {
        std::os::unix::fs::chown(dir.path(), Some(65_534), Some(65_534)).unwrap();
        let nobody = ["--reuid=65534", "--regid=65534", "--clear-groups"];
        let mut command = behind("setpriv", &nobody, role, dir.path());
        let Ok(mut started) = command.spawn() else { return eprintln!("skipped: no setpriv") };
        let said: Vec<String> = said(&mut started).collect();
        if said.is_empty() {
            return eprintln!("skipped: nobody may not run the test program");
        }
        (said, started.wait().unwrap().success())
    } else {
        whole(child(role, dir.path()))
    };
    expect_survival("forbidden", outcome);
}

/// Too few descriptors: a new segment cannot be opened, and what is open goes on.
#[test]
fn few_descriptors_stop_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = behind("prlimit", &["--nofile=24"], "recover 1", dir.path());
    let Ok(mut child) = command.spawn() else { return eprintln!("skipped: no prlimit") };
    let mut lines = said(&mut child);
    let told: Vec<String> = lines.by_ref().take(200).collect();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(told.len(), 200, "it stopped: {told:?}");
    assert!(told.iter().skip(1).all(|line| line.ends_with("true")), "{told:?}");
}
