//! Real commands that fail, from their first start to the report.
#![cfg(all(unix, feature = "cli"))]
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use backstop::client::command::{
    ChildOutcome, ChildSpec, Control, FailureRules, Invocation, Judgement, Limits, Outputs, judge, run,
};
use backstop::{SessionId, Turn};

fn sh(script: &str) -> ChildSpec {
    ChildSpec::new("sh", ["-c", script])
}

async fn outcome(spec: ChildSpec) -> ChildOutcome {
    run(&spec, Outputs::discard(), Control::new().watch()).await.unwrap()
}

fn failed(outcome: &ChildOutcome) -> backstop::Report {
    match judge(&FailureRules::default(), outcome) {
        Judgement::Failed(report) => *report,
        other => panic!("{other:?}"),
    }
}

/// Fails as a real provider does until its third run, then works.
#[tokio::test]
async fn a_command_is_run_again_until_it_works_and_each_failure_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let error = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    let script = format!(
        "echo run >> runs; [ $(wc -l < runs) -ge 3 ] && echo \"try $BACKSTOP_ATTEMPT on $0\" && exit 0; \
         echo 'API Error: 529 {error}' >&2; exit 1"
    );
    let mut turn = Turn::first(SessionId::new("night").unwrap());
    loop {
        let invocation = Invocation::new(&turn).with_model("sonnet");
        let args = invocation.arguments(&["-c".into(), script.clone().into(), "{model}".into()]);
        let spec = ChildSpec { directory: Some(folder.path().into()), ..ChildSpec::new("sh", args) };
        let outcome = outcome(spec.with_env(invocation.environment())).await;
        if turn.redo == 2 {
            assert_eq!(judge(&FailureRules::default(), &outcome), Judgement::Worked);
            assert_eq!(outcome.stdout.text(), "try 3 on sonnet\n");
            return;
        }
        let report = failed(&outcome);
        assert_eq!(report.exit_code, Some(1));
        assert_eq!(report.value["stderr"], format!("API Error: 529 {error}\n"));
        turn.redo += 1;
    }
}

#[tokio::test]
async fn a_hang_is_reported_as_a_timeout_and_a_kill_as_its_signal() {
    let limits = Limits { idle_timeout: Some(Duration::from_millis(100)), ..Limits::default() };
    let report = failed(&outcome(sh("sleep 1000").with_limits(limits)).await);
    assert_eq!((&report.value["code"], report.signal.as_deref()), (&"timeout".into(), Some("SIGTERM")));
    assert_eq!(report.value["message"], "no output for 0.1 s: ended by backstop");
    let report = failed(&outcome(sh("kill -KILL $$")).await);
    assert_eq!((report.exit_code, report.signal.as_deref()), (None, Some("SIGKILL")));
}
