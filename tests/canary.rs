//! Secrets planted in everything that a host gives are found in nothing that is kept, shown or passed on.
#![allow(clippy::unwrap_used)]

use std::fmt::Debug;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use backstop::actors::TokioClock;
use backstop::policy::Remedy;
use backstop::state::to_prometheus;
use backstop::{Answer, LaneKey, RecoveryConfig, RecoveryEngine, Report, Runner, SessionId, Timestamp};
use serde_json::{Value, json};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// (the secret as it is planted, the part that must be nowhere).
const CANARIES: [(&str, &str); 6] = [
    ("sk-ant-api03-cAnArY1a2B3c4D5e6F7g8H9i0J1k2L3m4", "cAnArY1a2"),
    ("ghp_cAnArY2b3C4d5E6f7G8h9I0j1K2l3M4n5O6p", "cAnArY2b3"),
    ("Authorization: Bearer cAnArY3c4D5e6F7g8H9i0J1k2L3m4N5", "cAnArY3c4"),
    ("https://user:cAnArY4d5E6f7G8@db.example/x?api_key=cAnArY4d5E6f7", "cAnArY4d5"),
    ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.cAnArY5e6F7g8H9i0J1k2L3m4N5o6", "cAnArY5e6"),
    ("SERVICE_API_KEY=cAnArY6f7G8h9I0j1K2l3M4n5", "cAnArY6f7"),
];

fn assert_clean(what: &str, text: &str) {
    for (_, part) in CANARIES {
        let at = text.find(part);
        let around = at.map(|at| text[at.saturating_sub(80)..].chars().take(200).collect::<String>());
        assert!(at.is_none(), "{what} holds {part}: …{}…", around.unwrap_or_default());
    }
}

/// Every file below a directory, and its name.
fn assert_clean_files(dir: &Path) -> usize {
    let mut count = 0;
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        assert_clean("a file's name", &path.display().to_string());
        if path.is_dir() {
            count += assert_clean_files(&path);
        } else {
            let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
            assert_clean(&path.display().to_string(), &text);
            count += 1;
        }
    }
    count
}

/// Failures with a secret wherever a host can put one.
fn reports(secret: &str) -> Vec<Report> {
    vec![
        Report::text(format!("503 Service Unavailable: {secret}")),
        Report::text(format!("{secret} 429 Too Many Requests\nretry after 1s {secret}")),
        Report::new(json!({"error": {"message": format!("overloaded {secret}"), "cause": {"message": secret,
            "headers": {"x-request": secret, secret: "1"}}, "code": secret}, "status": 529})),
        Report::from_response(503, [("x-debug", secret), ("retry-after", secret)], format!("upstream: {secret}")),
        Report::from_run(Some(1), Some(secret), format!("out {secret}"), format!("Error: 502 Bad Gateway {secret}")),
        Report::from_error(&std::io::Error::other(format!("connection reset by peer {secret}"))),
        Report::text("503 overloaded").with_model(secret).with_provider(secret).with_tool(secret).with_signal(secret),
        Report::text("503 overloaded").with_lane(LaneKey::new(secret)),
        Report::new(json!({"tool": secret, "state": {"status": "error", "error": format!("tool failed: {secret}")}})),
        Report::text(secret),
        Report::new(json!({secret: secret})),
    ]
}

#[derive(Clone, Default)]
struct Capture(Arc<Mutex<String>>);

struct Fields<'a>(&'a mut String);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        *self.0 += &format!(" {}={value:?}", field.name());
    }
}

impl Subscriber for Capture {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("backstop")
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        span.record(&mut Fields(&mut self.0.lock().unwrap()));
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        values.record(&mut Fields(&mut self.0.lock().unwrap()));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut Fields(&mut self.0.lock().unwrap()));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

const YAML: &str = "
known_strategies: [own, switches, panics, gives_up]
session_error:
  - {strategy: own}
  - {strategy: panics}
  - {strategy: switches}
  - {strategy: gives_up}
";

