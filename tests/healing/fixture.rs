//! Engines under paused time.

use backstop::actors::TokioClock;
use backstop::engine::EngineBuilder;
use backstop::healing::Failure;
use backstop::{RecoveryConfig, RecoveryEngine, Report, Runner, SessionId, Timestamp};

pub const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);

pub fn id() -> SessionId {
    SessionId::new("loop").unwrap()
}

pub fn builder(yaml: &str) -> EngineBuilder {
    let config = match yaml {
        "" => RecoveryConfig::default(),
        text => {
            let loaded = RecoveryConfig::parse("test.yaml", text).unwrap();
            assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
            loaded.config
        }
    };
    let builder = RecoveryEngine::builder().config(config).in_memory();
    builder.runner(Runner::Inline).clock(TokioClock::starting_at(START)).seed(7)
}

pub async fn engine(yaml: &str) -> RecoveryEngine {
    builder(yaml).spawn().await.unwrap()
}

/// Its words tell failures of one kind apart.
pub fn failed(words: &str) -> Failure {
    Report::text(words).into()
}

pub fn unavailable() -> Failure {
    failed("503 Service Unavailable")
}
