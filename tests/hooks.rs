//! What users' hooks are promised, shown with real shells.
#![cfg(all(unix, feature = "cli"))]
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Duration;

use backstop::client::command::{Hook, HookClient, HookError};
use backstop::failure::Kind;
use backstop::strategy::ClientError;
use backstop::{SessionClient, SessionId};

fn session() -> SessionId {
    SessionId::new("night; rm -rf run").unwrap()
}

#[tokio::test]
async fn each_remedy_calls_its_hook_with_what_it_needs_to_know() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let note = format!(
        "echo \"$BACKSTOP_REMEDY|$BACKSTOP_SESSION|$BACKSTOP_KIND|$BACKSTOP_PRESERVE|$BACKSTOP_MODEL|$BACKSTOP_CHECKPOINT\" >> '{}'",
        log.display()
    );
    let hook = |name: &str| Hook::new(name, note.as_str());
    let client = HookClient::new()
        .on_compact(hook("on-compact"))
        .on_summarize(hook("on-summarize"))
        .on_rollback(hook("on-rollback"));
    let session = session();
    client.compact(&session, &["the plan".into(), "the tests".into()]).await.unwrap();
    client.note_failure(&Kind::ContextOverflow);
    client.summarize(&session, Some("haiku")).await.unwrap();
    client.rollback(&session, Some("c3")).await.unwrap();
    let said = std::fs::read_to_string(log).unwrap();
    let expected = "compact|night; rm -rf run||the plan\nthe tests||\n\
                    summarize|night; rm -rf run|context_overflow||haiku|\n\
                    rollback|night; rm -rf run|context_overflow|||c3\n";
    assert_eq!(said, expected);
}

#[tokio::test]
async fn what_has_no_hook_is_unsupported() {
    let (client, session) = (HookClient::new(), session());
    assert!(matches!(client.compact(&session, &[]).await, Err(ClientError::Unsupported)));
    assert!(matches!(client.summarize(&session, None).await, Err(ClientError::Unsupported)));
    assert!(matches!(client.rollback(&session, None).await, Err(ClientError::Unsupported)));
    assert!(!client.can_redo());
}

#[tokio::test]
async fn a_hook_that_fails_fails_the_remedy() {
    let client = HookClient::new().on_compact(Hook::new("on-compact", "exit 3"));
    let session = session();
    let Err(ClientError::Failed(error)) = client.compact(&session, &[]).await else { panic!("it worked") };
    assert_eq!(error.to_string(), "hook on-compact failed with exit code 3");
}

#[tokio::test]
async fn a_hook_that_hangs_is_ended() {
    let hook = Hook::new("on-escalate", "sleep 1000").with_limit(Duration::from_millis(200));
    let error = hook.run(vec![], None).await.unwrap_err();
    assert!(matches!(error, HookError::TimedOut { .. }));
    assert_eq!(error.to_string(), "hook on-escalate was ended after 0.2 s");
}

#[tokio::test]
async fn a_hook_reads_the_bundle_that_it_is_given() {
    let bundle: Arc<[u8]> = b"{\"verdict\":\"escalated\"}".as_slice().into();
    let hook = Hook::new("on-escalate", "[ \"$(cat)\" = '{\"verdict\":\"escalated\"}' ]");
    hook.run(vec![], Some(bundle)).await.unwrap();
    assert!(hook.run(vec![], None).await.is_err());
}