#[tokio::test(start_paused = true)]
async fn an_engine_keeps_shows_and_passes_on_no_secret() {
    let capture = Capture::default();
    let guard = tracing::subscriber::set_default(capture.clone());
    let dir = tempfile::tempdir().unwrap();
    let mut seen = String::new();
    for (number, (secret, _)) in CANARIES.into_iter().enumerate() {
        let config = RecoveryConfig::parse("test.yaml", YAML).unwrap().config;
        let own = move |attempt: backstop::Attempt| async move {
            attempt.inject(format!("remember {secret}"));
            match attempt.number() {
                1 => Answer::retry(std::time::Duration::from_millis(1), format!("because {secret}")),
                _ => Answer::next_strategy(format!("no more {secret}")),
            }
        };
        let panics = move |_| async move { panic!("panicked with {secret}") };
        let switches = move |_| async move {
            // A model's name is what the host must switch to: the one text of a strategy that stays as it is.
            Answer::success_with(format!("to {secret}"), Remedy::SwitchModel { model: "mini".into() })
        };
        let gives_up = move |_| async move { Answer::escalate(format!("a person must see {secret}")) };
        let engine = RecoveryEngine::builder().config(config).runner(Runner::Inline).state_dir(dir.path());
        let engine = engine.clock(TokioClock::starting_at(Timestamp::from_millis(1_700_000_000_000)));
        let engine = engine.strategy_fn("own", own).strategy_fn("panics", panics).strategy_fn("switches", switches);
        let engine = engine.strategy_fn("gives_up", gives_up).spawn().await.unwrap();
        let mut events = engine.events();
        for (at, report) in reports(secret).into_iter().enumerate() {
            seen += &format!("{report} {report:?}\n");
            let id = SessionId::new(format!("s-{number}-{at}")).unwrap();
            let detection = engine.classify(report.clone()).await.unwrap();
            seen += &serde_json::to_string(&detection.failure()).unwrap();
            let done = engine.session(id.clone()).run(async |turn: &backstop::Turn| {
                let injections: Vec<&str> = turn.injections.iter().map(|text| text.as_str()).collect();
                assert_clean("a turn's injections", &format!("{injections:?}"));
                Err::<(), _>(report.clone())
            });
            let stopped = done.await.expect_err("no turn works");
            let outcome = stopped.outcome().unwrap();
            seen += &serde_json::to_string(&**outcome).unwrap();
            seen += &format!("{} {:?}\n", outcome.verdict, outcome);
            seen += &format!("{:?}\n", engine.status(&id).await.unwrap());
        }
        let metrics = engine.settled_metrics().await.unwrap();
        seen += &serde_json::to_string(&metrics).unwrap();
        seen += &to_prometheus(&metrics);
        engine.shutdown().await;
        while let Some(event) = events.next().await {
            seen += &format!("{} {event:?}\n", serde_json::to_string(&event).unwrap());
        }
    }
    drop(guard);
    assert!(seen.contains("panicked") && seen.contains("a person must see"), "the strategies ran");
    assert_clean("what the engine tells", &seen);
    let traced = capture.0.lock().unwrap().clone();
    assert!(traced.contains("decision=\"answered\""), "{traced}");
    assert_clean("the trace", &traced);
    assert!(assert_clean_files(dir.path()) > 3);
}

fn backstop(dir: &Path, args: &[&str], stdin: &str) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_backstop"));
    command.current_dir(dir).args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.env("RUST_LOG", "trace");
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(stdin.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(!text.is_empty(), "{args:?} says nothing");
    text
}

const FAST: &str = "
session_error:
  - {strategy: retry, config: {max_retries: 1, backoff_ms: 1, jitter: false}}
  - abort
";

#[test]
fn the_command_line_keeps_and_shows_no_secret() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("fast.yaml"), FAST).unwrap();
    for (number, (secret, _)) in CANARIES.into_iter().enumerate() {
        for report in reports(secret) {
            let value = serde_json::to_string(&report.value).unwrap();
            for args in [
                &["classify", "-"][..],
                &["classify", "--json", "-"],
                &["explain", "-"],
                &["explain", "--json", "-"],
                &["explain", "--config", "fast.yaml", "-"],
            ] {
                assert_clean(&format!("{args:?}"), &backstop(dir.path(), args, &value));
            }
            if number > 0 {
                break;
            }
        }
        let session = format!("s{number}");
        let lines: String = reports(secret)
            .into_iter()
            .map(|report| format!("{}\n", json!({"op": "report", "session": session, "error": report.value})))
            .chain([
                format!("{}\n", json!({"op": secret, "session": session})),
                format!("{}\n", json!({"op": "declined", "session": session, "seq": 1, "reason": secret})),
                format!("{{\"op\": {secret}\n"),
            ])
            .collect();
        let said = backstop(dir.path(), &["-vv", "pipe", "--config", "fast.yaml"], &lines);
        assert!(said.contains("\"action\""), "{said}");
        assert_clean("pipe", &said);

        // The command's own words are its own to say: they are not looked at here.
        std::fs::write(dir.path().join("child.sh"), format!("echo '503 overloaded {secret}' >&2\nexit 1\n")).unwrap();
        let run = ["exec", "--config", "fast.yaml", "--session", &session, "--report", "report.json"];
        let run: Vec<&str> = ["-vv"].into_iter().chain(run).chain(["--", "sh", "child.sh"]).collect();
        let said = backstop(dir.path(), &run, "");
        let own = format!("503 overloaded {secret}\n");
        assert!(said.contains(&own), "the child is heard");
        assert_clean("exec", &said.replace(&own, ""));
        std::fs::remove_file(dir.path().join("child.sh")).unwrap();
        let report: Value = serde_json::from_slice(&std::fs::read(dir.path().join("report.json")).unwrap()).unwrap();
        assert!(report.is_object());
        for args in [
            &["sessions"][..],
            &["sessions", "--json"],
            &["sessions", "show", &session],
            &["sessions", "show", "--json", &session],
            &["sessions", "journal", &session],
        ] {
            assert_clean(&format!("{args:?}"), &backstop(dir.path(), args, ""));
        }
    }
    assert!(assert_clean_files(dir.path()) > 3);
}
