//! What lanes are worth: the scenarios that ship, on virtual time, beside what others do.
#![cfg(feature = "simulate")]
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use backstop::RecoveryConfig;
use backstop::engine::fleet::{Measured, Policy, SHIPPED, Scenario, plot, shipped, simulate};

fn scenario(name: &str) -> Scenario {
    Scenario::parse(name, shipped(name).unwrap()).unwrap()
}

fn own(scenario: &Scenario) -> Policy {
    Policy::engine("backstop", scenario.policy.clone())
}

fn run(scenario: &Scenario, seed: u64) -> Measured {
    simulate(scenario, &own(scenario), seed)
}

const SMALL: &str = "
name: small
sessions: 20
duration: 3m
pause: 5s
provider: {latency: 1s, rate: 10}
faults: [{outage: {at: 1m, lasts: 30s}}]
";

#[test]
fn one_seed_gives_one_trace_and_another_seed_another() {
    let scenario = Scenario::parse("small", SMALL).unwrap();
    let (one, again, other) = (run(&scenario, 7), run(&scenario, 7), run(&scenario, 8));
    assert_eq!((&one.calls, &one.turns), (&again.calls, &again.turns));
    assert_ne!(one.calls, other.calls);
}

#[test]
fn a_wrong_scenario_is_refused_with_its_place() {
    for (text, said) in [
        ("name: x\nsessions: many\n", "s.yaml:2:11"),
        (&SMALL.replace("pause: 5s", "pause: soon"), "is no span"),
        (&SMALL.replace("sessions: 20", "sessions: 0"), "sessions is 0"),
        (&SMALL.replace("rate: 10", "speed: 10"), "unknown field `speed`"),
        (&format!("{SMALL}recovery:\n  session_error: {{chain: 3}}\n"), "s.yaml:"),
    ] {
        let error = Scenario::parse("s.yaml", text).unwrap_err();
        let source = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
        assert!(format!("{error} {source}").contains(said), "{error}: {source}");
    }
}

#[test]
fn every_scenario_that_ships_can_be_read() {
    for (name, _) in SHIPPED {
        assert_eq!(scenario(name).name, name);
    }
}

/// Against the cheapest of those that bring back at least 95 of 100 turns.
#[test]
fn an_outage_costs_a_fraction_of_what_others_pay_and_trips_once() {
    let outage = scenario("outage");
    let ours = run(&outage, 1).table();
    assert!(ours.recovered_percent.unwrap() >= 99.0, "{ours:?}");
    assert_eq!(ours.second_trips, 0, "{ours:?}");
    assert!(ours.fairness >= 0.9, "{ours:?}");
    let others = Policy::baselines().map(|policy| simulate(&outage, &policy, 1).table());
    let good = others.iter().filter(|other| other.recovered_percent >= Some(95.0));
    let cheapest = good.map(|other| other.calls_in_trouble).min().unwrap();
    assert!(ours.calls_in_trouble * 5 <= cheapest, "{} calls, the cheapest other {cheapest}", ours.calls_in_trouble);
    // Those that were under way, the evidence that opens the circuit, and one probe a second at most.
    assert!(ours.calls_in_trouble <= ours.in_flight + 40 + 180, "{ours:?}");
}

#[test]
fn a_brown_out_is_not_made_worse() {
    let brown_out = scenario("brown-out");
    let measured = run(&brown_out, 1);
    let ours = measured.table();
    assert!(ours.recovered_percent.unwrap() >= 99.0, "{ours:?}");
    assert!(ours.fairness >= 0.9, "{ours:?}");
    // Fresh turns as they are offered while nothing fails.
    let (minute, offered) = (Duration::from_secs(60), measured.calls_within(minute(1), minute(5)) as f64 / 4.0);
    let during = ours.calls_in_trouble as f64 / 10.0;
    assert!(during <= 1.2 * offered, "{during} calls a minute of {offered} offered each {minute:?}");
}

fn minute(number: u64) -> Duration {
    Duration::from_secs(60 * number)
}

#[test]
fn what_is_wrong_with_a_session_is_its_own_affair() {
    let revoked = scenario("revoked");
    let ours = run(&revoked, 1);
    assert!(ours.lane.is_empty(), "the lane closed: {:?}", ours.lane);
    assert!(ours.table().fairness >= 0.9);
}

#[test]
fn without_faults_a_lane_costs_next_to_nothing() {
    let calm = Scenario::parse("calm", &SMALL.replace("faults: [{outage: {at: 1m, lasts: 30s}}]", "")).unwrap();
    let with = run(&calm, 3).table();
    let without = simulate(&calm, &Policy::without_lanes("off", RecoveryConfig::default()), 3).table();
    assert!(with.worked as f64 >= without.worked as f64 * 0.95, "{} of {}", with.worked, without.worked);
}

#[test]
fn a_plot_shows_every_run() {
    let scenario = Scenario::parse("small", SMALL).unwrap();
    let drawn = plot(&[run(&scenario, 1), simulate(&scenario, &Policy::baselines()[0], 1)]);
    assert!(drawn.starts_with("<svg") && drawn.ends_with("</svg>\n"));
    assert_eq!(drawn.matches("<polygon").count(), 4);
}
