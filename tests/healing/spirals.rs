//! Every spiral is stopped within three rounds that improve nothing, and no run that gets there is.
//!
//! A trace is a line of rounds. `A`: failed so. `.`: worked. `d`: worked degraded or skipped. `1`: worked with a
//! fallback that low. `o90`: overflowed at that size. `c` before one: after a compaction. `-5` behind one: so much
//! is left to do. In spirals `|` stands before the first round that improves nothing.

use backstop::policy::spiral::{Round, Spiral, SpiralKind, SpiralLimits, SpiralWatch};

use SpiralKind::{Alternation, LowerFallbacks, Refill, ShrinkingQuality, UselessCompaction};

const SPIRALS: &[(SpiralKind, &str)] = &[
    (Alternation, "A B | A B A B A"),
    (Alternation, ". A B | A B A B"),
    (Alternation, "A A B | A B A B"),
    (Alternation, "A B B | A B B A A B"),
    (Alternation, "C A B | A B A"),
    (Alternation, ". . . . . A B | A B A"),
    (Alternation, "A-5 B-5 | A-5 B-5 A-5"),
    (Alternation, "A-5 B-6 | A-7 B-8 A-9"),
    (Alternation, "A-9 B-8 A-7 B-7 | A-7 B-7 A-7"),
    (Alternation, "d A B | A B A"),
    (UselessCompaction, "o900 | co900 co900 co900"),
    (UselessCompaction, "o900 | co890 co880 co870"),
    (UselessCompaction, "o900 | co950 co990 co999"),
    (UselessCompaction, ". . o900 | co895 co894 co893 co892"),
    (UselessCompaction, "o900 co400 | co399 co398 co397"),
    (UselessCompaction, "o900 | co811 co735 co670"),
    (UselessCompaction, "o900-4 | co900-4 co900-4 co900-4"),
    (UselessCompaction, "A o900 | co899 co898 co897"),
    (Refill, "o900 c. | o900 c. o900 c. o900"),
    (Refill, "o900 c. . | o900 c. . o900 c. . o900"),
    (Refill, ". . . o900 c. | o910 c. o920 c. o930"),
    (Refill, "o900 c. . | o900 c. o900 c. . o900 c. o900"),
    (Refill, "o900 c.-7 | o900-7 c.-7 o900-7 c.-7 o900-7"),
    (Refill, "A . o900 c. | o905 c. o905 c. o905"),
    (ShrinkingQuality, ". . . | d d d"),
    (ShrinkingQuality, ". | d d d d"),
    (ShrinkingQuality, "| d d d"),
    (ShrinkingQuality, ". d . . . . | d d d"),
    (ShrinkingQuality, "A . . B | d d d"),
    (ShrinkingQuality, ". . . . . . . . | d d d"),
    (ShrinkingQuality, ".-9 | d-9 d-9 d-9"),
    (ShrinkingQuality, "d d . . . | d d d"),
    (LowerFallbacks, ". | 1 2 3"),
    (LowerFallbacks, ". . 1 . . | 1 2 3 4"),
    (LowerFallbacks, "1 1 1 | 2 3 4"),
    (LowerFallbacks, "A . | 1 2 3"),
    (LowerFallbacks, ".-3 | 1-3 2-3 3-3"),
    (LowerFallbacks, ". | 2 4 6"),
    (LowerFallbacks, "3 3 | 4 5 9"),
    (LowerFallbacks, "2 1 | 2 3 4"),
];

const CONVERGING: &[&str] = &[
    ". . . . . . . . . .",
    "A . A . A . A . A .",
    "A . B . A . B . A . B . A .",
    "A A A A A .",
    "A B C D E F G .",
    "A B A B .",
    "A B A B . A B A B .",
    "A B C A B C A B C .",
    "A-9 B-8 A-7 B-6 A-5 B-4 A-3 B-2 A-1 .-0",
    "A-90 B-90 A-80 B-80 A-70 B-70 A-60 B-60 .-0",
    "A-5 B-6 A-4 B-5 A-3 B-4 A-2 B-3 A-1 .-0",
    "A A B B C C A A D .",
    "o900 co400 co200 .",
    "o900 co800 co700 co600 co500 co400 .",
    "o900 co890 co880 co500 co495 co490 co200 .",
    "o900 co899 co898 .",
    "o900 c. . . . . o900 c. . . . . o900 c. . . . . o900 c. . . .",
    "o900 c. o900 c. . . . . o900 c. o900 c. . . .",
    "o900 c. . . o900 c. . . . o900 c. . . o900 c. . . .",
    "o900-9 c.-8 o900-8 c.-7 o900-7 c.-6 o900-6 c.-5 o900-5 c.-0",
    "o900 o900 o900 o900 .",
    "d . d . d . d . d .",
    "d d . d d . d d . d d .",
    ". . d . . d . . d . . d",
    "d-9 d-8 d-7 d-6 d-5 d-4 d-3 .-0",
    "A d A d . A d . .",
    ". . . . d d . . . .",
    "d-5 d-5 d-4 d-4 d-3 d-3 .-0",
    "1 1 1 1 1 1 1",
    "1 2 1 2 1 2 1 2",
    ". 1 2 2 2 2 .",
    "2 2 . . 2 2 . . 2",
    "1 2 . 1 2 . 1 2 .",
    ".-9 1-8 2-7 3-6 4-5 5-4 .-0",
    "3 2 1 . 1 2 2 .",
    "A 1 A 1 B 2 B 2 . .",
    "A B . d . o900 co500 c. . . A . 1 . d .",
    "A-30 A-29 A-29 B-29 A-28 B-28 A-28 B-27 A-27 .-0",
    "o900 co850 co760 co700 co600 .",
    "A B A . B A B . A B A . B A B .",
];

