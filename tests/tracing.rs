//! What a host's log shows of an episode, and what never gets into it.
#![allow(clippy::unwrap_used)]

use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use backstop::{Answer, RecoveryConfig, RecoveryEngine, Report, Runner, SessionId};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Keeps everything at every level.
#[derive(Clone, Default)]
struct Capture(Arc<Mutex<Captured>>);

#[derive(Default)]
struct Captured {
    spans: Vec<String>,
    entered: Vec<u64>,
    lines: Vec<String>,
}

struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0 += &format!(" {}={value:?}", field.name());
    }
}

impl Subscriber for Capture {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut fields = Fields(format!("{} {}", span.metadata().level(), span.metadata().name()));
        span.record(&mut fields);
        let mut captured = self.0.lock().unwrap();
        captured.spans.push(fields.0);
        Id::from_u64(captured.spans.len() as u64)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields(String::new());
        event.record(&mut fields);
        let mut captured = self.0.lock().unwrap();
        let span = captured.entered.last().map(|id| captured.spans[*id as usize - 1].clone()).unwrap_or_default();
        captured.lines.push(format!("{}{} in {span}", event.metadata().level(), fields.0));
    }

    fn enter(&self, span: &Id) {
        self.0.lock().unwrap().entered.push(span.into_u64());
    }

    fn exit(&self, _: &Id) {
        self.0.lock().unwrap().entered.pop();
    }
}

const SECRET: &str = "sk-ant-api03-a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5";

#[tokio::test]
async fn an_episode_is_a_span_its_decisions_are_events_and_no_secret_is_in_them() {
    let capture = Capture::default();
    let guard = tracing::subscriber::set_default(capture.clone());
    let yaml = "known_strategies: [own, panics]\nsession_error: [panics, own]\n";
    let config = RecoveryConfig::parse("test.yaml", yaml).unwrap().config;
    let own = |_| async { Answer::abort(format!("refused: {SECRET}")) };
    let panics = |_| async { panic!("with {SECRET}") };
    let engine = RecoveryEngine::builder().config(config).in_memory().runner(Runner::Inline);
    let engine = engine.strategy_fn("own", own).strategy_fn("panics", panics).spawn().await.unwrap();
    let report = Report::text(format!("503 Service Unavailable, key {SECRET}"));
    engine.report(&SessionId::new("s-1").unwrap(), report).await.unwrap();
    engine.report(&SessionId::new(format!("a {SECRET}")).unwrap(), Report::text(SECRET)).await.unwrap();
    engine.shutdown().await;
    drop(guard);

    let captured = capture.0.lock().unwrap();
    let span = captured.spans.iter().find(|span| span.starts_with("INFO episode ")).unwrap();
    for field in ["session=\"s-1\"", "episode=1", "kind=\"service_unavailable\"", "category=\"session_error\""] {
        assert!(span.contains(field), "no {field} in {span}");
    }
    let inside: Vec<&String> = captured.lines.iter().filter(|line| line.contains(" in INFO episode ")).collect();
    for start in [
        "DEBUG seq=0 decision=\"chain_chosen\"",
        "DEBUG seq=1 decision=\"answered\" step=0 strategy=\"panics\" attempt=1 status=\"next_strategy\"",
        "DEBUG seq=2 decision=\"answered\" step=1 strategy=\"own\" attempt=1 status=\"abort\"",
        "INFO seq=2 decision=\"ended\" verdict=\"aborted\"",
    ] {
        assert!(inside.iter().any(|line| line.starts_with(start)), "no {start} in {inside:#?}");
    }
    let all = captured.spans.iter().chain(&captured.lines);
    let leaks: Vec<&String> = all.filter(|line| line.contains("a1B2c3D4")).collect();
    assert_eq!(leaks, Vec::<&String>::new());
}
