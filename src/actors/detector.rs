//! Owns the patterns; publishes a snapshot at every change.

use std::sync::Arc;

use ractor::{Actor, ActorProcessingErr, ActorRef};

use super::messages::DetectorMsg;
use super::shared::Shared;
use crate::failure::PatternRegistry;

pub(crate) struct DetectorActor;

pub(crate) struct DetectorState {
    shared: Arc<Shared>,
    registry: PatternRegistry,
}

impl Actor for DetectorActor {
    type Msg = DetectorMsg;
    type State = DetectorState;
    type Arguments = Arc<Shared>;

    /// A restarted detector goes on with what it published last.
    async fn pre_start(
        &self,
        _: ActorRef<DetectorMsg>,
        shared: Arc<Shared>,
    ) -> Result<DetectorState, ActorProcessingErr> {
        let registry = (*shared.patterns()).clone();
        Ok(DetectorState { shared, registry })
    }

    async fn handle(
        &self,
        _: ActorRef<DetectorMsg>,
        message: DetectorMsg,
        state: &mut DetectorState,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            DetectorMsg::Classify { report, reply } => {
                let _ = reply.send(state.registry.detect_first(&report, state.shared.now()));
            }
            DetectorMsg::Register { patterns, done } => {
                for pattern in patterns {
                    state.shared.with_code_patterns(|code| code.register(pattern.clone()));
                    state.registry.register(pattern);
                }
                state.shared.publish_patterns(state.registry.clone());
                let _ = done.send(());
            }
            DetectorMsg::Reload { patterns, text_cap, done } => {
                state.registry = state.shared.with_code_patterns(|code| code.clone()).with_text_cap(text_cap);
                for pattern in patterns {
                    state.registry.register(pattern);
                }
                state.shared.publish_patterns(state.registry.clone());
                let _ = done.send(());
            }
            #[cfg(any(test, feature = "test-util"))]
            DetectorMsg::Panic => panic!("asked to panic"),
        }
        Ok(())
    }
}