fn round(text: &str) -> Round {
    let (text, remaining) = match text.split_once('-') {
        Some((text, remaining)) => (text, Some(remaining.parse().unwrap())),
        None => (text, None),
    };
    let (text, compacted) = text.strip_prefix('c').map_or((text, false), |rest| (rest, true));
    let round = Round { compacted, remaining, ..Round::default() };
    match text.as_bytes() {
        [b'.'] => round,
        [b'd'] => Round { lesser: true, ..round },
        [b'o', ..] => Round { failure: Some(0), overflow: Some(text[1..].parse().unwrap()), ..round },
        [digit @ b'0'..=b'9'] => Round { fallback: u32::from(digit - b'0'), ..round },
        [letter @ b'A'..=b'Z'] => Round { failure: Some(u64::from(*letter)), ..round },
        _ => panic!("no round: {text}"),
    }
}

/// Where a trace is stopped, and why.
fn stopped(trace: &str, limits: &SpiralLimits) -> Option<(usize, Spiral)> {
    let mut watch = SpiralWatch::default();
    let rounds = trace.split(' ').filter(|text| *text != "|").enumerate();
    rounds.into_iter().find_map(|(place, text)| Some((place, watch.observe(round(text), limits)?)))
}

#[test]
fn every_spiral_is_stopped_within_three_rounds_that_improve_nothing() {
    for (kind, trace) in SPIRALS {
        let (place, spiral) =
            stopped(trace, &SpiralLimits::default()).unwrap_or_else(|| panic!("not stopped: {trace}"));
        assert_eq!(spiral.kind, *kind, "{trace}");
        let first = trace.split(' ').position(|text| text == "|").unwrap();
        let rounds: Vec<&str> = trace.split(' ').filter(|text| *text != "|").collect();
        assert!(place >= first, "stopped before it turned: {trace}");
        // Between two refills the context is worked in: those rounds are none of the idle ones.
        let idle = rounds[first..=place].iter().filter(|text| !text.trim_start_matches('c').starts_with('.'));
        // The same failure once more is not yet a return to the other one.
        let mut idle: Vec<&&str> = idle.collect();
        idle.dedup();
        assert!(idle.len() <= 3, "stopped after {} idle rounds: {trace}", idle.len());
        assert!(spiral.to_string().chars().any(|ch| ch.is_ascii_digit()), "it is explained with its numbers");
    }
}

#[test]
fn no_run_that_gets_there_is_stopped() {
    for trace in CONVERGING {
        let stopped = stopped(trace, &SpiralLimits::default());
        assert_eq!(stopped, None, "{trace}");
    }
    assert!(SPIRALS.len() + CONVERGING.len() >= 80);
}

#[test]
fn each_kind_is_switched_off_by_its_own_limit() {
    for (kind, trace) in SPIRALS {
        let mut limits = SpiralLimits::default();
        *match kind {
            UselessCompaction => &mut limits.useless_compactions,
            Refill => &mut limits.refills,
            Alternation => &mut limits.alternations,
            ShrinkingQuality => &mut limits.shrinking_quality,
            LowerFallbacks => &mut limits.lower_fallbacks,
        } = 0;
        assert_ne!(stopped(trace, &limits).map(|(_, spiral)| spiral.kind), Some(*kind), "{trace}");
    }
}

#[test]
fn what_was_watched_survives_a_crash_between_any_two_rounds() {
    for (_, trace) in SPIRALS {
        let mut watch = SpiralWatch::default();
        let mut place = 0;
        for text in trace.split(' ').filter(|text| *text != "|") {
            let kept = serde_json::to_string(&watch).unwrap();
            watch = serde_json::from_str(&kept).unwrap();
            if watch.observe(round(text), &SpiralLimits::default()).is_some() {
                break;
            }
            place += 1;
        }
        assert_eq!(stopped(trace, &SpiralLimits::default()).map(|(at, _)| at), Some(place), "{trace}");
    }
}
