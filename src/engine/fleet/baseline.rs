use std::rc::Rc;
use std::time::Duration;

use super::draws::Draws;
use super::measure::TurnSeen;
use super::policy::BackOff;
use super::provider::Answer;
use super::run::World;
use super::session::growth;

impl BackOff {
    /// The wait before try `next`, counted from 2.
    fn wait(&self, next: u32, draws: &mut Draws) -> Duration {
        let whole = self.first.saturating_mul(1 << (next - 2).min(16)).min(self.longest);
        if self.full_jitter { whole.mul_f64(draws.unit()) } else { whole }
    }
}

/// A session that retries for itself.
pub(super) async fn work(world: Rc<World>, back_off: BackOff, session: usize, seed: u64) {
    let scenario = Rc::clone(&world.scenario);
    let mut draws = Draws::new(seed, 0x5e);
    tokio::time::sleep(scenario.pause.mul_f64(draws.unit())).await;
    let mut tokens = 0;
    while world.at() < scenario.duration {
        tokens += growth(scenario.provider.context, &mut draws);
        let mut seen = TurnSeen::begun(session, world.at());
        let mut tries = 1;
        let worked = loop {
            let answer = world.call(session, tokens).await;
            if answer == Answer::Worked {
                break true;
            }
            seen.failed(world.at());
            tries += 1;
            // What sending the same again cannot cure is not sent again: the baselines are no fools.
            if tries > back_off.tries || matches!(answer, Answer::Revoked | Answer::TooLong { .. }) {
                tokens = 0;
                break false;
            }
            let stated = match answer {
                Answer::Throttled { retry_after } => retry_after.unwrap_or_default(),
                _ => Duration::ZERO,
            };
            let wait = back_off.wait(tries, &mut draws).max(stated);
            if world.at() + wait > seen.begun + scenario.deadline {
                break false;
            }
            tokio::time::sleep(wait).await;
        };
        world.log.borrow_mut().turns.push(seen.ended(world.at(), worked));
        tokio::time::sleep(draws.about(scenario.pause)).await;
    }
}
