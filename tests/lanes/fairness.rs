//! Ten minutes in which half of all calls fail: the budget bounds the calls, and shares what there is.

use std::time::Duration;

use crate::provider::{Provider, engine, fleet, secs};

#[tokio::test(start_paused = true)]
async fn a_brown_out_is_not_fed_by_redos_and_nobody_starves() {
    let (engine, provider) = (
        engine("session_error: [{strategy: retry, config: {max_retries: 20}}, abort]\nmax_total_attempts: 100", 3)
            .await,
        Provider::new(100.0, 100.0, 3),
    );
    let bad = provider.clone();
    tokio::spawn(async move {
        tokio::time::sleep(secs(300)).await;
        bad.set_bad(50);
    });
    let done = fleet(&engine, &provider, 200, secs(18), secs(900)).await;
    let (before, after) = (provider.calls(secs(100), secs(300)), provider.calls(secs(300), secs(900)));
    let offered = before as f64 / 200.0;
    let rate = after as f64 / 600.0;
    println!("offered {offered}, calls {rate}");
    assert!(rate <= 1.2 * offered, "{rate} of {offered}");
    let shares: Vec<f64> = {
        let done = done.lock().unwrap();
        let within = |turns: &Vec<Duration>| turns.iter().filter(|at| **at >= secs(300)).count() as f64;
        done.iter().map(within).collect()
    };
    let (sum, squares) = (shares.iter().sum::<f64>(), shares.iter().map(|x| x * x).sum::<f64>());
    let jain = sum * sum / (shares.len() as f64 * squares);
    println!("jain {jain}, turns {sum}");
    assert!(jain >= 0.9, "{jain}");
    assert!(sum >= 0.4 * offered * 600.0, "{sum} turns got through");
}
