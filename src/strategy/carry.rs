use std::sync::Arc;

use super::delivery::SUMMARIZE;
use super::{ClientError, Prompt, SessionClient};
use crate::failure::{Kind, SessionId};
use crate::policy::Remedy;

/// Has the session's client carry a remedy out.
///
/// A client that cannot summarise is asked to prompt for a summary. One that cannot switch models is
/// asked to prompt with the other model, but only where no turn follows: the prompt is the redo then,
/// and with a turn to ride on it would be a second one. `kind` is all that such a prompt says of the
/// failure.
///
/// # Errors
///
/// What the client answered; [`ClientError::Unsupported`] also for what only a turn can carry.
/// [`delivery`](super::delivery()) says what follows.
pub(crate) async fn carry(
    client: &dyn SessionClient,
    session: &SessionId,
    remedy: &Remedy,
    kind: &Kind,
    turn_follows: bool,
) -> Result<(), ClientError> {
    match remedy {
        Remedy::Compact { preserve } => client.compact(session, preserve).await,
        Remedy::Truncate { ratio, .. } => client.truncate(session, *ratio).await,
        Remedy::Rollback { checkpoint } => client.rollback(session, checkpoint.as_deref()).await,
        Remedy::Summarize { model } => match client.summarize(session, model.as_deref()).await {
            Err(ClientError::Unsupported) => client.prompt(session, &ask_for_summary(model.clone())).await,
            done => done,
        },
        Remedy::SwitchModel { model } => match client.switch_model(session, model).await {
            Err(ClientError::Unsupported) if !turn_follows => client.prompt(session, &go_on(model, kind)).await,
            done => done,
        },
        Remedy::Degrade => client.degrade(session).await,
        Remedy::Skip => client.skip(session).await,
    }
}

fn ask_for_summary(model: Option<Arc<str>>) -> Prompt {
    Prompt { text: format!("[RECOVERY] {SUMMARIZE}").into(), model }
}

fn go_on(model: &Arc<str>, kind: &Kind) -> Prompt {
    let text = format!("[RECOVERY] The last turn failed with another model ({kind}). Continue where it left off.");
    Prompt { text: text.into(), model: Some(Arc::clone(model)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::testing::{Recorder, session};

    async fn carried(client: &Recorder, remedy: Remedy, turn_follows: bool) -> Result<(), ClientError> {
        carry(client, &session(), &remedy, &Kind::Overloaded, turn_follows).await
    }

    fn switch() -> Remedy {
        Remedy::SwitchModel { model: "acme/mini".into() }
    }

    #[tokio::test]
    async fn each_remedy_has_its_call() {
        let client = Recorder::able_to(["compact", "truncate", "summarize", "switch_model", "rollback", "prompt"]);
        let remedies = [
            Remedy::Compact { preserve: vec!["todos".into(), "files".into()] },
            Remedy::Truncate { ratio: 0.25, min_output_size: 500 },
            Remedy::Summarize { model: Some("acme/mini".into()) },
            Remedy::Summarize { model: None },
            switch(),
            Remedy::Rollback { checkpoint: Some("green".into()) },
        ];
        for remedy in remedies {
            carried(&client, remedy, false).await.expect("the client can do it");
        }
        assert_eq!(
            client.calls(),
            [
                "compact todos,files",
                "truncate 0.25",
                "summarize acme/mini",
                "summarize",
                "switch_model acme/mini",
                "rollback green"
            ]
        );
    }

    #[tokio::test]
    async fn a_client_that_cannot_summarise_is_asked_to_prompt_for_a_summary() {
        let client = Recorder::able_to(["prompt"]);
        carried(&client, Remedy::Summarize { model: Some("mini".into()) }, true).await.expect("it can prompt");
        assert_eq!(client.calls(), ["prompt mini"]);
        assert!(client.prompts()[0].text.contains("Summarise"), "{:?}", client.prompts());
    }

    #[tokio::test]
    async fn a_prompt_switches_the_model_only_where_it_is_the_redo() {
        let client = Recorder::able_to(["prompt"]);
        assert!(matches!(carried(&client, switch(), true).await, Err(ClientError::Unsupported)));
        assert_eq!(client.calls(), [""; 0]);
        carried(&client, switch(), false).await.expect("it can prompt");
        assert_eq!(client.calls(), ["prompt acme/mini"]);
        assert!(client.prompts()[0].text.contains("(overloaded)"), "{:?}", client.prompts());
    }

    #[tokio::test]
    async fn a_failed_call_is_not_tried_another_way() {
        let client = Recorder::able_to(["prompt"]).failing_at(["switch_model", "summarize"]);
        for remedy in [switch(), Remedy::Summarize { model: None }] {
            assert!(matches!(carried(&client, remedy, false).await, Err(ClientError::Failed(_))));
        }
        assert_eq!(client.calls(), ["switch_model acme/mini", "summarize"]);
    }

    #[tokio::test]
    async fn what_only_a_turn_can_carry_is_unsupported() {
        let client = Recorder::able_to(["prompt"]);
        for remedy in [Remedy::Degrade, Remedy::Skip] {
            assert!(matches!(carried(&client, remedy, true).await, Err(ClientError::Unsupported)));
        }
        assert_eq!(client.calls(), [""; 0]);
    }
}
