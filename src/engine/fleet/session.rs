use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use super::draws::Draws;
use super::measure::TurnSeen;
use super::provider::Answer;
use super::run::World;
use crate::engine::RecoveryEngine;
use crate::failure::{LaneKey, Report, SessionId};

/// A session that an orchestrator runs.
pub(super) struct Work {
    pub world: Rc<World>,
    pub engine: RecoveryEngine,
    pub lane: Option<LaneKey>,
    pub number: usize,
}

impl Work {
    /// Does one turn after the other while new ones are begun.
    pub async fn go_on(self, seed: u64) {
        let scenario = Rc::clone(&self.world.scenario);
        let mut draws = Draws::new(seed, 0x5e);
        let id = SessionId::new(format!("s{}", self.number)).expect("it is not empty");
        // They do not all begin at once.
        tokio::time::sleep(scenario.pause.mul_f64(draws.unit())).await;
        let mut tokens = 0;
        while self.world.at() < scenario.duration {
            tokens += growth(scenario.provider.context, &mut draws);
            let seen = RefCell::new(TurnSeen::begun(self.number, self.world.at()));
            let size = RefCell::new(tokens);
            let mut handle = self.engine.session(id.clone()).deadline(scenario.deadline);
            if let Some(lane) = &self.lane {
                handle = handle.lane(lane.clone());
            }
            let done = handle
                .run(async |turn: &crate::policy::Turn| {
                    if let Some(share) = turn.truncate_to {
                        let cut = (*size.borrow() as f64 * share) as u64;
                        size.replace(cut);
                    }
                    let tokens = *size.borrow();
                    match self.world.call(self.number, tokens).await {
                        Answer::Worked => Ok(()),
                        answer => {
                            seen.borrow_mut().failed(self.world.at());
                            Err(report(answer))
                        }
                    }
                })
                .await;
            tokens = size.into_inner();
            let ended = seen.into_inner().ended(self.world.at(), done.is_ok());
            let worked = ended.worked;
            self.world.log.borrow_mut().turns.push(ended);
            if !worked {
                // A person looks at it, and the window of limits goes on with the next turn.
                let _ = self.engine.reset(&id).await;
                tokens = 0;
            }
            tokio::time::sleep(draws.about(scenario.pause)).await;
        }
    }
}

/// Tokens that a turn adds.
pub(super) fn growth(context: Option<super::scenario::Context>, draws: &mut Draws) -> u64 {
    context.map_or(0, |context| draws.about(Duration::from_secs(context.growth)).as_secs())
}

/// What a host reports, in providers' own words.
fn report(answer: Answer) -> Report {
    match answer {
        Answer::Worked => Report::text(""),
        Answer::Down => Report::text("503 Service Unavailable: upstream connect error").with_status(503),
        Answer::Overloaded | Answer::Failed => Report::text("Overloaded").with_status(529),
        Answer::Throttled { retry_after: None } => Report::text("429 Too Many Requests").with_status(429),
        Answer::Throttled { retry_after: Some(wait) } => {
            let wait = wait.as_millis().to_string();
            Report::from_response(429, [("retry-after-ms", wait.as_str())], "Rate limit reached for requests")
        }
        Answer::Revoked => Report::text("401 Unauthorized: invalid x-api-key").with_status(401),
        Answer::Poisoned => Report::text("500 Internal Server Error").with_status(500),
        Answer::TooLong { tokens, window } => {
            Report::text(format!("prompt is too long: {tokens} tokens > {window} maximum")).with_status(400)
        }
    }
}
